"""Sources of pictures inside large files: many rows in each file, read at their place there."""

from __future__ import annotations

import json
import os
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

import numpy as np
from numpy.typing import NDArray

from packer.classes.load import named_classes
from packer.decoding.decode import compared, header_of
from packer.decoding.header import Header
from packer.decoding.raw_file import naming
from packer.decoding.rules import MOST_PIXELS
from packer.errors import BadPair, LostFile, Problem, UsageError
from packer.recipe.row_ref import RowRef
from packer.recipe.source import UNKNOWN, FieldData, Heads, Listing, ListingRules, Loaded, Source
from packer.sources.archives.archive_files import files_at, holds_only, split_in
from packer.sources.archives.position import Position, position_in
from packer.sources.ask_all import THREADS, ask_all
from packer.sources.container import Names
from packer.sources.file_states import FileState, are_young, state_here, state_of
from packer.sources.given_fields import identity
from readers.contract.classes import ClassTable
from readers.contract.regular_files import open_raw

if TYPE_CHECKING:
    from typing_extensions import Self

CHANGED = "was changed after the build was planned; build again"


class ArchiveSource(Source):
    """Files of one kind with many samples in each. Every kind lists the samples of a file, and reads a picture."""

    kind: ClassVar[str]
    threads: ClassVar[int] = THREADS
    has_keys: ClassVar[bool] = False
    """True if --key may name what has the keys of rows."""
    suffix: ClassVar[re.Pattern[str]]
    """The end of the names of such files in a folder."""

    def __init__(self, root: Path, files: Mapping[str, FileState], names: Names, max_pixels: int = MOST_PIXELS) -> None:
        self.root, self.files, self.names, self.max_pixels = root, files, names, max_pixels
        self.keeps_unlabelled = False
        """True if an image without a label is a row. The plan decides that; no worker lists rows."""
        self.problems: list[Problem] = []
        """Files that cannot be read, once the rows were listed."""
        self.missing: list[Problem] = []
        """Samples without an image or without a label, once the rows were listed."""

    @classmethod
    def fits(cls, path: Path, head: bytes) -> bool:
        """Return whether a file is of this kind by its head or, if that is damaged, by its name; or a folder."""
        return holds_only(path, cls.suffix) if path.is_dir() else cls.knows(head) or bool(cls.suffix.search(path.name))

    @classmethod
    def at(cls, path: Path, names: Names) -> Self:
        """Open a file, the files in a folder, or the files of a pattern."""
        if names.key is not None and not cls.has_keys:
            raise UsageError(f"--key {names.key}: the samples of {path} have keys of their own; leave it out")
        root, files = cls.find(path)
        return cls(root, {file: state_of(f"{root}/{file}") for file in files}, names)

    @classmethod
    def find(cls, path: Path) -> tuple[Path, list[str]]:
        """Return a folder, and the files below it."""
        return files_at(path, cls.suffix)

    @staticmethod
    @abstractmethod
    def knows(head: bytes) -> bool:
        """Return whether a file that begins with these bytes is of this kind."""

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes, if the files have them."""
        return ()

    @abstractmethod
    def samples(self, file: str) -> Iterator[RowRef]:
        """Yield the rows of a file. Raise BadPair if it is damaged."""

    @abstractmethod
    def read(self, position: Position) -> FieldData:
        """Return the bytes of a picture, or raise BadPair."""

    def header(self, position: Position) -> Header:
        return header_of(self.read(position), self.max_pixels)

    def rows(self) -> Iterator[RowRef]:
        """Yield the rows of all files. A damaged file becomes a problem; the files after it are still listed."""
        self.problems.clear()
        self.missing.clear()
        for file in self.files:
            try:
                with naming(file):
                    yield from self.samples(file)
            except BadPair as bad:
                self.problems.append(Problem(str(bad).removeprefix(f"{file}: "), "", (file,)))

    def _named(self) -> ClassTable | None:
        return named_classes(self.class_names) if self.class_names else None

    def list_rows(self, rules: ListingRules) -> Listing:
        self.max_pixels, self.keeps_unlabelled = rules.max_pixels, rules.keeps_unlabelled
        rows, folder = self.rows(), str(self.root)
        return Listing(rows, self.kind, self.problems, folder, self.missing, named=self._named)

    def row(self, file: str, key: str, image: Position | None, label: Position | None) -> Iterator[RowRef]:
        """Yield the row of a sample; none if it lacks a field that it must have, which is noted."""
        if image and (label or self.keeps_unlabelled):
            yield RowRef(self.split_of(file), key, (str(image), str(label) if label else ""))
        elif image or label:
            self.missing.append(Problem(f"has no {'label' if image else 'image'}", "", (f"{file}/{key}",), "sample"))

    def split_of(self, file: str) -> str:
        """Return the split that the path of a file names, such as `train` for train-000.tar; else the split `all`."""
        return split_in(file)

    def heads(self, refs: Sequence[RowRef]) -> Iterator[Heads]:
        yield from ask_all(self._heads, refs, self.threads)

    def states(self, refs: Sequence[RowRef]) -> NDArray[np.int64]:
        """Return the states of the files of image and label. The places in them are part of the references.

        The state of a file that changed since the plan is unknown: its rows are bad, and the next build reads them
        again.
        """
        file_states: dict[str, FileState] = {}
        states = np.zeros((len(refs), 6), np.int64)
        for state, ref in zip(states, refs, strict=True):
            for number, part in enumerate(ref.parts):
                if not part:
                    continue
                file = self.position(part).file
                if file not in file_states:
                    now = state_of(f"{self.root}/{file}")
                    file_states[file] = now if now == self.files.get(file, now) else (UNKNOWN, -1, -1)
                state[3 * number : 3 * number + 3] = file_states[file]
        states[are_young(states) | (states[:, 3] == UNKNOWN), 0] = UNKNOWN
        return states

    def identities(self, refs: Sequence[RowRef]) -> Iterator[tuple[str, ...] | None]:
        with ThreadPoolExecutor(self.threads) as pool:
            yield from pool.map(self._identity, refs)

    def load(self, ref: RowRef) -> Loaded:
        data: list[FieldData] = []
        identities = [""] * len(ref.parts)
        for number, part in enumerate(ref.parts):
            try:
                with naming(part):
                    data.append(self.read(self.position(part)) if part else b"")
            except BadPair as bad:
                return Loaded.refused(bad, data, identities)
            identities[number] = identity(data[number]) if part else ""
        return Loaded(tuple(data), tuple(identities))

    def position(self, part: str) -> Position:
        """Return the place that a part of a reference names. Only files of this source have one."""
        return position_in(part, self.files)

    def open(self, file: str) -> BinaryIO:
        """Open a file of this source, if it did not change since the build was planned."""
        opened = open_raw(self.root / file)
        try:
            self.check_state(file, opened)
        except BaseException:
            opened.close()
            raise
        return opened

    def check_state(self, file: str, opened: BinaryIO) -> None:
        """Refuse a file that changed since the build was planned: a place may hold another picture now."""
        now = os.fstat(opened.fileno())
        if (now.st_size, now.st_mtime_ns, now.st_ctime_ns) != tuple(self.files[file]):
            raise LostFile(CHANGED)

    def check(self, file: str) -> None:
        """Refuse a file that another library has open, if it changed."""
        if state_of(f"{self.root}/{file}") != tuple(self.files[file]):
            raise LostFile(CHANGED)

    def to_text(self) -> str:
        facts = {"root": str(self.root), "files": self.files, "names": self.names}
        return json.dumps({"kind": self.kind, "max_pixels": self.max_pixels, **facts})

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> Self:
        root = Path(facts["root"])
        files = {file: state_here(f"{root}/{file}", state) for file, state in facts["files"].items()}
        return cls(root, files, Names(*facts["names"]), facts["max_pixels"])

    def _heads(self, ref: RowRef) -> Heads:
        heads = []
        try:
            for part in filter(None, ref.parts):
                with naming(part):
                    heads.append(self.header(self.position(part)))
            heads[1:] = [compared(ref.parts[0], heads[0], ref.parts[1], label) for label in heads[1:]]
        except BadPair as bad:
            return str(bad)
        return tuple(heads)

    def _identity(self, ref: RowRef) -> tuple[str, ...] | None:
        loaded = self.load(ref)
        return None if loaded.bad is not None else loaded.identities
