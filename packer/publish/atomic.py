"""Putting files in place so that a kill or a power cut at any instant leaves the old state or the new one."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from packer.errors import TargetError

PARTIAL = ".partial-"
"""What the names of folders begin with that hold files not in place yet."""


@contextmanager
def partial(folder: Path) -> Iterator[Path]:
    """A path to write to, in a folder of its own beside the final files; whatever is left there is gone at the end."""
    private = folder / f"{PARTIAL}{os.getpid()}-{secrets.token_hex(8)}"
    private.mkdir()
    try:
        yield private / "new"
    finally:
        shutil.rmtree(private, ignore_errors=True)


def remove_partials(folder: Path, process: int) -> None:
    """Remove what a process that was killed left on its way."""
    for private in folder.glob(f"{PARTIAL}{process}-*"):
        shutil.rmtree(private, ignore_errors=True)


def sweep(folder: Path) -> None:
    """Remove what was on its way when somebody was killed: only who holds the lock may."""
    for private in folder.glob(f"{PARTIAL}*"):
        if private.is_dir() and not private.is_symlink():
            shutil.rmtree(private, ignore_errors=True)


def put(written: Path, target: Path) -> None:
    """Bring a written file to the disk, then to its name. The folder is synced apart, once for many files.

    The kernel need not remember its bytes: it would forget others for them, such as raw files that are yet to be read.
    """
    with written.open("rb") as file:
        os.fsync(file.fileno())
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    written.replace(target)


@contextmanager
def putting(target: Path) -> Iterator[None]:
    """What goes wrong inside is told with the file's final name."""
    try:
        yield
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else error
        raise TargetError(f"{target}: cannot be written ({why})") from error


def put_text(text: str, target: Path) -> None:
    """Write a small file whole, and bring it and its name to the disk."""
    with putting(target):
        with partial(target.parent) as path:
            path.write_text(text, encoding="utf-8")
            put(path, target)
        sync_folder(target.parent)


def make_folder(folder: Path) -> None:
    """Make a folder and those it lies in, and bring their names to the disk."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
