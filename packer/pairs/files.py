"""List every file below a folder, in an order that does not depend on the disk."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import nsmallest
from itertools import islice
from pathlib import Path

from packer.errors import InputError, first_of
from packer.pairs.candidates import MOST_NAMED
from packer.pairs.folder_names import Folders
from packer.pairs.paths import is_picture
from packer.spill.long_text import LongText
from readers.contract.manifest import MANIFEST, MARK, SHARDS

Identity = tuple[int, int]
JOINED = 1 << 14
"""Names that are objects at the same time while very many are matched."""
_ENCODING = ("utf-8", "surrogatepass")
BROKEN = (errno.ELOOP, errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)
"""Errors of a link that leads nowhere. It is listed as a file, so only a pair that needs it is bad."""


class FileNames:
    """The names of the files in a folder, in any order, as parts of a text that all folders share."""

    def __init__(self, text: LongText, names: Sequence[str] = ()) -> None:
        self._text = text
        self._parts: list[slice] = []
        self._count = 0
        self.add(names)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        for names in self.parts():
            yield from names

    def add(self, names: Sequence[str]) -> None:
        """Add names, which are objects no more."""
        if names:
            begin = len(self._text)
            self._text.add("/".join(names).encode(*_ENCODING))
            self._parts.append(slice(begin, len(self._text)))
            self._count += len(names)

    def parts(self) -> Iterator[list[str]]:
        """Yield all names, those together that were added together."""
        for part in self._parts:
            yield self._text[part].decode(*_ENCODING).split("/")


class RawFiles:
    """The files below a raw folder, without hidden ones. The order does not depend on the disk."""

    def __init__(self, folders: dict[str, FileNames], packs: Sequence[str] = ()) -> None:
        self._found = folders
        self.count = sum(map(len, folders.values()))
        """The number of files."""
        self.packs = sorted(packs)
        """The folders of packed data sets, which are passed over."""

    @classmethod
    def of(cls, folders: Mapping[str, Iterable[str]], packs: Sequence[str] = ()) -> RawFiles:
        """Return these files, whose names are given for each folder."""
        text = LongText()
        return cls({folder: FileNames(text, list(names)) for folder, names in folders.items()}, packs)

    @cached_property
    def folders(self) -> Folders:
        """The names of all files."""
        return {folder: sorted(self._found[folder]) for folder in sorted(self._found)}

    @cached_property
    def paths(self) -> list[str]:
        """All paths, sorted."""
        return sorted(folder + name for folder, names in self.folders.items() for name in names)

    def names(self, folder: str) -> Iterable[str]:
        """Return the names of the files in a folder, in any order."""
        return self._found.get(folder, ())

    @property
    def notes(self) -> list[str]:
        """A note on the packed data sets, if there are any."""
        named = ", ".join(first_of(self.packs, MOST_NAMED))
        return [f"passed over packed data sets: {named}"] if self.packs else []

    def first(self, most: int) -> Folders:
        """Return the first names of each folder, and the name of a picture if it has any."""
        folders = {folder: self._found[folder] for folder in sorted(self._found)}
        return {
            folder: [*nsmallest(most, names), *islice(filter(is_picture, names), 1)]
            for folder, names in folders.items()
        }

    def parts(self) -> Iterator[Folders]:
        """Yield the names of all files, in any order, at most JOINED together."""
        folders: dict[str, list[str]] = {}
        count = 0
        for folder, file_names in self._found.items():
            for names in file_names.parts():
                if count + len(names) > JOINED or folder in folders:
                    yield folders
                    folders, count = {}, 0
                folders[folder] = names
                count += len(names)
        yield folders


def _is_folder(path: Path) -> bool:
    """Tell whether this is a folder. Since Python 3.14, `Path.is_dir` also denies one that it may not look at."""
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def list_files(raw: Path) -> list[str]:
    """Return the paths below `raw`, sorted, without hidden files and packed data sets."""
    return find_files(raw).paths


def find_files(raw: Path, leave_out: Path | None = None) -> RawFiles:
    """Find the files below `raw`, without the folder `leave_out`.

    Links to folders are followed, except links to a folder that contains them.
    """
    if not _is_folder(raw):
        raise InputError(f"{raw}: " + ("is a file, not a folder" if raw.exists() else "there is no such folder"))
    if (raw / SHARDS).is_dir() and ((raw / MARK).is_file() or (raw / MANIFEST).is_file()):
        raise InputError(
            f"{raw}: is a packed data set, not a raw folder; packer info {raw} shows what it holds, "
            f"packer verify {raw} checks it"
        )
    excluded = _identity(leave_out) if leave_out is not None and leave_out.is_dir() else None
    walk = _Walk(excluded)
    walk.into(str(raw), "", frozenset())
    return RawFiles(walk.folders, walk.packs)


class _Walk:
    """The files and the packed data sets found so far."""

    def __init__(self, excluded: Identity | None) -> None:
        self._excluded = excluded
        self._text = LongText()
        self.folders: dict[str, FileNames] = {}
        self.packs: list[str] = []

    def into(self, folder: str, prefix: str, above: frozenset[Identity]) -> None:
        """Add the files of a folder and of all folders below it. Their paths begin with `prefix`."""
        try:
            above |= {_identity(folder)}
            if prefix and os.path.lexists(f"{folder}/{MARK}"):
                self.packs.append(prefix[:-1])
                return
            names, folders = _scan(folder, self._text)
        except OSError as error:
            raise InputError(f"{folder}: the folder cannot be listed ({error.strerror})") from error
        if len(names):
            self.folders[prefix] = names
        for name in folders:
            path = f"{folder}/{name}"
            if (identity := _identity(path)) not in above and identity != self._excluded:
                self.into(path, f"{prefix}{name}/", above)


def _scan(folder: str, text: LongText) -> tuple[FileNames, list[str]]:
    """Return the names of the files and of the folders in a folder, without hidden ones."""
    file_names, folders, names = FileNames(text), list[str](), list[str]()
    with os.scandir(folder) as scanned:
        for entry in scanned:
            if (name := entry.name)[0] != ".":
                try:
                    is_folder = entry.is_dir()
                except OSError as error:
                    if error.errno not in BROKEN:
                        raise InputError(f"{entry.path}: the link cannot be followed ({error.strerror})") from error
                    is_folder = False
                (folders if is_folder else names).append(name)
                if len(names) == JOINED:
                    file_names.add(names)
                    names.clear()
    file_names.add(names)
    return file_names, folders


def _identity(folder: str | Path) -> Identity:
    status = os.stat(folder)  # noqa: PTH116 - str is faster than Path, and there may be a million
    return status.st_dev, status.st_ino
