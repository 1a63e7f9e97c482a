"""Write files of a pack atomically, with the errors of the packer; remove the leftovers of a worker that was killed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from packer.errors import BusyError, TargetError
from readers.contract import atomic
from readers.contract.atomic import partial_path, remove_unfinished
from readers.contract.errors import StoreBusyError, StoreError


@contextmanager
def target_errors(path: Path) -> Iterator[None]:
    """Turn every OSError inside into a TargetError that names this path."""
    try:
        yield
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else error
        raise TargetError(f"{path}: cannot be written ({why})") from error


@contextmanager
def store_errors() -> Iterator[None]:
    """Turn the errors of a store into errors of the packer."""
    try:
        yield
    except StoreBusyError as error:
        raise BusyError(str(error)) from error
    except StoreError as error:
        raise TargetError(str(error)) from error


def write_atomic(path: Path, data: str | bytes) -> None:
    """Write a small file atomically. Raises TargetError."""
    with target_errors(path):
        atomic.write_atomic(path, data)


def remove_partials(folder: Path, process: int) -> None:
    """Remove the unfinished files of a process of this machine that was killed."""
    for private in folder.glob(partial_path(folder, process, "*").name):
        remove_unfinished(private)
