"""`ArchiveFiles`: the files of an archive, in a folder of this machine or in a store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

from packer.recipe.row_ref import RowRef
from packer.sources.file_states import FileState

CHANGED = "was changed after the build was planned; build again"


class Span(NamedTuple):
    """A range of bytes of a file."""

    file: str
    start: int
    size: int


class ArchiveFiles(ABC):
    """Reads files whose names are relative to one folder. A file that changed since the plan is refused: LostFile."""

    def __init__(self, states: Mapping[str, FileState]) -> None:
        self.states = states
        """The state of each file when the build was planned. The first number is its size."""

    @property
    @abstractmethod
    def folder(self) -> str:
        """The path or the URL of the folder."""

    @abstractmethod
    def open(self, file: str) -> BinaryIO:
        """Open a file that is read from its start to its end, perhaps with jumps."""

    @abstractmethod
    def part(self, span: Span) -> BinaryIO:
        """Open a part of a file. Perhaps only its beginning is read."""

    @abstractmethod
    def read(self, span: Span) -> bytes:
        """Return the bytes of a part; fewer at the end of the file."""

    @abstractmethod
    def columns(self, file: str) -> Any:
        """Open a file for Arrow, which reads some columns of a table, each from its start to its end."""

    @abstractmethod
    def companion(self, file: str, most: int) -> bytes | None:
        """Return the first bytes of a file that belongs to another one, such as its index; None if there is none."""

    @abstractmethod
    def state(self, file: str) -> FileState:
        """Return the state of a file as the state of a row; UNKNOWN if it proves nothing."""

    @abstractmethod
    def check(self, file: str) -> None:
        """Refuse a file that a library has open, if it changed. A store checks each answer, and does nothing here."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return what a worker needs to open the same files."""

    def follow(self, opened: Any, columns: Sequence[str]) -> None:  # noqa: B027
        """Read these columns of a table of Parquet ahead, if they are far away."""

    def rest(self, opened: Any) -> None:  # noqa: B027
        """Drop what was read ahead of a table."""

    def head_of(self, span: Span) -> Span:
        """Return the part that `part` reads first."""
        return span

    def expect(self, spans: Iterable[Span]) -> None:  # noqa: B027 - a disk answers at once
        """Begin to read these parts, which are read next, in this order, if they are far away."""

    def forget(self, spans: Iterable[Span]) -> None:  # noqa: B027 - a disk answers at once
        """Drop what was read ahead of these parts."""

    def list_all(self, list_file: Callable[[str], Iterator[RowRef]]) -> Iterator[RowRef]:
        """Yield the rows of each file, in the order of the files."""
        for file in self.states:
            yield from list_file(file)
