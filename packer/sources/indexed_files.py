"""`IndexedFiles`: annotation files of many pictures below a folder. Each is read once, what it lists is kept in arrays.

The arrays lie in a temporary folder of this user, which workers on the same machine map. Elsewhere a worker reads the
file itself, if it is still the file that was planned.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from threading import Lock

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from packer.annotations.annotation import AnnotatedPicture
from packer.annotations.list_pictures import index_of
from packer.annotations.picture_index import PictureIndex
from packer.decoding.raw_file import naming
from packer.errors import BadPair, InputError, Problem
from packer.pairs.pair import Pair
from packer.pairs.template import composed
from packer.sources.file_states import FileState, state_here, state_of
from readers.contract.regular_files import open_raw
from readers.contract.tiles import Size

NAMED = "#"
"""Between the path of a file and the name that it gives a picture, in the part of a row."""
LONGEST = 24 * 3600
"""Seconds that the index of a killed process stays."""
MOST_BYTES = 4 << 30
"""The most bytes of a file."""


class IndexedFiles:
    """The files, their states when they were planned, and the index of each that is needed."""

    def __init__(self, folder: Path, states: Mapping[str, Sequence[int]]) -> None:
        self._folder = folder
        self.states = {path: state_here(f"{folder}/{path}", state) for path, state in states.items()}
        self._indexes: dict[str, PictureIndex] = {}
        self._lock = Lock()

    @classmethod
    def at(cls, folder: Path, paths: Iterable[str]) -> IndexedFiles:
        """Return these files as they are now. Raise InputError with all that cannot be read."""
        files = cls(folder, {path: state_of(f"{folder}/{path}") for path in paths})
        problems = []
        for path in files.states:
            try:
                files.index(path)
            except BadPair as bad:
                problems.append(str(bad))
        if problems:
            raise InputError(f"{folder}: annotations cannot be read", problems)
        return files

    @property
    def categories(self) -> tuple[str, ...]:
        """The categories of all files, in the order of their ids."""
        return tuple(dict.fromkeys(name for path in self.states for name in self.index(path).categories.values()))

    @property
    def format(self) -> str:
        """The format of all files. Raise InputError if they have several."""
        names = sorted({self.index(path).format for path in self.states})
        if len(names) > 1:
            raise InputError(f"{self._folder}: annotations of several formats: {', '.join(names)}; name those of one")
        return names[0]

    @property
    def counts(self) -> dict[str, tuple[int, str]]:
        """For each category its number of objects, and a file that has some."""
        found: dict[str, tuple[int, str]] = {}
        for path in self.states:
            for name, count in self.index(path).counts.items():
                before, first = found.get(name, (0, path))
                found[name] = before + count, first if before else path
        return {name: each for name, each in found.items() if each[0]}

    @property
    def notes(self) -> tuple[str, ...]:
        """Annotations that become nothing, because of what the file lists."""
        return tuple(f"{path}: {note}" for path in self.states for note in self.index(path).notes)

    def index(self, path: str) -> PictureIndex:
        """Return the index of a file. Raise BadPair if it cannot be read, or is another than was planned."""
        with self._lock:
            if path not in self._indexes:
                with naming(path):
                    self._indexes[path] = self._opened(path)
            return self._indexes[path]

    def read(self, part: str, ids: NDArray[np.uint32] | None = None) -> tuple[AnnotatedPicture, str]:
        """Return the annotations of a picture, and what identifies them. `ids` are those of its PNG, if it has one."""
        path, name = self.split(part)
        index = self.index(path)
        with naming(part), open_raw(self._folder / path) as file:
            picture, digest = index.read(file, name, ids)
        return picture, digest.hex()

    def png(self, part: str) -> str:
        """Return the path of the PNG with the ids of a picture's segments; empty if there is none.

        It lies in the folder with the name of the annotations, or in their own.
        """
        path, name = self.split(part)
        png = self.index(path).png(name)
        return self._png(path, png) if png else ""

    @property
    def pngs(self) -> set[str]:
        """The paths of all PNGs with ids, which are not pictures themselves."""
        return {self._png(path, png) for path in self.states for png in self.index(path).pngs if png}

    def size(self, part: str) -> Size | None:
        """Return the size of a picture, if the file has it."""
        path, name = self.split(part)
        return self.index(path).size(name)

    def digest(self, part: str) -> bytes:
        """Return what identifies the annotations of a picture, when the file was listed."""
        path, name = self.split(part)
        digest = self.index(path).digest(name)
        if digest is None:
            raise BadPair(f"{path}: does not list {name}")
        return digest

    def others(self, path: str, names: Iterable[str]) -> Iterator[str]:
        """Yield the names of all pictures that a file lists, but these."""
        index = self.index(path)
        numbers = index.others(names)
        with open_raw(self._folder / path) as file:
            for number in numbers:
                with naming(path):
                    yield index.name(file, number)

    def split(self, part: str) -> tuple[str, str]:
        """Return the file and the name of a picture."""
        path = max((path for path in self.states if part.startswith(f"{path}{NAMED}")), key=len, default=None)
        if path is None:
            raise BadPair(f"{part}: is not a picture of the annotations")
        return path, part[len(path) + len(NAMED) :]

    def _png(self, path: str, png: str) -> str:
        usual, near = f"{path.removesuffix('.json')}/{png}", f"{path.rpartition('/')[0]}/{png}".lstrip("/")
        return near if not (self._folder / usual).exists() and (self._folder / near).exists() else usual

    def _opened(self, path: str) -> PictureIndex:
        state = self.states[path]
        folder = _folder_of(f"{self._folder.absolute()}/{path}", state)
        if folder is not None and folder.is_dir():
            with suppress(
                OSError, EOFError, ValueError, LookupError, TypeError
            ):  # somebody may clean temporary folders
                return PictureIndex.load(folder)
            shutil.rmtree(folder, ignore_errors=True)
        with open_raw(self._folder / path) as file:
            if (size := file.seek(0, os.SEEK_END)) > MOST_BYTES:
                raise BadPair(f"has {size:,} bytes; at most {MOST_BYTES:,} are read")
            file.seek(0)
            index = index_of(file)
        if state_of(f"{self._folder}/{path}") != state:
            raise BadPair("changed after its rows were listed; build again")
        if folder is not None:
            _keep(index, folder)
        return index


def _folder_of(path: str, state: FileState) -> Path | None:
    """Return the folder for the index of a file with this state; None if others could write there."""
    mine = Path(tempfile.gettempdir()) / f"segpack-{os.getuid()}"
    try:
        mine.mkdir(mode=0o700, exist_ok=True)
        found = mine.lstat()
    except OSError:
        return None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        return None
    return mine / blake3(f"{path}\0{state}".encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _keep(index: PictureIndex, folder: Path) -> None:
    """Save an index for other processes, until this one ends. What a killed process left is deleted a day later."""
    maker = os.getpid()
    for old in folder.parent.iterdir():
        with suppress(OSError):
            if old.stat().st_mtime < time.time() - LONGEST:
                shutil.rmtree(old, ignore_errors=True)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        index.save(temporary)
        temporary.rename(folder)
    except OSError:  # the disk is full, or another build was faster
        shutil.rmtree(temporary, ignore_errors=True)
        return

    def forget() -> None:
        if os.getpid() == maker:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(forget)


def files_of_many(template: str, paths: Iterable[str]) -> dict[str, str]:
    """Return the files that a template without a key fits, and the split of each; empty if it has none."""
    text = re.escape(template.removeprefix("./")).replace(r"\*", "[^/]*?").replace(r"\{split\}", "(?P<split>[^/]+?)")
    pattern = re.compile(text)
    matches = {path: pattern.fullmatch(path) for path in paths}
    return {path: match.groupdict().get("split", "") for path, match in matches.items() if match}


def parts_of(
    pairs: Iterable[Pair], files: IndexedFiles, splits: Mapping[str, str]
) -> Iterator[tuple[Pair, tuple[str, ...]]]:
    """Yield each picture with the part that has its annotations. Several: equally near files list it. None: no file.

    A file names a picture by its path below RAW, or by the end of that path. Of several files the nearest counts.
    """
    for pair in pairs:
        image = composed(pair.image)
        chosen = [path for path, split in splits.items() if not split or split == pair.split]
        names = [image]
        while (rest := names[-1].partition("/")[2]) and "/" in names[-1]:
            names.append(rest)
        listed = [(path, name) for name in names for path in chosen if files.index(path).digest(name) is not None]
        if len(listed) > 1:
            nearest = max((_shared_folders(path, image), len(name)) for path, name in listed)
            listed = [each for each in listed if (_shared_folders(each[0], image), len(each[1])) == nearest]
        yield pair, tuple(map(NAMED.join, listed))


def _shared_folders(path: str, other: str) -> int:
    """Return how many folders two paths have in common."""
    folders = zip(path.split("/")[:-1], other.split("/")[:-1], strict=False)
    return len(list(takewhile(lambda pair: pair[0] == pair[1], folders)))


def without_picture(files: IndexedFiles, parts: Iterable[str]) -> Iterator[Problem]:
    """Yield a problem for each picture that a file lists and that is not there."""
    found: dict[str, list[str]] = {path: [] for path in files.states}
    for part in parts:
        path, name = files.split(part)
        found[path].append(name)
    for path, names in found.items():
        for name in files.others(path, names):
            yield Problem("has no image", "", (f"{path}{NAMED}{name}",), "picture")
