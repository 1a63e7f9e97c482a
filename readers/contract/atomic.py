"""Write files so that a kill or a power cut at any moment leaves the old file or the new one, never a part."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path

from readers.contract.system import host

PARTIAL = ".partial-"
"""The prefix of unfinished files, and of folders that hold some. The machine and the process id follow."""
_NAMESPACE = ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid")


@cache
def machine() -> str:
    """Return a text that two processes have in common if each can see by an id whether the other one lives.

    It stands for the host, its boot and the namespace of the ids: two containers of one host have equal ids.
    """
    facts = [host()]
    with suppress(OSError):  # only Linux has these
        facts += [Path(_NAMESPACE[0]).read_text(), os.readlink(_NAMESPACE[1])]  # noqa: PTH115 - it is not a path
    return blake2b("\0".join(facts).encode(), digest_size=8).hexdigest()


def partial_path(folder: Path, process: int, name: str) -> Path:
    """Return the path of an unfinished file of a process of this machine, or of a folder for some."""
    return folder / f"{PARTIAL}{machine()}-{process}-{name}"


def write_atomic(path: Path, data: str | bytes | bytearray | memoryview) -> None:
    """Write a small file, and bring its bytes and its name to the disk."""
    put_in_place(path, data)
    sync_folder(path.parent)


def put_in_place(path: Path, data: str | bytes | bytearray | memoryview) -> None:
    """Write a small file next to its name, bring its bytes to the disk, and rename it: three calls of a file server.

    Call `sync_folder` afterwards, once for many files.
    """
    with partial_file(path.parent) as new:
        with new.open("xb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            _sync(file.fileno())
        new.replace(path)


@contextmanager
def partial_file(folder: Path) -> Iterator[Path]:
    """Yield a path in `folder` for a new file, which the caller renames. After an error nothing is left there."""
    new = partial_path(folder, os.getpid(), secrets.token_hex(8))
    try:
        yield new
    except BaseException:
        try:
            remove_unfinished(new)
        finally:
            remove_unfinished(new)  # the disk failed once, or a signal came
        raise


@contextmanager
def partial(folder: Path) -> Iterator[Path]:
    """Make a private folder in `folder`, yield a path in it to write to, and remove the private folder at the end."""
    private = partial_path(folder, os.getpid(), secrets.token_hex(8))
    try:
        private.mkdir()
        yield private / "new"
    finally:
        try:
            _remove_private(private)
        except BaseException:  # a signal that ends the command; a second one would end the process
            _remove_private(private)
            raise


def _remove_private(private: Path) -> None:
    """Remove a private folder, by one call if all of its files have been moved."""
    try:
        private.rmdir()
    except OSError:
        shutil.rmtree(private, ignore_errors=True)
        if private.exists():  # the disk failed once
            shutil.rmtree(private, ignore_errors=True)


def remove_unfinished(path: Path) -> None:
    """Remove an unfinished file, or a folder that holds some, if that is possible."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        shutil.rmtree(path, ignore_errors=True)


def move_into_place(written: Path, path: Path, move: Callable[[Path, Path], object] = os.replace) -> int:
    """Bring a written file to the disk, then rename it, or link it with `os.link`. Return its bytes.

    Call `sync_folder` afterwards, once for many files.

    The kernel drops the file from its cache: to keep it, it would drop others, such as raw files that are read next.
    """
    with written.open("rb") as file:
        _sync(file.fileno())
        size = os.fstat(file.fileno()).st_size
    move(written, path)
    return size


def _sync(file: int) -> None:
    os.fsync(file)
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)


def in_folder(folder: Path, write: Callable[[], object]) -> None:
    """Call a function that writes into a folder; make the folder if it is missing, and call it again."""
    try:
        write()
    except FileNotFoundError:
        make_folder(folder)
        write()


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, and bring their names to the disk."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk. Windows has no call for it."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
