"""Write files and folders of a pack atomically; remove the leftovers of processes that were killed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from packer.errors import TargetError
from readers.contract import atomic
from readers.contract.atomic import PARTIAL


@contextmanager
def target_errors(path: Path) -> Iterator[None]:
    """Turn every OSError inside into a TargetError that names this path."""
    try:
        yield
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else error
        raise TargetError(f"{path}: cannot be written ({why})") from error


def write_atomic(path: Path, data: str | bytes) -> None:
    """Write a small file atomically. Raises TargetError."""
    with target_errors(path):
        atomic.write_atomic(path, data)


def remove_partials(folder: Path, process: int) -> None:
    """Remove the unfinished files of a process that was killed."""
    for private in folder.glob(f"{PARTIAL}{process}-*"):
        shutil.rmtree(private, ignore_errors=True)


def sweep(folder: Path) -> None:
    """Remove the unfinished files of all processes. The caller must hold the lock."""
    for private in folder.glob(f"{PARTIAL}*"):
        if private.is_dir() and not private.is_symlink():
            shutil.rmtree(private, ignore_errors=True)
