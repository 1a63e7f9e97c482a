"""`IndexedFiles`: annotation files of many pictures below a folder. Each is read once, what it lists is kept in arrays.

The arrays are in a temporary folder of this user, which workers on the same machine map. Elsewhere a worker reads the
file itself, if it is still the file that was planned.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from packer.annotations.annotation import AnnotatedPicture
from packer.annotations.list_pictures import index_of
from packer.annotations.picture_index import PictureIndex
from packer.decoding.raw_file import naming
from packer.errors import BadPair, InputError, LostFile
from packer.sources.annotated.kept_indexes import index_folder, keep_index, kept_index, made_here
from packer.sources.file_states import ANY, state_here, state_of
from readers.contract.regular_files import open_raw
from readers.contract.tiles import Size

NAMED = "#"
"""Between the path of a file and the name that it gives a picture, in the part of a row."""
COPIED = "is not the file that was planned, or lost its time when it was copied; copy it with rsync -a or cp -p"
"""The reason of all rows on a machine where the file has another size or time."""
MOST_BYTES = 4 << 30
"""The most bytes of a file."""


class IndexedFiles:
    """The files, their states when they were planned, and the index of each that is needed."""

    def __init__(self, folder: Path, states: Mapping[str, Sequence[int]]) -> None:
        self._folder = folder
        self.states = {path: state_here(f"{folder}/{path}", state) for path, state in states.items()}
        self._indexes: dict[str, PictureIndex | BadPair] = {}
        self._lock = Lock()

    @classmethod
    def at(cls, folder: Path, paths: Iterable[str]) -> IndexedFiles:
        """Return the present state of these files. Raise InputError with all that cannot be read."""
        files = cls(folder, {path: state_of(f"{folder}/{path}") for path in paths})
        problems = []
        for path in files.states:
            try:
                files.index(path, keeps=True, is_certain=True)
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
            raise InputError(
                f"{self._folder}: annotations of several formats: {', '.join(names)}; name the files of one"
            )
        return names[0]

    @property
    def counts(self) -> dict[str, tuple[int, str]]:
        """For each category its number of objects, and a file that has some."""
        counts: dict[str, tuple[int, str]] = {}
        for path in self.states:
            for name, count in self.index(path).counts.items():
                before, first = counts.get(name, (0, path))
                counts[name] = before + count, first if before else path
        return {name: entry for name, entry in counts.items() if entry[0]}

    @property
    def outlines(self) -> int:
        """The number of annotations that can be painted."""
        return sum(self.index(path).outlines for path in self.states)

    @property
    def lost(self) -> Counter[str]:
        """The number of annotations that cannot be painted, by the reason."""
        lost = Counter[str]()
        for path in self.states:
            lost.update(self.index(path).lost)
        return lost

    @property
    def notes(self) -> tuple[str, ...]:
        """Annotations that become nothing, because of what the file lists."""
        return tuple(f"{path}: {note}" for path in self.states for note in self.index(path).notes)

    def prepare(self) -> None:
        """Keep the indexes of all files for the workers on this machine. Rows of files that cannot be read are bad."""
        for path in self.states:
            with suppress(BadPair):
                self.index(path, keeps=True)

    def index(self, path: str, keeps: bool = False, is_certain: bool = False) -> PictureIndex:
        """Return the index of a file. Raise BadPair if it cannot be read, or is another than was planned.

        A file that cannot be read is tried once. A process with workers `keeps` what it reads: these end without
        deleting anything. A plan wants an index that is certain.
        """
        with self._lock:
            if path not in self._indexes:
                self._indexes[path] = self._opened(path, keeps, is_certain)
            index = self._indexes[path]
        if isinstance(index, BadPair):
            raise index.because(str(index))
        return index

    def read(self, part: str, ids: NDArray[np.uint32] | None = None) -> tuple[AnnotatedPicture, str]:
        """Return the annotations of a picture, and what identifies them.

        `ids` are the ids in its PNG, if it has one.
        """
        path, name = self.split(part)
        index = self.index(path)
        with naming(part), open_raw(self._folder / path) as file:
            picture, digest = index.read(file, name, ids)
        return picture, digest.hex()

    def png(self, part: str) -> str:
        """Return the path of the PNG with the ids of a picture's segments; empty if there is none.

        It is in the folder with the name of the annotations, or in their own.
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
        """Yield the names of all pictures that a file lists, but these. Raise InputError if it changed."""
        index = self.index(path)
        numbers = index.others(names)
        try:
            with naming(path), open_raw(self._folder / path) as file:
                yield from (index.name(file, number) for number in numbers)
        except BadPair as bad:
            raise InputError(f"{self._folder}: annotations cannot be read again", [str(bad)]) from bad

    def split(self, part: str) -> tuple[str, str]:
        """Return the file and the name of a picture."""
        path = max((path for path in self.states if part.startswith(f"{path}{NAMED}")), key=len, default=None)
        if path is None:
            raise BadPair(f"{part}: is not a picture of the annotations")
        return path, part[len(path) + len(NAMED) :]

    def _png(self, path: str, png: str) -> str:
        usual, near = f"{path.removesuffix('.json')}/{png}", f"{path.rpartition('/')[0]}/{png}".lstrip("/")
        return near if not (self._folder / usual).exists() and (self._folder / near).exists() else usual

    def _opened(self, path: str, keeps: bool, is_certain: bool) -> PictureIndex | BadPair:
        state = self.states[path]
        folder = index_folder(f"{self._folder.absolute()}/{path}", state)
        if folder is not None and (not is_certain or made_here(folder, state)):
            kept = kept_index(folder)
            if kept is not None:
                return kept
        try:
            with naming(path):
                index = self._listed(path)
        except BadPair as bad:
            return bad
        if keeps and folder is not None:
            keep_index(index, folder)
        return index

    def _listed(self, path: str) -> PictureIndex:
        """Read a whole file, if it is and stays the one that was planned."""
        before = state_of(f"{self._folder}/{path}")
        if before == self.states[path]:
            with open_raw(self._folder / path) as file:
                if (size := file.seek(0, os.SEEK_END)) > MOST_BYTES:
                    raise BadPair(f"has {size:,} bytes; at most {MOST_BYTES:,} are read")
                file.seek(0)
                index = index_of(file)
        if not before == self.states[path] == state_of(f"{self._folder}/{path}"):
            raise LostFile(COPIED if self.states[path][2] == ANY else "changed after its rows were listed; build again")
        return index
