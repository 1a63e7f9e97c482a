"""The output folder: made and marked by the packer, else not touched."""

from __future__ import annotations

from pathlib import Path

from packer.errors import TargetError, first_of
from packer.publish.atomic import make_folder, sweep, write_atomic
from packer.publish.lock import NAME as LOCK
from readers.contract.atomic import PARTIAL
from readers.contract.manifest import GENERATIONS, MARK, SHARDS
from readers.pack import is_pack

STAMPS = "stamps"
"""The folder with size and times of the raw files when they were read; see packer/shards/stamps.py."""
MARK_TEXT = "This folder belongs to segpack's packer: it adds, replaces and removes files here.\n"


def check_target(out: Path) -> None:
    """Refuse a folder that holds anything but a pack: the packer touches only what it made."""
    if out.is_dir() and not (out / MARK).is_file() and not is_pack(out):
        others = sorted(path.name for path in out.iterdir() if not path.name.startswith((PARTIAL, LOCK)))
        if others:
            raise TargetError(
                f"{out}: exists and is not a packed data set (it holds {', '.join(first_of(others, 3))}); "
                "name a new or an empty folder"
            )
    elif out.exists() and not out.is_dir():
        raise TargetError(f"{out}: is a file; name a new or an empty folder")


def is_ours(out: Path) -> bool:
    """Return whether the packer made this folder: it holds a pack, or a build has begun one."""
    return (out / MARK).is_file()


def make_target(out: Path) -> None:
    """Make the folder, so that it can be locked."""
    check_target(out)
    try:
        make_folder(out)
    except OSError as error:
        raise TargetError(f"{out}: cannot be written to ({error.strerror})") from error


def prepare_target(out: Path) -> None:
    """Make the folders of a pack, marked as ours before anything else is written. The lock must be held."""
    check_target(out)
    try:
        if not (out / MARK).is_file():
            write_atomic(out / MARK, MARK_TEXT)
        for name in (SHARDS, GENERATIONS):
            make_folder(out / name)
    except OSError as error:
        raise TargetError(f"{out}: cannot be written to ({error.strerror})") from error


def tidy(out: Path) -> None:
    """Remove the unfinished files of commands that were killed. The lock must be held."""
    for name in ("", SHARDS, GENERATIONS, STAMPS):
        sweep(out / name)
