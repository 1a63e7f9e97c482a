"""`Budget`: the bytes that a cache may have on the disk, and the deletion of what was not used for the longest time.

Everything below `packs/` counts, unfinished files as if they were finished: each gets its full size under the lock of
the budget, before a byte is fetched. A shard is deleted as a whole, and only if no process has it open.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from readers.contract.atomic import PARTIAL
from readers.contract.errors import ReadError, RequestError
from readers.contract.manifest import GENERATIONS, SHARDS
from readers.contract.receipt import SUFFIX
from readers.stores.locks import ReadLock, if_unused, only_owner

SLACK = 64
"""If anything is deleted, then this part of the budget at least, so that not every shard lists the cache."""
_OF_SHARD = re.compile(r"(.+-[0-9a-f]{32})\.")


class CacheFullError(ReadError):
    """All that could be deleted is deleted, and what is being read or fetched leaves too little."""


class Unit(NamedTuple):
    """Files that come and go together. Who reads them has a lock of the first, which is made last."""

    used: float
    bytes: int
    files: tuple[Path, ...]


class Budget:
    """The byte budget of a cache folder: the least of those that running processes asked for."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder, self.packs = folder, folder / "packs"
        self._locks, self._limits, self.asked = folder / "locks", folder / "limits", limit
        for path in (self.packs, self._locks, self._limits):
            path.mkdir(parents=True, exist_ok=True)
        self._lock, self._noted_in = self._locks / "budget", self._locks / "used"
        with only_owner(self._lock):
            mine = self._limits / str(limit)
            mine.touch()
            self._mine = ReadLock(mine)  # as long as this object, which counts as a running process
            with suppress(CacheFullError):
                self._note(self._make_space(0, self._limit()))

    def fetch_lock(self, unit: Path) -> Path:
        """Return the file whose lock the one has who fetches a unit: a shard's stem, or a file."""
        name = os.fsencode(unit.relative_to(self.packs))
        return self._locks / hashlib.sha256(name).hexdigest()[:32]

    def limit(self) -> int:
        """Return the budget, in bytes."""
        try:
            with only_owner(self._lock):
                return self._limit()
        except OSError as error:
            raise unusable(self.folder, error) from error

    def reserve(self, partial: Path, sizes: Mapping[str, int]) -> None:
        """Make a folder with files of these sizes, after deleting what must go. Raises CacheFullError."""
        needed = sum(sizes.values())
        with only_owner(self._lock):
            limit, used = self._limit(), self._noted()
            if needed > limit:
                raise RequestError(
                    f"{self.folder}: {partial.name[len(PARTIAL) :]} has {needed:,} bytes, and the budget is {limit:,}; "
                    "give a higher cache_bytes="
                )
            if used is None or used + needed > limit:
                used = self._make_space(needed, limit)
            self._note(used + needed)
            partial.mkdir(parents=True)
            for name, size in sizes.items():
                with (partial / name).open("xb") as file:
                    file.truncate(size)

    def publish(self, partial: Path, names: Sequence[str]) -> None:
        """Move the files of a fetched unit out of its folder, in this order.

        No process counts files in the same moment.
        """
        with only_owner(self._lock):
            for name in names:
                _remove(partial.parent / name)
                (partial / name).replace(partial.parent / name)
            partial.rmdir()

    def is_there(self) -> bool:
        """Return whether the cache still exists since it was opened."""
        return self._mine.is_at(self._limits / str(self.asked))

    def delete(self, lock: Path, files: tuple[Path, ...]) -> bool:
        """Delete a unit unless it is being read; return whether it is gone."""
        with only_owner(self._lock):
            return _delete((lock, *files))

    def _limit(self) -> int:
        """Return the least limit that a running process has; the limits of processes that ended are deleted."""
        limits = (path for path in self._limits.iterdir() if path.name.isdecimal())  # mounts add files of their own
        for path in sorted(limits, key=lambda path: int(path.name)):
            with if_unused(path) as unused:
                if not unused:
                    return int(path.name)
                path.unlink()
        raise ReadError(f"{self.folder}: the cache was deleted while it was read; open the data set again")

    def _noted(self) -> int | None:
        """Return at least as many bytes as the cache has; None if no process noted them."""
        try:
            return int(self._noted_in.read_text())
        except (OSError, ValueError):
            return None

    def _note(self, used: int) -> None:
        self._noted_in.write_text(f"{used}\n")

    def _make_space(self, needed: int, limit: int) -> int:
        """Delete until `needed` bytes fit; return the bytes that are left. A crash leaves files without their last."""
        left, units = 0, []
        for unit in self._units():
            left += unit.bytes
            units.append(unit)
        if left + needed > limit:
            for unit in sorted(units):
                if left + needed + limit // SLACK <= limit:
                    break
                if _delete(unit.files):
                    left -= unit.bytes
        if left + needed > limit:
            self._note(left)
            raise CacheFullError(
                f"{self.folder}: the budget is {limit:,} bytes, and {left:,} bytes of it are being read or fetched, "
                f"so {needed:,} more do not fit"
            )
        return left

    def _units(self) -> Iterator[Unit]:
        """Yield all that counts.

        Files of a fetch that was killed are deleted; files of other fetches have no time of use.
        """
        for pack in sorted(self.packs.iterdir()):
            for folder in (pack / SHARDS, pack / GENERATIONS):
                for name, files in _by_unit(folder).items():
                    unit = self._unit(folder / name, files)
                    if unit is not None:
                        yield unit

    def _unit(self, path: Path, files: dict[str, os.stat_result]) -> Unit | None:
        lock = path.name if path.name in files else path.name + SUFFIX
        size = sum(status.st_size for status in files.values())
        if lock in files:
            paths = (path.with_name(lock), *(path.with_name(name) for name in files if name != lock))
            return Unit(files[lock].st_mtime, size, paths)
        with if_unused(self.fetch_lock(path)) as unused:
            if unused:  # no process fetches this: the one that did was killed
                for name in files:
                    _remove(path.with_name(name))
                shutil.rmtree(partial_folder(path), ignore_errors=True)
                return None
        return Unit(float("inf"), size + _size(partial_folder(path)), ())


def unusable(folder: Path, error: OSError) -> ReadError:
    """Return the error for a cache whose files cannot be opened, read or written."""
    return ReadError(
        f"{folder}: the cache cannot be used ({error}); delete it, or make it usable, while nothing reads it"
    )


def partial_folder(unit: Path) -> Path:
    """Return the folder in which a unit is fetched."""
    return unit.with_name(PARTIAL + unit.name)


def _by_unit(folder: Path) -> dict[str, dict[str, os.stat_result]]:
    """Return the files of a folder by the unit to which they belong. One that is being fetched may have none."""
    units: dict[str, dict[str, os.stat_result]] = {}
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(PARTIAL):
                units.setdefault(entry.name[len(PARTIAL) :], {})
                continue
            stem = _OF_SHARD.match(entry.name) if folder.name == SHARDS else None
            with suppress(FileNotFoundError):
                units.setdefault(stem[1] if stem else entry.name, {})[entry.name] = entry.stat(follow_symlinks=False)
    return units


def _size(folder: Path) -> int:
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        return sum(entry.stat(follow_symlinks=False).st_size for entry in entries)
    return 0


def _delete(files: tuple[Path, ...]) -> bool:
    """Delete the files of a unit if no process reads it; the first goes first."""
    if not files:
        return False
    with if_unused(files[0]) as unused:
        for path in files if unused else ():
            _remove(path)
        return unused


def _remove(path: Path) -> None:
    """Delete whatever has this name: a user may have put a folder there."""
    try:
        path.unlink(missing_ok=True)
    except (IsADirectoryError, PermissionError):  # POSIX allows either for a folder
        shutil.rmtree(path)
