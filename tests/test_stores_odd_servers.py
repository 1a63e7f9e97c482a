"""Servers that answer oddly: with wrong lengths, ranges and codes. A store gives the right bytes or a clear error."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, repeat
from pathlib import Path
from threading import Event, Semaphore, Thread
from types import SimpleNamespace
from unittest import mock

import pytest
from conftest import HANG
from drills.made_stores import MemoryStore
from store_servers import credentials

from readers.contract.errors import StoreBusyError, StoreError
from readers.stores import least_rate, object_store
from readers.stores.evict import Budget
from readers.stores.fetch import Fetcher
from readers.stores.object_store import ObjectStore
from readers.stores.store import Version

DATA = bytes(range(100))
ETAG = ("etag", '"abc"')
TIME = ("last-modified", "Sun, 22 Nov 2026 00:00:00 GMT")


@contextmanager
def answering(
    status: int, body: bytes | Iterator[bytes], *headers: tuple[str, str], pause: float = 0
) -> Iterator[ObjectStore]:
    """Yield a store whose server gives this answer to every request, with a length unless the headers have one.
    Of several bodies each request gets the next one.

    With a `pause` it sends spaces after the body, one after each pause, until the client has gone.
    """
    endless = [("content-length", str(1 << 30))] if pause else []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
            """Say nothing."""

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            content = body if isinstance(body, bytes) else next(body)
            self.send_response_only(status)
            for name, value in dict(
                [TIME, ("connection", "close"), ("content-length", str(len(content))), *headers, *endless]
            ).items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)
            with suppress(OSError):
                while pause:
                    self.wfile.write(b" ")
                    time.sleep(pause)

    for method in ("GET", "HEAD", "PUT", "POST", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.answer)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        address = credentials(f"http://127.0.0.1:{server.server_address[1]}")
        with mock.patch.dict(os.environ, address), mock.patch("readers.stores.waiting.RETRY_SECONDS", 0.0):
            yield ObjectStore("s3://bucket/pack", {"max_retries": 0, "retry_timeout": timedelta(seconds=9)})
    finally:
        server.shutdown()
        server.server_close()


def error(code: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()


CALLS: dict[str, Callable[[ObjectStore], object]] = {
    "read": lambda store: store.read("a"),
    "put": lambda store: store.put("a", b""),
    "create": lambda store: store.create("a", b""),
    "list": lambda store: list(store.list("")),
}


@pytest.mark.parametrize(
    ("status", "code", "hint"),
    [
        (403, "RequestTimeTooSkewed", "set the clock of this machine"),
        (403, "AccessDenied", ""),
        (400, "AuthorizationHeaderMalformed", "correct AWS_REGION"),
        (301, "PermanentRedirect", "region"),
        (501, "NotImplemented", ""),
        (507, "InsufficientStorage", ""),
    ],
)
def test_what_another_try_does_not_change_is_not_tried_again(status: int, code: str, hint: str) -> None:
    """Exit code 75 would have a scheduler start it for ever."""
    with answering(status, error(code)) as store:
        for call in CALLS.values():
            with pytest.raises(StoreError, match=f"{code}|region") as raised:
                call(store)
            assert not isinstance(raised.value, StoreBusyError)
            assert hint in str(raised.value)


@pytest.mark.parametrize(("status", "code"), [(400, "ExpiredToken"), (400, "RequestTimeout"), (429, "SlowDown")])
def test_what_may_pass_is_tried_again(status: int, code: str) -> None:
    with answering(status, error(code)) as store:
        for call in CALLS.values():
            with pytest.raises(StoreBusyError, match=code):
                call(store)


def test_too_few_bytes_of_a_range_are_an_error() -> None:
    part = ("content-range", "bytes 10-19/100")
    with answering(206, DATA[10:20], ETAG, part) as store:
        assert store.read("a", 10, 20)[0] == DATA[10:20]
    with answering(206, DATA[10:15], ETAG, part) as store, pytest.raises(StoreBusyError, match="5 bytes came"):
        store.read("a", 10, 20)


@pytest.mark.parametrize("length", ["150", "-5", str(10**23), ""])
def test_a_wrong_length_is_an_error(length: str) -> None:
    with answering(200, DATA, ETAG, ("content-length", length)) as store:
        with pytest.raises(StoreError):
            store.read("a")
        with pytest.raises(StoreError):
            store.fetch("a", lambda piece: None)


def listing(*names: str, goes_on: str = "") -> bytes:
    entries = "".join(
        f"<Contents><Key>pack/{name}</Key><Size>1</Size><LastModified>2026-11-22T00:00:00.000Z</LastModified></Contents>"
        for name in names
    )
    more = f"<NextContinuationToken>{goes_on}</NextContinuationToken>" if goes_on else ""
    return f"<ListBucketResult>{entries}{more}</ListBucketResult>".encode()


@pytest.mark.parametrize(
    "answers",
    [
        [error("InternalError"), listing("a", "b", "c"), listing()],
        [listing("a", "b", goes_on="2"), error("InternalError"), listing("c"), listing()],
        [listing("a", "b", goes_on="2"), listing("c"), error("InternalError")],
    ],
)
def test_an_error_in_an_answer_of_status_200_does_not_end_a_listing(answers: list[bytes]) -> None:
    """The client takes it for a listing without names."""
    with answering(200, iter([*answers, listing()])) as store:
        assert [entry.name for entry in store.list("")] == ["a", "b", "c"]


def test_an_upload_whose_last_answer_has_an_error_in_its_body_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "ONE_PUT", 1)
    upload = b"<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>"
    with (
        answering(200, chain([upload, b""], repeat(error("InternalError"))), ("etag", '"a"')) as store,
        pytest.raises(StoreBusyError, match="InternalError"),
    ):
        store.put("a", b"two")


def test_an_object_without_a_tag_is_not_replaced() -> None:
    with answering(200, DATA) as store:
        assert store.read("a")[1] == Version("")
        with pytest.raises(StoreError):
            store.replace("a", b"", Version(""))
        with pytest.raises(StoreError):
            store.create("a", b"")


def test_compressed_bytes_stay_as_they_are() -> None:
    with answering(200, DATA, ETAG, ("content-encoding", "gzip")) as store:
        assert store.read("a")[0] == DATA


def test_a_store_that_sends_too_slowly_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte a second held a pull for an hour: no time between two bytes is a silence."""
    part = ("content-range", "bytes 0-99/100")
    for status, headers in ((200, (ETAG,)), (206, (ETAG, part))):
        with answering(status, DATA, *headers) as store:
            calls: list[Callable[[], object]] = [partial(store.read, "a"), partial(fetched, store)]
            if status == 206:
                calls = [partial(store.read, "a", 0, 100)]
            assert [call() for call in calls]
            with monkeypatch.context() as slow:
                slow.setattr(least_rate, "WINDOW_SECONDS", 0.0)
                slow.setattr(least_rate, "LEAST_RATE", 1 << 60)
                for call in calls:
                    with pytest.raises(StoreBusyError, match=r"s3://bucket/pack/a: .* bytes a second"):
                        call()


def test_an_answer_that_never_ends_is_waited_for_no_longer_than_it_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """A listing that comes a byte at a time is never silent."""
    monkeypatch.setattr(object_store, "SHORT_SECONDS", 1)
    with answering(200, b"<ListBucketResult>", pause=0.2) as store:
        for call in (lambda: list(store.list("")), lambda: store.delete(["a"])):
            with pytest.raises(StoreBusyError, match=r"s3://bucket/pack"):
                call()


def fetched(store: ObjectStore) -> bytes:
    pieces = list[bytes]()
    store.fetch("a", lambda piece: pieces.append(bytes(piece)))
    return b"".join(pieces)


def test_the_rate_is_that_of_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(least_rate, "time", SimpleNamespace(monotonic=lambda: now))
    rate = least_rate.LeastRate("a")
    for second in range(1, 60):
        now = float(second)
        rate.came(1)
    now = 60.0
    rate.came(1 << 20)
    now = 119.0
    rate.came(0)
    now = 120.0
    with pytest.raises(StoreBusyError, match="a: 1 bytes came in 60 s"):
        rate.came(1)


def test_who_waited_for_a_silent_store_does_not_wait_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that fetch ahead and the one that needs a shard waited for minutes, one after the other."""
    asked, waiting, go = list[str](), Semaphore(0), Event()
    monkeypatch.setattr("readers.stores.waiting.RETRY_SECONDS", -1.0)
    store, budget = MemoryStore(), Budget(tmp_path, 1 << 20)
    fetcher, lock = Fetcher(store, budget.packs / "pack", budget), budget.fetch_lock

    def silent(name: str, write: object) -> None:
        asked.append(name)
        go.wait(HANG)
        raise StoreBusyError(f"{name}: no answer")

    def counted(unit: Path) -> Path:
        waiting.release()
        return lock(unit)

    monkeypatch.setattr(store, "fetch", silent)
    monkeypatch.setattr(budget, "fetch_lock", counted)
    with ThreadPoolExecutor(2) as threads:
        calls = [threads.submit(fetcher.shard, f"train-{'0' * 32}", "0" * 64) for _ in range(2)]
        for _ in calls:
            assert waiting.acquire(timeout=HANG)
        go.set()
        for call in calls:
            with pytest.raises(StoreBusyError, match="no answer"):
                call.result()
    assert len(asked) == 1
