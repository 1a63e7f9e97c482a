"""A folder as a `Store`, on a local disk or on any mount."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISREG

from readers.contract.atomic import PARTIAL, make_folder, move_into_place, partial, sync_folder, write_atomic
from readers.contract.errors import StoreError
from readers.contract.files import BUFFER, plain_file
from readers.contract.system import lock_file, open_to_read
from readers.stores.store import Data, Listed, Store, Version, check_name

READ, WRITTEN = "read", "written"
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EBADF)


class FolderStore:
    """The folder `root`. Files are written next to their names and brought to the disk before they get these.

    `create` is a hard link, which is exclusive on network file systems, too. `replace` compares and renames under a
    lock; where locks reach one machine only, so does it. Links that lead out of the folder are not followed.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root)

    @property
    def url(self) -> str:
        return str(self.root)

    def path(self, name: str) -> Path:
        """Return the path of an object."""
        return self.root / check_name(name)

    def list(self, folder: str) -> Iterator[Listed]:
        for name, entry in self._entries(folder):
            with suppress(FileNotFoundError):  # deleted, or a link to nothing
                status = entry.stat()
                if S_ISREG(status.st_mode):
                    yield Listed(name, status.st_size, _tag(status), status.st_mtime)

    def names(self, folder: str) -> Iterator[str]:
        """Yield the name of every object below a folder, as `list` does, and ask for the state of none."""
        return (name for name, entry in self._entries(folder) if entry.is_file())

    def _entries(self, folder: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
        top = self.path(folder) if folder else self.root
        if not top.resolve().is_relative_to(self.root.resolve()):
            return
        folders = [(top, f"{folder}/" if folder else "")]
        while folders:
            path, prefix = folders.pop()
            with (
                self._errors(prefix, READ),
                suppress(FileNotFoundError, NotADirectoryError),
                os.scandir(path) as entries,
            ):
                for entry in entries:
                    if entry.name.startswith(PARTIAL):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        folders.append((Path(entry.path), f"{prefix}{entry.name}/"))
                    else:
                        yield prefix + entry.name, entry

    def read(self, name: str, start: int = 0, stop: int | None = None) -> tuple[bytes, Version]:
        with self._errors(name, READ), plain_file(self.root, self.path(name)).open("rb") as file:
            status = os.fstat(file.fileno())
            file.seek(start)
            data = file.read(-1 if stop is None else max(0, min(stop, status.st_size) - start))
            return data, Version(_tag(status))

    def fetch(self, name: str, write: Callable[[memoryview], object]) -> None:
        with self._errors(name, READ):
            file = plain_file(self.root, self.path(name)).open("rb", buffering=0)
        buffer = memoryview(bytearray(BUFFER))
        with file:
            while True:
                with self._errors(name, READ):
                    count = file.readinto(buffer)
                if not count:
                    return
                write(buffer[:count])

    def put(self, name: str, data: Data) -> None:
        path = self.path(name)
        with self._errors(name):
            make_folder(path.parent)
            write_atomic(path, data)

    def delete(self, names: Iterable[str]) -> None:
        folders = set()
        for name in names:
            path = self.path(name)
            with suppress(FileNotFoundError), self._errors(name):
                path.unlink()
                folders.add(path.parent)
        for folder in folders:
            sync_folder(folder)

    def create(self, name: str, data: Data) -> bool:
        path = self.path(name)
        with self._errors(name):
            make_folder(path.parent)
            with partial(path.parent) as new:
                new.write_bytes(data)
                try:
                    move_into_place(new, path, os.link)
                except FileExistsError:
                    return False
                except OSError as error:
                    if error.errno not in _NO_LINKS:
                        raise
                    with self._locked():
                        if os.path.lexists(path):
                            return False
                        move_into_place(new, path)
            sync_folder(path.parent)
            return True

    def replace(self, name: str, data: Data, old: Version) -> bool:
        path = self.path(name)
        with suppress(FileNotFoundError), self._errors(name), self._locked():
            if _tag(plain_file(self.root, path).stat()) == old.tag:
                write_atomic(path, data)
                return True
        return False

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold a lock on the folder itself. On a file system without such locks the lock of the pack has to do."""
        folder = open_to_read(self.root, "O_DIRECTORY")
        try:
            try:
                lock_file(folder)
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise
            yield
        finally:
            os.close(folder)

    @contextmanager
    def _errors(self, name: str, verb: str = WRITTEN) -> Iterator[None]:
        """Turn errors of the operating system into a StoreError that names the object."""
        try:
            yield
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self.root / name)) from None
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else error
            raise StoreError(f"{self.root / name}: cannot be {verb} ({why})") from error


def store_of(out: Path | Store) -> Store:
    """Return the store of a pack that is given as a folder or as a store."""
    return FolderStore(out) if isinstance(out, Path) else out


def _tag(status: os.stat_result) -> str:
    return f"{status.st_dev:x}-{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"
