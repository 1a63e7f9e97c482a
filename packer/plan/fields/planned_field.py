"""`PlannedField`: the base of all kinds of fields in a plan."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from packer.decoding.header import Header
from packer.errors import BadPair, UsageError, counted, first_of
from packer.pixels.field_options import FieldOptions, ReadRule
from packer.pixels.jpeg_rules import JpegRules, can_be_jpeg
from packer.recipe.field_rule import FieldRule
from readers.contract.classes import ClassTable
from readers.contract.fields import JPEG, RAW, TILED, Field
from readers.contract.kinds import PICTURE

if TYPE_CHECKING:
    from typing_extensions import Self

LEAST_TILE, MOST_TILE = 16, 4096
MOST_NAMED = 16
"""The most bands that a message names."""
"""The sides of tiles: smaller ones are more table than picture, larger ones are read whole for a window."""


@dataclass(frozen=True)
class PlannedField(ABC):
    """A field that a build is asked for, the rules that read it, and the form that all of its files must have."""

    options: FieldOptions
    read: ReadRule
    classes: ClassTable | None = None
    dtype: str | None = None
    """The type of the numbers in the files, if the field is stored as its files are."""
    bands: tuple[str, ...] | None = None
    """The names of the bands of a picture that is stored unchanged."""
    few_bits: int | None = None
    """The bits of a number in the files if there are fewer than 8: the highest number is another one then."""
    encoding: str = RAW
    tile: tuple[int, ...] | None = None
    jpeg: JpegRules | None = None

    @property
    def name(self) -> str:
        return self.options.name

    @property
    def needs_header(self) -> bool:
        """True if a header decides what is stored."""
        return False

    @property
    def can_judge(self) -> bool:
        """True if everything is known that decides which headers are good."""
        return True

    def as_in(self, header: Header) -> Self:
        """Return the field in the form of a file with this header. Raise BadPair if the file cannot be packed."""
        return self

    def most(self, forms: Mapping[Self, int]) -> Self:
        """Return the form of a field whose files have these forms, each with the number of files."""
        return max(forms, key=forms.__getitem__, default=self)

    def check_form(self, header: Header) -> None:
        """Raise BadPair if a file with this header has another form than the field and most files."""
        self.check_same_form(self.as_in(header))

    def check_same_form(self, in_file: Self) -> None:
        """Raise BadPair if the form of a file is not the form of the field and most files."""
        if in_file != self:
            mine, most = _forms(in_file, self)
            raise BadPair(f"has {mine}, while most files have {most}; all must have the same")

    @abstractmethod
    def check(self, header: Header) -> None:
        """Raise BadPair if a shard would certainly reject a file with this header."""

    @abstractmethod
    def stored(self, sides: tuple[int | None, ...] | None) -> Field:
        """Return what is stored, with these sides; None for pictures that keep their own sizes."""

    def eight_bits(self, field: Field) -> str:
        """Return how a field of other numbers gets 8 bits, as the end of a message; nothing if it cannot."""
        return ""

    def rule(self, sides: tuple[int | None, ...] | None, template: str) -> FieldRule:
        """Return the rule of the recipe, with these stored sides."""
        field = replace(self.stored(sides), encoding=self.encoding, tile=self.tile)
        return FieldRule(field, self.read, template, self.jpeg)

    def encoded(self, encoding: str, sides: tuple[None, ...] | None = None) -> Self:
        """Return the field with an encoding such as `zstd`, `jpeg:95` or `tiles:256`. Raise UsageError if it cannot be
        stored so."""
        if encoding == RAW:
            return replace(self, encoding=RAW)
        name, *options = encoding.split(":")
        tile = self._tile(encoding, options.pop(0), len(sides or (None, None))) if name in TILED else None
        if JPEG not in (name, TILED.get(name)):
            return replace(self, encoding=name, tile=tile)
        field = self.stored(sides)
        if not can_be_jpeg(field):
            raise UsageError(
                f"--encode {self.name}={encoding}: JPEG stores pictures of 8 bits with 1 or 3 bands, not "
                f"{_not_jpeg(field)}; zstd stores every field{self.eight_bits(field)}"
            )
        return replace(self, encoding=name, tile=tile, jpeg=JpegRules.parse("".join(options)))

    def _tile(self, encoding: str, text: str, sides: int) -> tuple[int, ...]:
        """Return the sides of a tile; one number stands for all of them."""
        tile = tuple(map(int, re.split("[x×]", text)))
        if len(tile) not in (1, sides):
            raise UsageError(f"--encode {self.name}={encoding}: a tile has as many sides as a row, here {sides}")
        if not LEAST_TILE <= min(tile[-2:]) <= max(tile) <= MOST_TILE:
            raise UsageError(
                f"--encode {self.name}={encoding}: a tile is {LEAST_TILE} to {MOST_TILE} pixels high and wide, such as "
                "256"
            )
        return tile * sides if len(tile) == 1 else tile


def _not_jpeg(field: Field) -> str:
    """Describe a field that JPEG cannot store."""
    if field.is_volume:
        return "volumes"
    if field.kind != PICTURE:
        return field.kind
    if field.no_data:
        return f"pictures in which {field.fill} means no data (--nodata none keeps it as a number like others)"
    return f"{field.numbers} {'band' if field.numbers == 1 else 'bands'} of {np.dtype(field.dtype)}"


def _forms(*fields: PlannedField) -> Iterator[str]:
    """Describe the form of each field. Bands are named only if all fields have as many, and other ones."""
    bands = {field.bands or () for field in fields}
    are_named = len(bands) > 1 and len(set(map(len, bands))) == 1
    for field in fields:
        names = f" ({', '.join(first_of(field.bands, MOST_NAMED))})" if field.bands and are_named else ""
        count = f"{counted(len(field.bands), 'band')}{names}" if field.bands else ""
        dtype = counted(field.few_bits, "bit") if field.few_bits else field.dtype and str(np.dtype(field.dtype))
        yield " of ".join(filter(None, (count, dtype)))
