"""The output folder: made and marked by the packer, else not touched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from packer.errors import TargetError, first_of
from packer.publish.atomic import target_errors, write_atomic
from packer.publish.lock import locked
from readers.contract.atomic import PARTIAL, make_folder, sync_folder
from readers.contract.leftovers import sweep
from readers.contract.manifest import CELLS, FORMAT, GENERATIONS, LIVE, LOCK, MANIFEST, MARK, SHARDS
from readers.contract.regular_files import open_raw
from readers.stores.open_store import is_url, url_of

STAMPS = "stamps"
STAMP_SUFFIX = ".stamps"
"""The folder with the states of the rows when they were read; see packer/shards/stamps.py."""
REMARKS = "remarks"
"""The folder with what the build of each generation noticed; see remarks.py."""
PLANS = "plans"
"""The folder with the plans that workers on other machines read while they build."""
TICKETS = "tickets"
"""The folder with the tickets of plans; see packer/publish/ticket.py."""
MARK_TEXT = "This folder belongs to segpack's packer: it adds, replaces and removes files here.\n"


def raw_and_out(raw: Path, out: Path) -> tuple[Path, Path]:
    """Return RAW and OUT in this order, also if they were given in the other one: one is a pack, the other is not."""
    return (out, raw) if _is_target(raw) and not _is_target(out) and _names(out) else (raw, out)


def check_target(out: Path, raw: Path | None = None) -> None:
    """Refuse a folder that holds anything but a pack: the packer touches only what it made.

    If `raw` does not exist or is empty, the two are probably swapped.
    """
    if out.is_dir() and not _is_target(out):
        names = _names(out)
        others = [name for name in names if not name.startswith((PARTIAL, LOCK))]
        if others and MARK not in names:  # else another part of a plan has just marked it
            swapped = raw is not None and not raw.is_file() and not _names(raw)
            raise TargetError(
                f"{out}: exists and is not a packed data set (it holds {', '.join(first_of(others, 3))}); "
                + (f"RAW comes first: packer build {out} {raw}" if swapped else "name a new or an empty folder")
            )
    elif out.exists() and not out.is_dir():
        raise TargetError(f"{out}: is a file; name a new or an empty folder")


def _is_target(folder: Path) -> bool:
    return (folder / MARK).is_file() or holds_pack(folder)


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def holds_pack(folder: Path) -> bool:
    """Return whether a folder is a pack. A raw folder may have a manifest.json of its own."""
    try:
        with open_raw(folder / MANIFEST) as file:
            return (folder / MARK).is_file() or is_our_manifest(file.read(100))
    except OSError:
        return False


def is_our_manifest(head: bytes) -> bool:
    """Return whether a manifest with these first bytes belongs to a pack: others use this name, too."""
    return f'"format": "{FORMAT}"'.encode() in head


def is_ours(out: Path) -> bool:
    """Return whether the packer made this folder: it holds a pack, or a build has begun one."""
    return (out / MARK).is_file()


def make_target(out: Path) -> None:
    """Make the folder, so that it can be locked."""
    if is_url(out):
        raise TargetError(f"{url_of(out)}: expected a folder of this machine, and no URL")
    check_target(out)
    try:
        make_folder(out)
    except OSError as error:
        raise TargetError(f"{out}: cannot be written to ({error.strerror})") from error


@contextmanager
def locked_target(out: Path) -> Iterator[None]:
    """Hold the lock of a pack from before it is planned, in a folder that is made if there is none. A folder that was
    made and got nothing goes again."""
    is_new = not out.exists()
    make_target(out)
    with locked(out):
        try:
            yield
        finally:
            if is_new and [path.name for path in out.iterdir()] == [LOCK]:
                (out / LOCK).unlink()
                out.rmdir()


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


def sync_shards(out: Path) -> None:
    """Bring the names of all shards to the disk, once before something names them. Their bytes are there already."""
    for folder in (out / SHARDS, out / CELLS):
        if folder.is_dir():
            with target_errors(folder):
                sync_folder(folder)


def tidy(out: Path) -> None:
    """Remove the unfinished files of commands that were killed. Parts of the same pack may be built now."""
    for name in ("", SHARDS, CELLS, GENERATIONS, STAMPS, REMARKS, PLANS, LIVE, f"{LIVE}/{GENERATIONS}"):
        sweep(out / name)
    for folder in (out / TICKETS).glob("*"):
        sweep(folder)
