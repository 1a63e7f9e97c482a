"""A field of pictures: red, green and blue of 8 bits, or the bands of the files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from packer.decoding.bands import Bands
from packer.decoding.decode import check_image
from packer.decoding.header import Header
from packer.decoding.rules import FileRules, ImageRules
from packer.errors import UsageError
from packer.pixels.choices import FLOATS, IMAGE_DTYPES, NUMBERS
from packer.pixels.field_options import PictureField
from packer.plan.fields.planned_field import PlannedField
from readers.contract.classes import ClassTable
from readers.contract.fields import IMAGE, Field, picture_field

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class PlannedPicture(PlannedField):
    """Pictures that are decoded by the image rules."""

    options: PictureField
    read: ImageRules

    @classmethod
    def of(cls, options: PictureField, table: ClassTable | None, files: FileRules) -> Self:
        level = files.slide_level
        return cls(
            options, ImageRules(options.range, options.alpha, files.max_pixels, options.decode, options.bands, level)
        )

    @property
    def needs_header(self) -> bool:
        return self.read.bands is not None

    def as_in(self, header: Header) -> Self:
        if self.read.bands is None:
            return self
        bands = Bands(self.read.bands)
        bands.check(header, self.read)
        dtype = header.dtype if self.read.image_range is None else None
        few_bits = header.depth if header.depth < 8 and not header.has_palette else None
        return replace(self, dtype=dtype, bands=bands.names(header), few_bits=few_bits)

    def check(self, header: Header) -> None:
        if self.read.bands is None:
            check_image(header, self.read)
        else:
            self.check_form(header)

    def stored(self, sides: tuple[int | None, ...] | None) -> Field:
        """Return a picture of the numbers in the files, or of numbers that are scaled to 0..255 or 0..1."""
        name, dtype = self.name, NUMBERS[self.options.dtype] if self.options.dtype else None
        if self.bands is None:
            return picture_field(name, dtype or "|u1", sides)
        if self.options.range is not None:
            if dtype not in (None, *IMAGE_DTYPES.values()):
                raise UsageError(
                    f"{self._flag('range')}: makes numbers from 0 to 1, which are stored as {', '.join(IMAGE_DTYPES)}"
                )
            return picture_field(name, dtype or "|u1", sides, self.bands)
        assert self.dtype is not None, "a file without a range keeps its type"
        if dtype in (None, self.dtype):
            field = picture_field(name, self.dtype, sides, self.bands)
            return field if self.dtype == "|u1" else replace(field, range=None)
        if self.dtype == "|u1" and dtype in FLOATS:
            return picture_field(name, str(dtype), sides, self.bands)
        raise UsageError(
            f"{self._flag('dtype')} {self.options.dtype}: the files of {name} hold {np.dtype(self.dtype)}; "
            f"leave it out, or give {self._flag('range')} LOW,HIGH, the numbers that become 0 and 1"
        )

    def eight_bits(self, field: Field) -> str:
        if field.is_volume or field.numbers not in (1, 3):
            return ""
        if field.range is not None:
            return f", and without {self._flag('dtype')} there are 8 bits"
        return f", and {self._flag('range')} LOW,HIGH makes 8 bits of them: LOW becomes 0, HIGH 255"

    def _flag(self, option: str) -> str:
        """Return the option that a user types: dtype, or range."""
        return f"--image-{option}" if self.name == IMAGE else f"--field {self.name}: {option}"


plan = PlannedPicture.of
