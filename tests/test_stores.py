"""One suite for all stores: a folder, and each kind of bucket. A kind is a line in KINDS."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import Barrier, Event, Thread
from types import SimpleNamespace
from typing import TYPE_CHECKING
from unittest import mock
from uuid import uuid4

import pytest
from conftest import HANG
from faulty_proxy import BUSY, CUT, DOUBLED, ERROR, LOST, SLOW, times
from fsspec.implementations.memory import MemoryFile, MemoryFileSystem
from store_servers import credentials, new_url, proxy, server, use_server

from readers.contract import atomic
from readers.contract.errors import DamagedError, RequestError, StoreBusyError, StoreError
from readers.stores import object_store, waiting
from readers.stores.folder_store import FolderStore
from readers.stores.fsspec_store import FsspecStore
from readers.stores.heard import _Heard, hear_of_waits, tell_of_wait
from readers.stores.object_store import ObjectStore
from readers.stores.open_store import open_store
from readers.stores.store import Store
from readers.stores.waiting import RETRY_SECONDS

if TYPE_CHECKING:
    from obstore.store import BackoffConfig

KINDS: dict[str, Callable[[pytest.FixtureRequest], Store]] = {
    "folder": lambda request: FolderStore(request.getfixturevalue("tmp_path") / "store"),
    "moto": lambda request: bucket(proxy("moto", one_put_at_a_time=True).url),
    "ministack": lambda request: bucket(server("ministack")),
    "memory": lambda request: FsspecStore(f"memory://{uuid4().hex}"),
}
"""Makes an empty store. moto checks a condition first and writes later, so its proxy hands it one PUT at a time."""
UNCONDITIONAL = {"memory"}
"""The kinds that have no `create` and `replace`."""
THREADS = 8
MISSING = "folder/missing"
BAD_NAMES = ["", "/a", "a/", "a//b", "../a", "a/./b", "a/..", "a\0"]


def bucket(endpoint: str, tries: int = 2) -> ObjectStore:
    """Return an empty folder of a bucket, whose client tries soon again."""
    soon, later = timedelta(milliseconds=10), timedelta(milliseconds=50)
    wait: BackoffConfig = {"init_backoff": soon, "max_backoff": later, "base": 2}
    with mock.patch.dict(os.environ, credentials(endpoint)):
        return ObjectStore(new_url(), {"max_retries": tries, "backoff": wait, "retry_timeout": timedelta(minutes=1)})


@pytest.fixture(params=sorted(KINDS))
def store(request: pytest.FixtureRequest) -> Store:
    return KINDS[request.param](request)


@pytest.fixture(params=sorted(KINDS.keys() - UNCONDITIONAL))
def conditional(request: pytest.FixtureRequest) -> Store:
    return KINDS[request.param](request)


def content(store: Store, name: str) -> bytes:
    """Return the bytes of an object, which `fetch` and `read` must agree on."""
    pieces: list[bytes] = []
    store.fetch(name, lambda piece: pieces.append(bytes(piece)))
    data, _ = store.read(name)
    assert b"".join(pieces) == data
    return data


def names(store: Store, folder: str = "") -> list[str]:
    return sorted(entry.name for entry in store.list(folder))


@pytest.mark.parametrize("data", [b"", b"x", os.urandom((1 << 20) + 1)], ids=["empty", "one byte", "large"])
def test_what_is_put_is_read(store: Store, data: bytes) -> None:
    store.put("a/b.npy", b"other")
    store.put("a/b.npy", data)
    assert content(store, "a/b.npy") == data
    store.put("a/b.npy", memoryview(bytearray(b"view")))
    assert content(store, "a/b.npy") == b"view"


def test_a_range_is_read_to_the_end_at_most(store: Store) -> None:
    store.put("a", b"0123456789")
    assert store.read("a", 2, 5)[0] == b"234"
    assert store.read("a", 7)[0] == b"789"
    assert store.read("a", 7, 100)[0] == b"789"
    assert store.read("a", 0, 1 << 40)[0] == b"0123456789"


def test_every_write_makes_another_version(store: Store) -> None:
    versions = []
    for data in (b"1", b"2", b"3"):
        store.put("a", data)
        versions.append(store.read("a")[1])
        assert store.read("a")[1] == store.read("a", 0, 1)[1] == versions[-1]
    assert len(set(versions)) == 3


def test_a_listing_has_names_sizes_and_tags(store: Store) -> None:
    assert names(store) == []
    for number, name in enumerate(["a", "b/c", "b/d/e", "bc/f"]):
        store.put(name, bytes(number))
    assert names(store) == ["a", "b/c", "b/d/e", "bc/f"]
    assert names(store, "b") == ["b/c", "b/d/e"]
    assert names(store, "b/d") == ["b/d/e"]
    assert names(store, "nothing") == []
    for entry in store.list(""):
        data, version = store.read(entry.name)
        assert (entry.size, entry.tag) == (len(data), version.tag)
        assert abs(entry.modified - time.time()) < 3600


def test_deleted_objects_are_gone_and_missing_ones_do_not_matter(store: Store) -> None:
    for name in ("a", "b/c", "b/d"):
        store.put(name, b"x")
    store.delete(["a", MISSING, "b/c"])
    assert names(store) == ["b/d"]
    store.delete([])
    store.delete(["b/d"])
    assert names(store) == []


def test_a_missing_object_is_not_found(store: Store) -> None:
    store.put("file", b"x")
    for name in (MISSING, "file/below"):
        with pytest.raises(FileNotFoundError):
            store.read(name)
        with pytest.raises(FileNotFoundError):
            store.fetch(name, print)


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_that_mean_another_object_are_refused(store: Store, name: str) -> None:
    for call in (
        lambda: store.read(name),
        lambda: store.fetch(name, print),
        lambda: store.put(name, b""),
        lambda: store.delete([name]),
        lambda: store.create(name, b""),
    ):
        with pytest.raises(RequestError):
            call()


def test_readers_see_the_old_bytes_or_the_new_ones(store: Store) -> None:
    both = [b"a" * 300_000, b"b" * 400_000]
    store.put("file", both[0])
    with ThreadPoolExecutor(2) as threads:
        writes = [threads.submit(store.put, "file", both[number % 2]) for number in range(10)]
        while not all(write.done() for write in writes):
            assert store.read("file")[0] in both
    assert all(write.result() is None for write in writes)


def test_a_name_is_created_once(conditional: Store) -> None:
    assert conditional.create("generations/000001.json", b"first")
    assert not conditional.create("generations/000001.json", b"second")
    assert content(conditional, "generations/000001.json") == b"first"
    conditional.delete(["generations/000001.json"])
    assert conditional.create("generations/000001.json", b"third")


def test_only_what_was_read_is_replaced(conditional: Store) -> None:
    conditional.put("manifest.json", b"1")
    _, first = conditional.read("manifest.json")
    assert conditional.replace("manifest.json", b"2", first)
    assert not conditional.replace("manifest.json", b"3", first)
    assert content(conditional, "manifest.json") == b"2"
    assert not conditional.replace(MISSING, b"3", first)
    assert names(conditional) == ["manifest.json"]


def winner(write: Callable[[bytes], bool], verb: str) -> bytes:
    """Let threads write at the same moment; return what the only one that won wrote.

    All bytes differ, also from those before: an ETag may be a digest, so that the same bytes make the same version.
    """
    start = Barrier(THREADS)

    def race(data: bytes) -> bool:
        start.wait(HANG)
        return write(data)

    texts = [f"{verb} by {number}".encode() for number in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as threads:
        (won,) = [text for text, written in zip(texts, threads.map(race, texts), strict=True) if written]
    return won


def test_of_racing_writes_one_wins(conditional: Store) -> None:
    for number in range(5):
        name = f"object-{number}"
        created = winner(partial(conditional.create, name), "created")
        assert content(conditional, name) == created
        old = conditional.read(name)[1]
        replaced = winner(partial(conditional.replace, name, old=old), "replaced")
        assert content(conditional, name) == replaced


def test_links_that_lead_out_of_a_folder_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    store = FolderStore(tmp_path / "store")
    store.put("folder/file", b"x")
    (tmp_path / "store" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "store" / "out").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "store" / "pipe")
    for name in ("link", "out/secret", "pipe", "folder"):
        with pytest.raises(DamagedError):
            store.read(name)
    assert names(store, "out") == names(store, "folder/file") == []


def test_unfinished_files_are_not_listed(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    with atomic.partial(tmp_path) as new:
        new.write_bytes(b"half")
        assert names(store) == []


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP])
def test_a_file_system_without_hard_links_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*paths: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    store = FolderStore(tmp_path)
    assert store.create("a", b"1")
    assert not store.create("a", b"2")
    assert content(store, "a") == b"1"


def test_a_file_system_without_locks_is_compared_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    store = FolderStore(tmp_path)
    store.put("a", b"1")
    _, first = store.read("a")
    assert store.replace("a", b"2", first)
    assert not store.replace("a", b"3", first)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match=r"store/a: cannot be written \(No space left on device\)"):
        FolderStore(tmp_path / "store").put("a", b"1")


@pytest.mark.parametrize("fault", [ERROR, BUSY, LOST, SLOW, CUT, DOUBLED])
def test_faults_of_a_network_do_not_show(fault: str) -> None:
    faulty = proxy("ministack")
    store, data = bucket(faulty.url), os.urandom(3 << 20)
    with faulty.doing(times(1, fault, "PUT")):
        store.put("a", data)
        assert faulty.faults == 1
    with faulty.doing(times(1, fault, "GET")):
        assert content(store, "a") == data
        assert faulty.faults == 1
    with faulty.doing(times(1, fault, "GET")):
        assert names(store) == ["a"]
        assert [request.is_listing for request in faulty.requests].count(True) == len(faulty.requests)


def test_an_answer_that_never_comes_is_an_error_that_may_be_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("readers.stores.waiting.RETRY_SECONDS", 1.0)
    monkeypatch.setattr("readers.stores.object_store.CLIENT_SECONDS", 0.5)
    faulty = proxy("ministack")
    store = bucket(faulty.url)
    with faulty.doing(times(100, BUSY)):
        for call in (lambda: store.read("a"), lambda: store.put("a", b""), lambda: names(store)):
            with pytest.raises(StoreBusyError, match=f"^{store.url}/"):
                call()


def test_a_wait_is_reported_once_for_all_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads read ten objects of a store that is busy at first. One line names the store and says why."""
    told: list[tuple[str, float]] = []
    monkeypatch.setattr("readers.stores.waiting.HEARD_SECONDS", 0.0)
    monkeypatch.setattr("readers.stores.object_store.CLIENT_SECONDS", 0.0)
    monkeypatch.setattr("readers.stores.heard._HEARD", _Heard())
    hear_of_waits(lambda why, seconds: told.append((why, seconds)))
    faulty = proxy("ministack")
    store = bucket(faulty.url)
    objects = [str(number) for number in range(10)]
    for name in objects:
        store.put(name, name.encode())
    assert not told
    with faulty.doing(times(15, BUSY)), ThreadPoolExecutor(5) as threads:
        assert list(threads.map(partial(content, store), objects)) == [name.encode() for name in objects]
    [(why, seconds)] = told
    assert why.startswith(f"{store.url}/")
    assert "503" in why
    assert RETRY_SECONDS - 60 < seconds <= RETRY_SECONDS


def test_a_wait_that_no_program_hears_is_in_the_log_of_python(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("readers.stores.heard._HEARD", _Heard())
    for _ in range(3):
        tell_of_wait("s3://b/a: no answer", 60)
    assert caplog.messages == ["s3://b/a: no answer; it is tried again for up to 60 s"]


class SlowServer:
    """Takes the bytes of an upload slowly, and answers when it has all."""

    def __init__(self, bytes_a_second: int) -> None:
        self._piece = bytes_a_second // 100
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                Thread(target=self._answer, args=(self._socket.accept()[0],), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with suppress(OSError), connection, connection.makefile("rb") as request:
            head = b"".join(iter(request.readline, b"\r\n")).lower()
            left = int(head.partition(b"content-length:")[2].split()[0])
            while left:
                left -= len(request.read(min(left, self._piece)))
                time.sleep(0.01)
            connection.sendall(b'HTTP/1.1 200 OK\r\netag: "a"\r\ncontent-length: 0\r\n\r\n')


def test_a_slow_upload_is_not_taken_for_a_dead_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client counts the seconds of an upload as silence."""
    url = SlowServer(8 << 20).url
    use_server(url, monkeypatch)
    monkeypatch.setattr(object_store, "SILENT_SECONDS", 0.3)
    monkeypatch.setattr(object_store, "SLOWEST", 4 << 20)
    monkeypatch.setattr(object_store, "STEP", 0.5)
    bucket(url, tries=0).put("large", bytes(8 << 20))
    assert bucket(url, tries=0).create("large", bytes(8 << 20))
    monkeypatch.setattr(object_store, "SLOWEST", 1 << 40)
    monkeypatch.setattr("readers.stores.waiting.RETRY_SECONDS", 1.0)
    with pytest.raises(StoreBusyError):
        bucket(url, tries=0).put("large", bytes(8 << 20))


def test_a_url_opens_its_store(tmp_path: Path) -> None:
    assert isinstance(open_store(str(tmp_path)), FolderStore)
    assert open_store(f"file://{tmp_path}").url == str(tmp_path)
    assert isinstance(open_store("gs://bucket/folder"), ObjectStore)
    assert isinstance(open_store("memory://folder"), FsspecStore)
    with pytest.raises(StoreError, match="Protocol not known"):
        open_store("nothing://folder")


@pytest.mark.parametrize(
    "url", ["s3://", "s3:///x", "gs://", "s3://b/../x", "s3://b/%2e%2e/x", "s3://b/a//b", "s3://b/a/./b", "s3://b/a\nb"]
)
def test_a_url_that_would_mean_another_folder_is_refused(url: str) -> None:
    """The client takes them as s3://b/x, and fails at others in a way that sounds as if another try could help."""
    with pytest.raises(RequestError, match="is not the URL of a folder in a bucket"):
        open_store(url)


def test_the_container_of_azure_is_not_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "YWFh")
    url = "abfss://container@account.dfs.core.windows.net/x"
    assert open_store(url).url == url


@pytest.mark.parametrize("url", ["s3://user:secret@bucket/a", "s3://user@bucket/a", "s3://bucket/a?key=secret"])
def test_a_url_with_a_key_in_it_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(RequestError, match=r"^s3://bucket/a: the URL has a user, a key or options") as refusal:
        open_store(url)
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize("module", ["obstore", "fsspec"])
def test_a_library_that_is_not_installed_is_named(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(StoreError, match=f"needs {module}; pip install"):
        open_store({"obstore": "s3://bucket/a", "fsspec": "memory://a"}[module])


def test_a_folder_of_fsspec_that_cannot_be_listed_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """`walk` of fsspec leaves it out, and with it raw files."""
    store = FsspecStore(f"memory://{uuid4().hex}")
    for name in ("a", "b/c", "b/d/e"):
        store.put(name, b"x")
    real = MemoryFileSystem.ls

    def ls(self: MemoryFileSystem, path: str, **options: object) -> object:
        if path.endswith("/b/d"):
            raise PermissionError(errno.EACCES, "no", path)
        return real(self, path, **options)

    monkeypatch.setattr(MemoryFileSystem, "ls", ls)
    with pytest.raises(StoreError, match="no"):
        names(store)


FSSPEC_CALLS: dict[str, tuple[str, Callable[[Store], object]]] = {
    "ls": ("600", lambda store: names(store)),
    "info": ("600", lambda store: store.read("a")),
    "cat_file": ("60", lambda store: store.read("a")),
    "open": ("600", lambda store: store.fetch("a", lambda piece: None)),
    "makedirs": ("600", lambda store: store.put("a", b"1")),
    "pipe_file": ("60", lambda store: store.put("a", b"1")),
    "rm_file": ("600", lambda store: store.delete(["a"])),
    "read": ("76", lambda store: store.fetch("a", lambda piece: None)),
}
"""A call of a file system, the seconds that it may take, and what needs it."""


@pytest.mark.parametrize("method", FSSPEC_CALLS)
def test_a_file_system_of_fsspec_that_never_answers_is_given_up(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It held builds and epochs for ever: many of these file systems have no limit for a silent server."""
    store, begun, go = FsspecStore(f"memory://{uuid4().hex}"), Event(), Event()
    store.put("a", b"12")

    def silent(*args: object, **options: object) -> None:
        begun.set()  # the clock jumps
        assert go.wait(HANG)

    monkeypatch.setattr(MemoryFile if method == "read" else MemoryFileSystem, method, silent)
    monkeypatch.setattr(waiting, "time", SimpleNamespace(monotonic=lambda: 1e6 if begun.is_set() else 0.0))
    seconds, call = FSSPEC_CALLS[method]
    with pytest.raises(StoreBusyError, match=f"no answer in {seconds} s"):
        call(store)
    go.set()


def test_an_error_of_a_library_of_a_file_system_is_one_of_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """paramiko and aiohttp have errors of their own for a connection that ended: they were tracebacks."""
    store = FsspecStore(f"memory://{uuid4().hex}")
    store.put("a", b"12")
    ended = type("SSHException", (Exception,), {"__module__": "paramiko.ssh_exception"})

    def cut(*args: object, **options: object) -> None:
        raise ended("Server connection dropped")

    monkeypatch.setattr(MemoryFileSystem, "cat_file", cut)
    with pytest.raises(StoreBusyError, match="/a: SSHException: Server connection dropped"):
        store.read("a")


@pytest.mark.parametrize(
    ("url", "variables", "signed"),
    [
        ("s3://bucket/a", {}, False),
        ("s3://bucket/a", {"AWS_ENDPOINT_URL": "https://minio.example"}, False),
        ("s3://bucket/a", {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, True),
        ("s3://bucket/a", {"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1", "AWS_ENDPOINT_URL": "https://a.example"}, True),
        ("s3://bucket/a", {"AWS_UNSIGNED_PAYLOAD": "false"}, True),
        ("gs://bucket/a", {}, True),
    ],
)
def test_bodies_are_signed_where_tls_does_not_protect_them(
    monkeypatch: pytest.MonkeyPatch, url: str, variables: dict[str, str], signed: bool
) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with mock.patch("obstore.store.from_url") as opened:
        ObjectStore(url)
    assert opened.call_args.kwargs.get("unsigned_payload", False) is not signed
