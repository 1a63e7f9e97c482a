"""A folder that appears when everything in it is written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from packer.errors import TargetError
from packer.publish.atomic import target_errors
from readers.contract.atomic import partial, sync_folder


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Give a folder to write into, which becomes `folder` at the end. Raise TargetError if that has files."""
    _check(folder)
    parent = folder.absolute().parent
    with target_errors(folder):
        parent.mkdir(parents=True, exist_ok=True)
        with partial(parent) as new:
            new.mkdir()
            yield new
            new.replace(folder)
        sync_folder(parent)


def _check(folder: Path) -> None:
    if folder.is_dir() and not folder.is_symlink():
        if any(folder.iterdir()):
            raise TargetError(f"{folder}: is not empty; name a new or an empty folder")
    elif folder.exists() or folder.is_symlink():
        raise TargetError(f"{folder}: is not a folder; name a new or an empty folder")
