"""Any other URL as a `Store`, by fsspec: what torch brings along. It has no conditional writes.

Most file systems of fsspec wait for a silent server for ever, so each call has a limit of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from functools import partial
from typing import Any

from readers.contract.errors import StoreBusyError, StoreError
from readers.contract.files import BUFFER
from readers.stores.least_rate import call_seconds
from readers.stores.store import SHORT_SECONDS, Data, Listed, Version, check_name
from readers.stores.waiting import within

_TAGS = ("ETag", "etag", "e_tag", "checksum", "mtime", "LastModified", "last_modified", "modified", "created")
"""The words of file systems for the version of a file, the best first."""


class FsspecStore:
    """The objects below a URL of any scheme that fsspec knows, such as alluxiofs://… or sftp://….

    A write that must not replace another one is refused: fsspec has no such call that all file systems keep.
    """

    def __init__(self, url: str) -> None:
        try:
            import fsspec
        except ImportError:
            raise StoreError(f"{url}: needs fsspec; pip install fsspec") from None
        self.url = url.rstrip("/")
        with self._errors(""):
            self._files, self._root = fsspec.core.url_to_fs(self.url, use_listings_cache=False)
        self._root = self._root.rstrip("/")

    def _path(self, name: str) -> str:
        return f"{self._root}/{check_name(name)}"

    def list(self, folder: str) -> Iterator[Listed]:
        folders = [self._path(folder) if folder else self._root]
        with self._errors(folder):
            while folders:
                for entry in self._entries(folders.pop()):
                    if entry["type"] == "directory":
                        folders.append(entry["name"])
                        continue
                    name = entry["name"].lstrip("/").removeprefix(self._root.lstrip("/")).lstrip("/")
                    yield Listed(name, self._size(name, entry), _tag(entry), _modified(entry))

    def _entries(self, folder: str) -> Iterator[dict[str, Any]]:
        """List a folder. `walk` of fsspec would leave out folders that it cannot list, as if they were empty."""
        try:
            entries = within(SHORT_SECONDS, lambda: self._files.ls(folder, detail=True))
        except (FileNotFoundError, NotADirectoryError):
            return
        paths = {folder.strip("/"), ""}  # a folder may be among its own entries
        yield from (entry for entry in entries if entry["name"].strip("/") not in paths)

    def read(self, name: str, start: int = 0, stop: int | None = None) -> tuple[bytes, Version]:
        path = self._path(name)
        with self._errors(name):
            info = self._file(name, path)
            size = self._size(name, info)
            end = size if stop is None else min(stop, size)
            if start == 0 and end == size:  # it may have been replaced by another size just now
                data = within(call_seconds(size), lambda: self._files.cat_file(path))
            elif end > start:
                data = within(call_seconds(end - start), lambda: self._files.cat_file(path, start, end))
            else:
                data = b""
            return bytes(data), Version(_tag(info))

    def fetch(self, name: str, write: Callable[[memoryview], object]) -> None:
        path = self._path(name)
        with self._errors(name):
            self._file(name, path)
            begin = partial(self._files.open, path, "rb", block_size=BUFFER, cache_type="readahead")
            file = within(SHORT_SECONDS, begin)
        with ExitStack() as closing:
            closing.callback(file.close)
            while piece := self._next_piece(name, file, closing):
                write(memoryview(piece))

    def _next_piece(self, name: str, file: Any, closing: ExitStack) -> bytes:
        with self._errors(name):
            try:
                piece: bytes = within(call_seconds(BUFFER), lambda: file.read(BUFFER))
            except TimeoutError:
                closing.pop_all()  # its thread still reads the file, and closing could wait for that
                raise
            return piece

    def put(self, name: str, data: Data) -> None:
        path = self._path(name)
        with self._errors(name):
            within(SHORT_SECONDS, lambda: self._files.makedirs(path.rpartition("/")[0], exist_ok=True))
            within(call_seconds(memoryview(data).nbytes), lambda: self._files.pipe_file(path, bytes(data)))

    def delete(self, names: Iterable[str]) -> None:
        for path in list(map(self._path, names)):
            with self._errors(path), suppress(FileNotFoundError):
                within(SHORT_SECONDS, partial(self._files.rm_file, path))

    def create(self, name: str, data: Data) -> bool:
        raise StoreError(f"{self.url}/{check_name(name)}: {self._scheme} has no conditional writes")

    def replace(self, name: str, data: Data, old: Version) -> bool:
        return self.create(name, data)

    @property
    def _scheme(self) -> str:
        return self.url.partition(":")[0]

    def _size(self, name: str, info: dict[str, Any]) -> int:
        if info["size"] is None:
            raise StoreError(f"{self.url}/{name}: {self._scheme} shows no size of it")
        return int(info["size"])

    def _file(self, name: str, path: str) -> dict[str, Any]:
        """Return what the file system knows of a file."""
        info: dict[str, Any] = within(SHORT_SECONDS, lambda: self._files.info(path))
        if info["type"] != "file":
            raise FileNotFoundError(name)
        return info

    @contextmanager
    def _errors(self, name: str) -> Iterator[None]:
        """Turn the errors of a file system into a StoreError that names the object."""
        try:
            yield
        except (FileNotFoundError, NotADirectoryError) as error:
            raise FileNotFoundError(f"{self.url}/{name}: there is no such object") from error
        except (ImportError, ValueError, PermissionError) as error:
            raise StoreError(f"{self.url}/{name}: {error}") from error
        except (OSError, EOFError) as error:
            raise StoreBusyError(f"{self.url}/{name}: {error}") from error
        except Exception as error:
            if type(error).__module__ == "builtins":
                raise
            # the libraries of file systems have errors of their own for a connection that ended
            raise StoreBusyError(f"{self.url}/{name}: {type(error).__name__}: {error}") from error


def _tag(info: dict[str, Any]) -> str:
    tags = (_plain(info[key]) for key in _TAGS if info.get(key) is not None)
    return f"{info['size']}-{next(tags, '')}"


def _modified(info: dict[str, Any]) -> float:
    times = (_plain(info[key]) for key in _TAGS if isinstance(info.get(key), (datetime, int, float)))
    return float(next(times, 0))


def _plain(value: Any) -> Any:
    return value.timestamp() if isinstance(value, datetime) else value
