"""`PlannedField`: a field as it is asked for, and what the headers of its files must be."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from packer.decoding.bands import Bands
from packer.decoding.decode import check_image, check_label
from packer.decoding.header import Header
from packer.decoding.raw_file import naming
from packer.decoding.rules import ImageRules
from packer.errors import BadPair, UsageError
from packer.pixels.choices import FLOATS, IMAGE_DTYPES, NUMBERS
from packer.pixels.field_options import (
    CLASS,
    ClassesField,
    FieldOptions,
    IdsField,
    MultilabelField,
    PictureField,
    ValuesField,
    naming_option,
)
from packer.pixels.id_codec import IdCodec, id_dtype
from packer.pixels.jpeg_rules import JpegRules, can_be_jpeg
from packer.pixels.label_rules import LabelRules, resolve
from packer.pixels.multilabel_codec import MultilabelCodec
from packer.pixels.number_rules import IdRules, MultilabelRules, ValueRules
from packer.pixels.value_codec import ValueCodec, value_dtype, value_fill
from packer.recipe.field_rule import FieldRule, Read
from packer.recipe.read_rules import ReadRules
from packer.recipe.row_ref import RowRef
from readers.contract.classes import ClassTable
from readers.contract.fields import IMAGE, JPEG, LABEL, RAW, TILED, Field, classes_field, picture_field
from readers.contract.kinds import IDS, INDEX, MULTILABEL, PICTURE, VALUES, planes_of

LEAST_TILE, MOST_TILE = 16, 4096
"""The sides of tiles: smaller ones are more table than picture, larger ones are read whole for a window."""


@dataclass(frozen=True)
class PlannedField:
    """The options of a field, the rules to read it by, and the form that all of its files must have."""

    options: FieldOptions
    read: Read
    classes: ClassTable | None = None
    dtype: str | None = None
    """The type of the numbers in the files, if the field is stored as its files are."""
    bands: tuple[str, ...] | None = None
    """The names of the bands of a picture that is stored as it is in the files."""
    packed: Field | None = None
    """The field of a pack that the rows come from. Its rows are read by no rules, and have the form of the field."""
    encoding: str = RAW
    tile: tuple[int, ...] | None = None
    jpeg: JpegRules | None = None

    @property
    def name(self) -> str:
        return self.options.name

    @property
    def needs_header(self) -> bool:
        """True if a header decides what is stored."""
        if self.packed is not None:
            return False
        if isinstance(self.read, ImageRules):
            return self.read.bands is not None
        return isinstance(self.read, (IdRules, ValueRules)) and self.dtype is None

    def as_in(self, header: Header) -> PlannedField:
        """Return the field in the form of a file with this header. Raise BadPair if it cannot be packed."""
        if isinstance(self.read, IdRules):
            return replace(self, dtype=id_dtype(header, self.read))
        if isinstance(self.read, ValueRules):
            return replace(self, dtype=value_dtype(header, self.read))
        assert isinstance(self.read, ImageRules)
        assert self.read.bands is not None
        bands = Bands(self.read.bands)
        bands.check(header, self.read)
        dtype = header.dtype if self.read.image_range is None else None
        return replace(self, dtype=dtype, bands=bands.names(header))

    def check(self, header: Header) -> None:
        """Raise BadPair if a shard would certainly reject a file with this header."""
        if self.packed is not None:
            return
        if isinstance(self.read, LabelRules):
            check_label(header, self.read.lossy)
        elif isinstance(self.read, ImageRules) and self.read.bands is None:
            with naming_option(self.name):
                check_image(header, self.read)
        else:
            with naming_option(self.name):
                self._check_numbers(header)

    def _check_numbers(self, header: Header) -> None:
        """Raise BadPair if a file with this header does not hold the numbers that are stored."""
        if isinstance(self.read, IdRules):
            IdCodec(self.read, self.dtype or "<u4").check(header)
        elif isinstance(self.read, MultilabelRules):
            assert self.classes is not None, "its table was read with its options"
            MultilabelCodec(self.read, self.classes).check(header)
        elif isinstance(self.read, ValueRules):
            dtype = self.dtype or "<f4"
            ValueCodec(self.read, dtype, value_fill(self.read, dtype)).check(header)
        is_chosen = isinstance(self.options, ValuesField) and self.options.dtype is not None
        if isinstance(self.read, (ImageRules, ValueRules)) and not is_chosen and (found := self.as_in(header)) != self:
            mine, most = _forms(found, self)
            raise BadPair(f"has {mine}, while most files have {most}; all must have the same")

    def rule(self, size: tuple[int | None, ...] | None, template: str) -> FieldRule:
        """Return the rule of the recipe, with these stored sides; None of native pictures."""
        field = replace(self._field(size), encoding=self.encoding, tile=self.tile)
        return FieldRule(field, self.read, template, self.jpeg)

    def encoded(self, encoding: str, sides: tuple[None, ...] | None = None) -> PlannedField:
        """Return the field with an encoding such as `zstd`, `jpeg:95` or `tiles:256`. Raise UsageError if it cannot be
        stored so."""
        if encoding == RAW:
            return replace(self, encoding=RAW)
        name, *options = encoding.split(":")
        tile = self._tile(encoding, options.pop(0), len(sides or (None, None))) if name in TILED else None
        if JPEG not in (name, TILED.get(name)):
            return replace(self, encoding=name, tile=tile)
        field = self._field(sides)
        if not can_be_jpeg(field):
            raise UsageError(
                f"--encode {self.name}={encoding}: JPEG stores pictures of 8 bits with 1 or 3 bands, not "
                f"{_not_jpeg(field)}; zstd stores every field{self._as_bytes(field)}"
            )
        return replace(self, encoding=name, tile=tile, jpeg=JpegRules.parse("".join(options)))

    def _as_bytes(self, field: Field) -> str:
        """Return how a picture of other numbers gets 8 bits; nothing if its bands are too many, or it is a volume."""
        is_picture = isinstance(self.options, PictureField) and not field.is_volume and field.numbers in (1, 3)
        if not is_picture or self.packed is not None:
            return ""
        if field.range is not None:
            return f", and without {_flags(self.name)['dtype']} there are 8 bits"
        return f", and {_flags(self.name)['range']} LOW,HIGH makes 8 bits of them: LOW becomes 0, HIGH 255"

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

    def _field(self, size: tuple[int | None, ...] | None) -> Field:
        options, sides = self.options, size or (None, None)
        if self.packed is not None:
            return replace(self.packed, shape=(*self.packed.planes, *sides), optional=False)
        if isinstance(options, PictureField):
            return _picture(options, self.dtype, self.bands, size)
        if isinstance(options, ClassesField):
            assert self.classes is not None, "without classes there is no recipe"
            return classes_field(options.name, options.form, self.classes, size)
        if isinstance(options, IdsField):
            return Field(self.name, IDS, INDEX, self.dtype or "<u4", sides)
        if isinstance(options, ValuesField):
            assert isinstance(self.read, ValueRules)
            dtype = self.dtype or "<f4"
            return Field(self.name, VALUES, INDEX, dtype, sides, fill=value_fill(self.read, dtype))
        assert self.classes is not None, "its table was read with its options"
        shape = (*planes_of(options.form, len(self.classes)), *sides)
        return Field(self.name, MULTILABEL, options.form, "|u1", shape, classes=self.classes)


def _forms(*fields: PlannedField) -> Iterator[str]:
    """Describe the form of the files of each field. Bands are named only if all have as many, and other ones."""
    bands = {field.bands or () for field in fields}
    are_named = len(bands) > 1 and len(set(map(len, bands))) == 1
    for field in fields:
        names = f" ({', '.join(field.bands)})" if field.bands and are_named else ""
        count = f"{len(field.bands)} bands{names}" if field.bands else ""
        yield " of ".join(filter(None, (count, field.dtype and str(np.dtype(field.dtype)))))


def _flags(name: str) -> dict[str, str]:
    """Return the options that decide the numbers of a picture."""
    if name == IMAGE:
        return {"dtype": "--image-dtype", "range": "--image-range"}
    return {option: f"--field {name}: {option}" for option in ("dtype", "range")}


def _not_jpeg(field: Field) -> str:
    """Describe a field that JPEG cannot store."""
    if field.is_volume:
        return "volumes"
    if field.kind != PICTURE:
        return field.kind
    return f"{field.numbers} {'band' if field.numbers == 1 else 'bands'} of {np.dtype(field.dtype)}"


def _picture(
    options: PictureField, dtype: str | None, bands: tuple[str, ...] | None, size: tuple[int | None, ...] | None
) -> Field:
    """Return the field of a picture: numbers as they are in the files, or scaled to 0..255 or 0..1."""
    flags = _flags(options.name)
    wanted = NUMBERS[options.dtype] if options.dtype else None
    if bands is None:
        return picture_field(options.name, wanted or "|u1", size)
    if options.range is not None:
        if wanted not in (None, *IMAGE_DTYPES.values()):
            raise UsageError(
                f"{flags['range']}: makes numbers from 0 to 1, which are stored as {', '.join(IMAGE_DTYPES)}"
            )
        return picture_field(options.name, wanted or "|u1", size, bands)
    assert dtype is not None, "a file without a range is stored as it is"
    if wanted in (None, dtype):
        as_stored = picture_field(options.name, dtype, size, bands)
        return as_stored if dtype == "|u1" else replace(as_stored, range=None)
    if dtype == "|u1" and wanted in FLOATS:
        return picture_field(options.name, str(wanted), size, bands)
    raise UsageError(
        f"{flags['dtype']} {options.dtype}: the files of {options.name} hold {np.dtype(dtype)}; leave it out, or give "
        f"{flags['range']} LOW,HIGH, the numbers that become 0 and 1"
    )


def planned(options: FieldOptions, max_pixels: int, table: ClassTable | None, slide_level: int = 0) -> PlannedField:
    """Return a field before its headers are known, and perhaps before its class table is."""
    if isinstance(options, PictureField):
        rules = ImageRules(options.range, options.alpha, max_pixels, options.decode, options.bands, slide_level)
        return PlannedField(options, rules)
    if isinstance(options, ClassesField):
        read = LabelRules(options.codec, options.unknown, options.threshold, options.divisor)
        return PlannedField(options, read if table is None else resolve(read, table), table)
    if isinstance(options, MultilabelField):
        return PlannedField(options, MultilabelRules(CLASS not in options.files), table)
    dtype = NUMBERS[options.dtype] if options.dtype else None
    if isinstance(options, IdsField):
        return PlannedField(options, IdRules(options.codec), dtype=dtype)
    return PlannedField(options, ValueRules(options.invalid, options.scale, options.interpolation), dtype=dtype)


def check_headers(fields: Sequence[PlannedField], ref: RowRef, heads: Sequence[Header]) -> None:
    """Raise BadPair if a shard would certainly reject a row with these headers."""
    given = iter(heads)
    for field, part in zip(fields, ref.parts, strict=False):
        if part:
            with naming(part):
                field.check(next(given))


def read_rules(fields: Sequence[PlannedField]) -> ReadRules | None:
    """Return the rules for images and labels, as far as they are known."""
    by_name = {field.name: field.read for field in fields}
    image, label = by_name.get(IMAGE), by_name.get(LABEL, LabelRules())
    return ReadRules(image, label) if isinstance(image, ImageRules) and isinstance(label, LabelRules) else None
