"""`Source`: the base class of everything that rows come from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from packer.decoding.header import Header, Picture
from packer.errors import BadPair, InputError, LostFile, Problem, UsageError
from packer.pixels.nearest_lines import StoredLines
from packer.recipe.row_ref import RowRef
from readers.contract.classes import ClassTable
from readers.contract.fields import Field
from readers.contract.kinds import ONEHOT, PICTURE
from readers.contract.place import Place
from readers.contract.receipt import CONTROL, MOST_NOTE
from readers.contract.tiles import Size, picture_of

Heads: TypeAlias = "tuple[Header, ...] | str"
"""The header of each field that a row has, all of one upright size, or the reason why the row is bad."""
FieldData: TypeAlias = "bytes | NDArray[Any]"
"""The bytes of a file, or the pixels of an array that no other code will change."""
UNKNOWN = -1
"""The first number of a state that proves nothing: the row may have changed."""
NO_AXIS = "--axis {}: is for scans such as NIfTI; the slices of a TIFF are its pages"
NO_SPACING = "--spacing: is for scans such as NIfTI, whose headers have the distances of voxels in mm"
NO_ORIENT = "--orient {}: is for scans such as NIfTI, whose headers say where their axes point"


class PackedPixels(NamedTuple):
    """A field of a row of a pack, which needs no decoding.

    A picture (H,W,B) has the numbers of the pack, or float32 if these are floats from 0 to 1. A label (H,W) has class
    indices, and ignored pixels have the largest number of its type. Ids and values are (H,W). Overlapping classes are
    planes or bits, as in the pack.
    """

    pixels: NDArray[Any]
    file: bytes = b""
    """The JPEG file that the row is stored as."""

    @classmethod
    def of(cls, field: Field, numbers: NDArray[Any]) -> PackedPixels:
        """Return a stored picture, or a slice of a volume, as the kind of its field takes it."""
        if field.kind == PICTURE:
            pixels = numbers.transpose(1, 2, 0)
            return cls(pixels.astype(np.float32) if field.range == (0, 1) else pixels)
        if field.form == ONEHOT:
            from readers.contract.onehot import collapse  # most rows come from files

            assert field.classes is not None, "the form is one of classes"
            return cls(collapse(numbers, field.classes.index_dtype))
        return cls(numbers)


class Slices(NamedTuple):
    """A field of a row that is a volume. Its slices are read one at a time."""

    size: Size
    """Depth, height and width."""
    slice: Callable[[int], Any]
    """Returns what is `Given` of a slice, by its number."""
    name: str
    """The name of the volume in messages."""
    first: int = 0
    """The number of the first slice, if these are only some slices of a volume."""

    @property
    def middle(self) -> Any:
        """The slice that stands for the volume in a sample."""
        return self.slice(self.size[0] // 2)


Given: TypeAlias = "Picture | PackedPixels | tuple[Picture, ...] | Slices"
"""A field of a row as a source gives it. Overlapping classes may have a file each, which is empty if there is none."""
LinesOf: TypeAlias = Callable[[Size], StoredLines]
"""Returns the rows and columns that are stored of an upright picture of a size."""


class Loaded(NamedTuple):
    """A row that was read and is not decoded yet. If it is `bad`, only its first fields were read, or none."""

    data: tuple[Any, ...]
    """For each field what is `Given`: the bytes of a file, none for an empty part; an array in its place; or, of a
    pack, the pixels."""
    identities: tuple[str, ...]
    """For each field a text that identifies what was read, such as its BLAKE3; empty if nothing was."""
    bad: str | None = None
    """The reason why the row cannot be read."""
    notes: tuple[str, ...] = ()
    """Facts about a row that is packed nevertheless, such as "2 polygons cover no pixel". The same row has the same."""
    counts: Mapping[str, int] | None = None
    """Numbers that only matter as the sum of all rows, by the words behind them, such as "objects painted"."""
    is_lost: bool = False
    """True if it is bad because this machine cannot read a file, or finds another one."""
    place: Place | None = None
    """The place of the upright picture, if the source knows it. The bytes of a TIFF say it themselves."""
    at_stored: Callable[[LinesOf], Loaded] | None = None
    """Returns the row for a pack without all pixels of its picture, with notes and counts of what is lost."""
    elsewhere: str = ""
    """The words for a field at another place than the first. The bytes of TIFFs say it themselves."""

    @classmethod
    def refused(cls, bad: BadPair, data: Sequence[Any], identities: Sequence[str]) -> Loaded:
        """Return a bad row with the data that was read."""
        return cls(tuple(data), tuple(identities), str(bad), is_lost=isinstance(bad, LostFile))

    def check(self) -> None:
        """Raise BadPair if the row is bad."""
        if self.bad is not None:
            raise LostFile(self.bad) if self.is_lost else BadPair(self.bad)

    @property
    def note(self) -> str:
        """The notes as one text that a receipt may have."""
        return receipt_text("; ".join(filter(None, self.notes)))


def receipt_text(text: str) -> str:
    """Return a text without control characters, which is cut if it is too long for a receipt."""
    text = CONTROL.sub("?", text)
    return text if len(text) <= MOST_NOTE else f"{text[: MOST_NOTE - 1]}…"


@dataclass(frozen=True)
class ListingRules:
    """The options of a build that decide which rows a source lists."""

    out: Path
    max_pixels: int
    keeps_unlabelled: bool
    """True if an image without a label is a row."""


@dataclass(frozen=True)
class Listing:
    """The rows of a source, in any order, and what is known once all of them were listed."""

    rows: Iterable[RowRef]
    layout: str
    """The kind of source, for people."""
    problems: Sequence[Problem] = ()
    """The files that cannot be listed."""
    folder: str = ""
    """The folder of these files."""
    missing: Sequence[Problem] | None = None
    """The samples that lack a field, if any sample may lack one."""
    classes: ClassTable | None = None
    """The classes of a source that has labels of class indices."""
    packed: tuple[Field, ...] = ()
    """The fields of a source whose rows were packed before."""
    contents: Callable[[], str] = str
    """Returns what a source without rows has instead, as the end of a message."""
    named: Callable[[], ClassTable | None] = lambda: None
    """Returns the classes of the numbers in the labels, if the source names them."""
    notes: Sequence[str] = ()
    """Remarks for people about what the source has besides the rows."""


class Lines(Protocol):
    """A field of a row that is too large for memory: its lines, in order. The lines of a volume are slices."""

    @property
    def size(self) -> Size:
        """The height and width of the picture; the depth, height and width of a volume."""

    def lines(self, top: int, bottom: int) -> Given:
        """Return the next lines, as a picture of these alone; the next slices, as `Slices`."""

    def stored(self, field: Field) -> NDArray[np.uint8] | None:
        """Return the bytes of the row if it is stored in a pack in just the tiles of this field."""

    def close(self) -> None:
        """Close the file."""


class Source(ABC):
    """Gives rows. It lists references to all of them, with their sizes and types, without decoding any.

    A worker that may crash loads one row after the other. Threads share a source.
    """

    @property
    @abstractmethod
    def kind(self) -> str:
        """The name of the kind of source. States of different kinds are not compared."""

    @property
    def templates(self) -> tuple[str, ...]:
        """The names of each field's files as a pattern, or an empty text. They are part of the recipe."""
        return ("", "")

    @property
    def tools(self) -> tuple[str, ...]:
        """The versions and rules, besides the versions of the decoders, that decide what a row is.

        Part of the recipe.
        """
        return ()

    @property
    def sides(self) -> str:
        """The options that decide the sides of rows besides the sides of their files."""
        return ""

    @property
    def gives_volumes(self) -> bool:
        """True if the rows are volumes."""
        return False

    @property
    def is_painted(self) -> bool:
        """True if fields are painted from annotations."""
        return False

    @property
    def gives_arrays(self) -> bool:
        """True if the rows are arrays: no number in them has less than 8 bits, as in some files of pictures."""
        return False

    @property
    def types_are_known(self) -> bool:
        """False if only loading a row shows the types of its fields. A plan then shows the source a sample: `like`."""
        return True

    @property
    def sizes_are_known(self) -> bool:
        """False if only loading a row shows its size. A plan then gives all rows one: `of_size`."""
        return True

    @property
    def gives_lines(self) -> bool:
        """True if `load_lines` reads rows that are too large for memory. Files far away are read at once."""
        return False

    @property
    def gives_strips(self) -> bool:
        """True if `load_lines` gives lines of files, which may be left out between others."""
        return False

    @property
    def heads_apart(self) -> bool:
        """True if a process that opens the source reads headers as fast as this one: a header is a file of its own."""
        return False

    @property
    def keeps_splits(self) -> bool:
        """True if the source must get each row with the split that it gave: a build cannot draw another one."""
        return False

    def group_of(self, key: str) -> str:
        """Return what a key shares with all rows that must be in the same split: of a slice, its volume."""
        return picture_of(key)

    @abstractmethod
    def rows(self) -> Iterable[RowRef]:
        """Yield a reference to each row, in any order."""

    def list_rows(self, rules: ListingRules) -> Listing:
        """Return the rows for a build. Raise UsageError if it cannot be built from this source."""
        return Listing(self.rows(), type(self).__name__)

    @abstractmethod
    def heads(self, refs: Sequence[RowRef]) -> Iterable[Heads]:
        """Yield the heads of each of these rows. Nothing is decoded for them."""

    @abstractmethod
    def states(self, refs: Sequence[RowRef]) -> NDArray[np.int64]:
        """Return a line of numbers for each of these rows, also for none. Equal numbers mean: it did not change."""

    def identities(self, refs: Sequence[RowRef]) -> Iterable[tuple[str, ...] | None]:
        """Yield what `load` would identify each of these rows by now, or None if only loading can show it."""
        return (None for _ in refs)

    def expect(self, refs: Iterable[RowRef]) -> None:  # noqa: B027 - most sources have nothing to do
        """Begin to read these rows, which are loaded next, in this order, if they are far away."""

    @abstractmethod
    def load(self, ref: RowRef) -> Loaded:
        """Read a row."""

    def load_lines(self, ref: RowRef) -> Loaded:
        """Identify a row. Its data are `Lines`, which the caller closes; nothing for an empty part."""
        raise TypeError(f"rows of the kind {self.kind} are only read at once")

    @abstractmethod
    def to_text(self) -> str:
        """Return the text from which sources/reopen.py opens this source again in a worker."""

    def prepare(self) -> None:  # noqa: B027 - most sources have nothing to do
        """Make what one process can make for all workers on this machine, if it is not there yet."""

    def close(self) -> None:  # noqa: B027 - most sources have nothing to do
        """Delete what was made for the workers."""

    def along(self, axis: int) -> Source:
        """Return the slices of the same volumes along an axis."""
        raise UsageError(NO_AXIS.format(axis))

    def oriented(self, code: str) -> Source:
        """Return the same volumes with their axes turned to directions such as `RAS`."""
        raise UsageError(NO_ORIENT.format(code))

    def spaced(self, spacing: tuple[float, ...], interpolation: str) -> Source:
        """Return the same volumes with these distances from slice to slice, row to row and column to column."""
        raise UsageError(NO_SPACING)

    def as_volumes(self) -> Source:
        """Return the volumes that have these slices; the source itself if its rows are volumes."""
        if self.gives_volumes:
            return self
        raise UsageError(f"--volumes: rows of the kind {self.kind} are pictures; scans, TIFF and Rows have volumes")

    def with_fields(self, names: Sequence[str]) -> Source:
        """Return this source with these fields instead of an image and a label."""
        raise UsageError(f"--field: rows of the kind {self.kind} have an image and a label only")

    def of_size(self, size: Size, scales: bool) -> Source:
        """Return these rows with the size of all images. With `scales`, images of other sizes are scaled to it."""
        raise TypeError(f"rows of the kind {self.kind} have sizes of their own")

    def like(self, refs: Sequence[RowRef], heads: Sequence[Sequence[Header]]) -> Source:
        """Return these rows with fields of the types that most rows of a sample have."""
        raise TypeError(f"rows of the kind {self.kind} have types of their own")

    def check_parts(self, parts: Sequence[str]) -> None:
        """Raise InputError if a row with these parts, which are from the files of a pack, must not be read."""
        raise InputError(f"rows of the kind {self.kind} are not read again here; only a build reads them")
