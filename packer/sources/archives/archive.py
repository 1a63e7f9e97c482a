"""Sources of pictures inside large files: many rows in each file, read at their place there."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

import numpy as np
from numpy.typing import NDArray

from packer.classes.load import named_classes
from packer.decoding.decode import compared, header_of
from packer.decoding.header import Header
from packer.decoding.raw_file import naming
from packer.decoding.rules import MOST_PIXELS
from packer.errors import BadPair, Problem, UsageError
from packer.recipe.row_ref import RowRef
from packer.recipe.source import UNKNOWN, FieldData, Heads, Listing, ListingRules, Loaded, Source
from packer.sources.archives.archive_files import ArchiveFiles, Span
from packer.sources.archives.file_patterns import split_in
from packer.sources.archives.files_here import FilesHere
from packer.sources.archives.named_files import files_at, holds_only
from packer.sources.archives.position import Position, position_in
from packer.sources.ask_all import THREADS, ask_all
from packer.sources.container import Names
from packer.sources.file_states import FileState
from packer.sources.given_fields import identity
from readers.contract.classes import ClassTable

if TYPE_CHECKING:
    from typing_extensions import Self


class ArchiveSource(Source):
    """Files of one kind with many samples in each. Every kind lists the samples of a file, and reads a picture."""

    kind: ClassVar[str]
    threads: ClassVar[int] = THREADS
    has_keys: ClassVar[bool] = False
    """True if --key may name what has the keys of rows."""
    suffix: ClassVar[re.Pattern[str]]
    """The end of the names of such files in a folder."""

    in_stores: ClassVar[bool] = True
    """True if the files may be in a store, which reads ranges of them."""

    def __init__(self, files: ArchiveFiles, names: Names, max_pixels: int = MOST_PIXELS) -> None:
        self.files, self.names, self.max_pixels = files, names, max_pixels
        self.keeps_unlabelled = False
        """True if an image without a label is a row. The plan decides that; no worker lists rows."""
        self.problems: list[Problem] = []
        """Files that cannot be read, once the rows were listed."""
        self.missing: list[Problem] = []
        """Samples without an image or without a label, once the rows were listed."""
        self._problems: dict[str, list[Problem]] = {}
        self._missing: dict[str, list[Problem]] = {}
        """The same while the rows are listed, by file: several are listed at the same time."""

    @classmethod
    def fits(cls, path: Path, head: bytes) -> bool:
        """Return whether a file is of this kind by its head or, if that is damaged, by its name; or a folder."""
        return holds_only(path, cls.suffix) if path.is_dir() else cls.knows(head) or bool(cls.suffix.search(path.name))

    @classmethod
    def at(cls, path: Path, names: Names) -> Self:
        """Open a file, the files in a folder, or the files of a pattern."""
        return cls.of(FilesHere.now(*cls.find(path)), names, str(path))

    @classmethod
    def of(cls, files: ArchiveFiles, names: Names, path: str) -> Self:
        """Open files that were found at a path or a URL."""
        if names.key is not None and not cls.has_keys:
            raise UsageError(f"--key {names.key}: the samples of {path} have keys of their own; leave it out")
        return cls(files, names)

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
        self._problems.clear()
        self._missing.clear()
        yield from self.files.list_all(self._rows_of)
        for problems, noted in ((self.problems, self._problems), (self.missing, self._missing)):
            problems += [problem for file in self.files.states for problem in noted.pop(file, ())]

    def _rows_of(self, file: str) -> Iterator[RowRef]:
        try:
            with naming(file):
                yield from self.samples(file)
        except BadPair as bad:
            self.refuse(file, Problem(str(bad).removeprefix(f"{file}: "), "", (file,)))

    def refuse(self, file: str, problem: Problem) -> None:
        """Note why a file, or a sample in it, cannot be read."""
        self._problems.setdefault(file, []).append(problem)

    def lack(self, file: str, key: str, cause: str) -> None:
        """Note a sample without an image or without a label."""
        self._missing.setdefault(file, []).append(Problem(cause, "", (f"{file}/{key}",), "sample"))

    def _named(self) -> ClassTable | None:
        return named_classes(self.class_names) if self.class_names else None

    def list_rows(self, rules: ListingRules) -> Listing:
        self.max_pixels, self.keeps_unlabelled = rules.max_pixels, rules.keeps_unlabelled
        rows, folder = self.rows(), self.files.folder
        return Listing(rows, self.kind, self.problems, folder, self.missing, named=self._named)

    def row(self, file: str, key: str, image: Position | None, label: Position | None) -> Iterator[RowRef]:
        """Yield the row of a sample; none if it lacks a field that it must have, which is noted."""
        if image and (label or self.keeps_unlabelled):
            yield RowRef(self.split_of(file), key, (str(image), str(label) if label else ""))
        elif image or label:
            self.lack(file, key, f"has no {'label' if image else 'image'}")

    def split_of(self, file: str) -> str:
        """Return the split that the path of a file names, such as `train` for train-000.tar; else the split `all`."""
        return split_in(file)

    def heads(self, refs: Sequence[RowRef]) -> Iterator[Heads]:
        self.files.expect(self._head_spans(refs))
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
                    file_states[file] = self.files.state(file)
                state[3 * number : 3 * number + 3] = file_states[file]
        states[states[:, 3] == UNKNOWN, 0] = UNKNOWN
        return states

    def identities(self, refs: Sequence[RowRef]) -> Iterator[tuple[str, ...] | None]:
        self.expect(refs)
        with ThreadPoolExecutor(self.threads) as pool:
            yield from pool.map(self._identity, refs)

    def expect(self, refs: Iterable[RowRef]) -> None:
        self.files.expect(self._spans(refs))

    def load(self, ref: RowRef) -> Loaded:
        try:
            return self._load(ref)
        finally:
            self.files.forget(self._spans([ref]))

    def _load(self, ref: RowRef) -> Loaded:
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

    def span(self, position: Position) -> Span | None:
        """Return the bytes that `read` reads; None if no range of bytes is known."""
        return None

    def head_span(self, position: Position) -> Span | None:
        """Return the bytes that `header` reads first."""
        return self.span(position)

    def position(self, part: str) -> Position:
        """Return the place that a part of a reference names. Only files of this source have one."""
        return position_in(part, self.files.states)

    def open(self, file: str) -> BinaryIO:
        """Open a file of this source, if it did not change since the build was planned."""
        return self.files.open(file)

    def to_text(self) -> str:
        facts = {"kind": self.kind, "max_pixels": self.max_pixels}
        return json.dumps({**facts, **self.files.to_json(), "names": self.names})

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> Self:
        return cls(files_from(facts), Names(*facts["names"]), facts["max_pixels"])

    def _heads(self, ref: RowRef) -> Heads:
        heads = []
        try:
            for part in filter(None, ref.parts):
                with naming(part):
                    heads.append(self.header(self.position(part)))
            heads[1:] = [compared(ref.parts[0], heads[0], ref.parts[1], label) for label in heads[1:]]
        except BadPair as bad:
            return str(bad)
        finally:
            self.files.forget(self._head_spans([ref]))
        return tuple(heads)

    def _spans(self, refs: Iterable[RowRef]) -> Iterator[Span]:
        return self._spans_of(refs, self.span)

    def _head_spans(self, refs: Iterable[RowRef]) -> Iterator[Span]:
        return self._spans_of(refs, self.head_span)

    def _spans_of(self, refs: Iterable[RowRef], span_of: Callable[[Position], Span | None]) -> Iterator[Span]:
        """Yield what is read of these rows. A part that names another file is refused when it is read."""
        for ref in refs:
            for part in filter(None, ref.parts):
                with suppress(BadPair):
                    if span := span_of(self.position(part)):
                        yield span

    def _identity(self, ref: RowRef) -> tuple[str, ...] | None:
        loaded = self.load(ref)
        return None if loaded.bad is not None else loaded.identities


def files_from(facts: dict[str, Any]) -> ArchiveFiles:
    """Return the files of an archive in a worker."""
    if "root" in facts:
        return FilesHere.from_json(facts)
    from packer.sources.archives.files_in_store import FilesInStore  # most archives are on this machine

    return FilesInStore.from_json(facts)
