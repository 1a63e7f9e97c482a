"""A bucket as a `Store`: S3, Google and Azure, by obstore."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from readers.contract.errors import StoreBusyError, StoreError
from readers.stores.least_rate import LeastRate, gather
from readers.stores.store import SHORT_SECONDS, Data, Listed, Version, check_name
from readers.stores.waiting import Patience, answered, interruptible

if TYPE_CHECKING:
    from obstore.store import RetryConfig

SCHEMES = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss")
"""The schemes of URLs that obstore opens."""
LISTED = 1000
"""Entries that are passed on together: what a request lists."""
ALL_TRIES = 1 << 20
"""The client counts its tries, too. The clock shall limit them, not their number."""
CLIENT_SECONDS, CLIENT_PAUSE = 5.0, 2.0
"""The seconds for which the client itself tries again, in silence, and the most before a try. Then `Patience` does."""
CONNECT_SECONDS, SILENT_SECONDS = 10.0, 60.0
"""The most seconds until there is a connection, and those that a server may be silent before a request has failed."""
LONG_SECONDS = 3600
"""The most seconds of an answer that is an object, or of an upload. `LEAST_RATE` ends a slow object sooner."""
SLOWEST = 1 << 19
"""Bytes a second. The client counts the seconds of an upload as silence, so it gets this much longer for its size."""
STEP = 64.0
"""Uploads wait for a multiple of this number of seconds longer, because each number needs a client of its own."""
PIECE = 1 << 20
"""The least bytes for which `fetch` waits together."""
LEAST = 1
"""The least bytes that the client passes on together: the rate is known as soon as some come."""
NO_BUCKET = ("<Code>NoSuchBucket<", "<Code>ContainerNotFound<", "The specified bucket does not exist")
"""The words of S3, Azure and Google for a bucket that is not there."""
ONE_PUT = 1 << 30
"""Bytes up to which an object is one PUT: whole or not there. A larger one is an upload in parts."""
PART = 1 << 26
_CAUSE = re.compile(r'<Code>(\w{1,60})</Code>|message: "([^"\n]{1,100})"')
"""The code of a store's answer, or the words of the system about a connection."""
_STATUS = re.compile(r"non-2xx status code: ([0-9]{3})")
_PASSING = ("408", "409", "412", "423", "425", "429")
"""The statuses from 400 to 499 that another try may change."""
_PASSING_CODES = ("RequestTimeout", "ExpiredToken", "IncompleteBody")
"""The codes with which status 400 is such a one, too."""
_NEVER = ("301", "501", "505", "507")
_NEVER_WORDS = ("redirect without LOCATION", "Header missing from response", "ETag required")
"""The words of the client about a server that will not answer otherwise."""
_HINTS = {
    "RequestTimeTooSkewed": "set the clock of this machine",
    "ExpiredToken": "renew the credentials",
    "PermanentRedirect": "correct AWS_REGION or the endpoint",
    "AuthorizationHeaderMalformed": "correct AWS_REGION",
}
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")


def _signing(url: str, variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the option of S3 for bodies: over TLS, which protects them, they are not signed, as with AWS's clients.

    A SHA-256 of each body would take a third of the CPU time of an upload. Receipts have digests of all bytes anyway.
    """
    endpoint = next((variables[name] for name in _ENDPOINTS if variables.get(name)), "https://")
    decided = any(name.upper() == "AWS_UNSIGNED_PAYLOAD" for name in variables)
    is_s3 = url.startswith(("s3://", "s3a://"))
    return {"unsigned_payload": True} if is_s3 and not decided and endpoint.lower().startswith("https://") else {}


class ObjectStore:
    """The objects below a URL such as s3://bucket/folder. Credentials and endpoint come from the environment."""

    def __init__(self, url: str, retries: RetryConfig | None = None) -> None:
        try:
            import obstore
            from obstore import exceptions
        except ImportError:
            raise StoreError(f"{url}: needs obstore; pip install 'segpack[store]'") from None
        self.url = url.rstrip("/")
        self._obstore, self._exceptions = obstore, exceptions
        self._lost = (exceptions.AlreadyExistsError, exceptions.PreconditionError, FileNotFoundError)
        self._failed = (exceptions.BaseError, ValueError, OSError)
        self._final = (
            exceptions.PermissionDeniedError,
            exceptions.UnauthenticatedError,
            exceptions.InvalidPathError,
            exceptions.NotSupportedError,
            exceptions.UnknownConfigurationKeyError,
            ValueError,
        )
        self._ends = 2 if self.url.startswith(("s3://", "s3a://")) else 1
        """The client takes a 200 with an error in its body for the end of a listing, so S3 is asked for the rest."""
        self._retries, self._clients = retries, dict[tuple[float, int], Any]()
        try:
            self._store, self._short = self._client(0), self._client(0, SHORT_SECONDS)
        except self._failed as error:
            raise StoreError(f"{self.url}: {_reason(error)}") from error

    def _client(self, longer: float, most: int = LONG_SECONDS) -> Any:
        """Return a client that may be silent for `longer` more seconds. An answer ends after `most` seconds."""
        from obstore.store import from_url

        if (longer, most) not in self._clients:
            retries: RetryConfig = self._retries or {
                "max_retries": ALL_TRIES,
                "retry_timeout": timedelta(seconds=CLIENT_SECONDS),
                "backoff": {"init_backoff": timedelta(seconds=0.5), "max_backoff": timedelta(seconds=CLIENT_PAUSE)},
            }
            options: Any = {
                "timeout": timedelta(seconds=most),
                "allow_http": True,  # an endpoint without TLS is used only if the environment names it
                "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
                "read_timeout": timedelta(seconds=SILENT_SECONDS + longer),
            }
            self._clients[longer, most] = from_url(
                self.url, client_options=options, retry_config=retries, **_signing(self.url, os.environ)
            )
        return self._clients[longer, most]

    def _sender(self, data: Data) -> Any:
        """Return the client for an upload."""
        return self._client(longer_for(data))

    def list(self, folder: str) -> Iterator[Listed]:
        prefix = check_name(folder) if folder else None
        last, patience, ends = None, Patience(), 0
        while ends < self._ends:
            with self._errors(folder):
                try:
                    pages = iter(self._obstore.list(self._short, prefix, offset=last, chunk_size=LISTED))
                    while entries := interruptible(partial(next, pages, None)):
                        for entry in entries:
                            modified = entry["last_modified"].timestamp()
                            yield Listed(entry["path"], entry["size"], entry["e_tag"] or "", modified)
                            last = entry["path"]
                        patience, ends = Patience(), 0
                    ends += 1
                except self._exceptions.GenericError as error:  # a cut answer, which obstore does not ask for again
                    if _is_final(str(error)):
                        raise
                    patience.wait(StoreBusyError(f"{self.url}/{folder}: {_reason(error)}"))
                    # it goes on after the last name: names are sorted

    def read(self, name: str, start: int = 0, stop: int | None = None) -> tuple[bytes, Version]:
        check_name(name)
        return answered(partial(self._read_once, name, start, stop))

    def _read_once(self, name: str, start: int, stop: int | None) -> tuple[bytes, Version]:
        with self._errors(name):
            if start == 0 and stop is None:
                return self._read(name, {})
            if stop is not None and stop <= start:
                return b"", _version(interruptible(lambda: self._obstore.head(self._short, name)))
            try:
                return self._read(
                    name, {"range": (start, stop) if stop is not None else {"offset": start}}, start, stop
                )
            except self._failed as error:
                if isinstance(error, FileNotFoundError) or not _is_final(str(error)):
                    raise  # who did not answer is not asked for the size, too
                meta = interruptible(lambda: self._obstore.head(self._short, name))
                if meta["size"] > start:
                    raise
                return b"", _version(meta)  # no byte of an empty object can be asked for

    def _read(self, name: str, options: Any, start: int = 0, stop: int | None = None) -> tuple[bytes, Version]:
        def read() -> tuple[bytes, Version]:
            result = self._obstore.get(self._store, name, options=options)
            rate, size = LeastRate(f"{self.url}/{name}"), result.meta["size"]
            data = b"".join(gather(iter(result.stream(LEAST)), rate, sys.maxsize))
            if len(data) != min(size, size if stop is None else stop) - start:
                raise StoreBusyError(f"{self.url}/{name}: {len(data)} bytes came, which is not what was asked for")
            return data, _version(result.meta)

        return interruptible(read)

    def fetch(self, name: str, write: Callable[[memoryview], object]) -> None:
        check_name(name)
        result = answered(partial(self._begin, name))
        size, chunks, rate = result.meta["size"], iter(result.stream(LEAST)), LeastRate(f"{self.url}/{name}")
        while True:
            with self._errors(name):
                pieces = interruptible(lambda: gather(chunks, rate, PIECE))
            if not pieces:
                break
            for piece in pieces:
                size -= len(piece)
                write(piece)
        if size:
            raise StoreBusyError(f"{self.url}/{name}: {size} bytes of it did not arrive")

    def _begin(self, name: str) -> Any:
        with self._errors(name):
            return interruptible(lambda: self._obstore.get(self._store, name))

    def put(self, name: str, data: Data) -> None:
        check_name(name)
        answered(partial(self._put, name, data), longer_for(data))

    def _put(self, name: str, data: Data) -> None:
        with self._errors(name):
            is_large, client = memoryview(data).nbytes > ONE_PUT, self._sender(data)
            interruptible(lambda: self._obstore.put(client, name, data, use_multipart=is_large, chunk_size=PART))

    def delete(self, names: Iterable[str]) -> None:
        every = [check_name(name) for name in names]
        answered(partial(self._delete_all, every))

    def _delete_all(self, every: Sequence[str]) -> None:
        with self._errors(every[0] if every else ""):
            try:
                if every:
                    interruptible(lambda: self._obstore.delete(self._short, every))
            except FileNotFoundError:  # in some stores this ends the rest of the request
                for name in every:
                    self._delete(name)

    def _delete(self, name: str) -> None:
        with suppress(FileNotFoundError):
            interruptible(lambda: self._obstore.delete(self._short, name))

    def create(self, name: str, data: Data) -> bool:
        return self._put_if(name, data, "create")

    def replace(self, name: str, data: Data, old: Version) -> bool:
        version = {"e_tag": old.tag, "version": old.number}
        return self._put_if(name, data, {key: value for key, value in version.items() if value})

    def _put_if(self, name: str, data: Data, mode: Any) -> bool:
        check_name(name)
        with self._errors(name):
            client = self._sender(data)
            try:
                interruptible(lambda: self._obstore.put(client, name, data, mode=mode, use_multipart=False))
            except self._lost:
                return False
            return True

    @contextmanager
    def _errors(self, name: str) -> Iterator[None]:
        """Turn the errors of obstore into a StoreError that names the object."""
        try:
            yield
        except self._failed as error:
            if any(word in str(error) for word in NO_BUCKET):
                raise StoreError(f"{self.url}: there is no such bucket; make it, or correct its name") from error
            if isinstance(error, FileNotFoundError):
                raise FileNotFoundError(f"{self.url}/{name}: there is no such object") from error
            kind = StoreError if isinstance(error, self._final) or _is_final(str(error)) else StoreBusyError
            odd = isinstance(error, self._exceptions.InvalidPathError)
            hint = "; the client cannot name this object, so rename or delete it" if odd else _hint(str(error))
            raise kind(f"{self.url}/{name}: {_reason(error)}{hint}") from error


def longer_for(data: Data) -> float:
    """Return the seconds that an upload may take longer for its size."""
    return STEP * (memoryview(data).nbytes // int(STEP * SLOWEST))


def _version(meta: Any) -> Version:
    return Version(meta["e_tag"] or "", meta["version"] or "")


def _is_final(text: str) -> bool:
    """Return whether another try would have the same answer, by the status that an error names, or its words."""
    if any(words in text for words in _NEVER_WORDS):
        return True
    match = _STATUS.search(text)
    status = match[1] if match else ""
    if status == "400":
        code = _CAUSE.search(text)
        return code is not None and code[1] not in _PASSING_CODES
    return status in _NEVER or (status.startswith("4") and status not in _PASSING)


def _hint(text: str) -> str:
    return next((f"; {hint}" for code, hint in _HINTS.items() if f"<Code>{code}<" in text), "")


def _reason(error: BaseException) -> str:
    """Return the first line of an error, and the cause that obstore names in the pages it adds."""
    text = str(error).strip() or type(error).__name__
    first = text.partition("\n")[0].partition(": <")[0][:300]
    cause = _CAUSE.search(text)
    return f"{first} ({next(filter(None, cause.groups()))})" if cause else first
