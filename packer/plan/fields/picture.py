"""A field of pictures: red, green and blue of 8 bits, or the bands of the files."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from packer.decoding.bands import Bands
from packer.decoding.decode import check_image
from packer.decoding.header import Header
from packer.decoding.no_data_choice import FILE, NONE, number_of
from packer.decoding.rules import FileRules, ImageRules
from packer.errors import BadPair, UsageError, counted
from packer.pixels.choices import FLOATS, IMAGE_DTYPES, NUMBERS
from packer.pixels.field_options import PictureField
from packer.plan.fields.planned_field import PlannedField
from readers.contract.classes import ClassTable
from readers.contract.fields import IMAGE, Field, picture_field
from readers.contract.kinds import NAN, fits

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class PlannedPicture(PlannedField):
    """Pictures that are decoded by the image rules."""

    options: PictureField
    read: ImageRules
    fill: int | str | None = None
    """The number that the files name for pixels without data, in the stored type."""

    @classmethod
    def of(cls, options: PictureField, table: ClassTable | None, files: FileRules) -> Self:
        stated = options.nodata if options.nodata not in (FILE, NONE) else ""
        return cls(
            options,
            ImageRules(
                options.range,
                options.alpha,
                files.max_pixels,
                options.decode,
                options.bands,
                files.slide_level,
                stated,
            ),
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
        fill = self._fill(header.no_data, header.dtype) if self.options.nodata == FILE else None
        if isinstance(fill, int) and header.no_data_of:
            numbers = ", ".join(number or NONE for number in header.no_data_of)
            raise BadPair(
                f"names {numbers} for pixels without data in its bands, and whole numbers have one for all; "
                f"{self._flag('nodata')} NUMBER states it, {self._flag('nodata')} none leaves them"
            )
        return replace(self, dtype=dtype, bands=bands.names(header), few_bits=few_bits, fill=fill)

    def most(self, forms: Mapping[Self, int]) -> Self:
        """Return the form of most files, with the number for pixels without data that most of these name."""
        alike, fills = Counter[PlannedPicture](), Counter[int | str]()
        for form, count in forms.items():
            alike[replace(form, fill=None)] += count
        most = super().most(alike)  # type: ignore[arg-type]
        for form, count in forms.items():
            if form.fill is not None and replace(form, fill=None) == most:
                fills[form.fill] += count
        if not fills:
            return most
        return replace(most, fill=max(fills, key=fills.__getitem__), read=replace(most.read, no_data=FILE))

    def check_form(self, header: Header) -> None:
        in_file = self.as_in(header)
        if None not in (in_file.fill, self.fill) and in_file.fill != self.fill:
            raise BadPair(
                f"names {in_file.fill} for pixels without data, and other files {self.fill}; "
                f"{self._flag('nodata')} NUMBER states one for all, {self._flag('nodata')} none leaves them"
            )
        bands, most = len(in_file.bands or ()), len(self.bands or ())
        if self.options.times > 1 and bands != most:
            raise BadPair(
                f"has {counted(bands, 'band')}, and most files have {most}: time series have one number of dates. Pad "
                f"shorter ones with a number for no data ({self._flag('nodata')})"
            )
        self.check_same_form(replace(in_file, fill=self.fill, read=self.read))

    def check(self, header: Header) -> None:
        if self.read.bands is None:
            check_image(header, self.read)
        else:
            self.check_form(header)

    def stored(self, sides: tuple[int | None, ...] | None) -> Field:
        """Return a picture of the numbers in the files, or of numbers that are scaled to 0..255 or 0..1."""
        field, stated = self._stored(sides), self.read.no_data
        fill = self.fill if stated in ("", FILE) else self._fill(stated, self.dtype or "|u1")
        if fill is None and stated:
            raise UsageError(
                f"{self._flag('nodata')} {stated}: no number of {np.dtype(field.dtype)} can mark these pixels; "
                f"{self._flag('bands')} all stores the numbers of the files, and {self._flag('dtype')} float32 with "
                f"{self._flag('range')} has NaN for them"
            )
        field = field if fill is None else replace(field, fill=fill, no_data=True)
        return self._in_dates(padded(field, self.options.pad, self._flag("pad")))

    def _in_dates(self, field: Field) -> Field:
        """Return the field with its number of dates."""
        times = self.options.times
        if times > 1 and (self.bands is None or field.numbers % times):
            what = "stores red, green and blue" if self.bands is None else f"stores {counted(field.numbers, 'band')}"
            raise UsageError(
                f"{self._flag('times')} {times}: the build {what}, which are not {times} dates of equally many bands; "
                f"{self._flag('bands')} all stores all bands of the files"
            )
        return replace(field, times=times)

    def _fill(self, text: str, dtype: str) -> int | str | None:
        """Return how pixels without data are marked, if files of this type write this number for them; None if the
        stored type has no number left for them, or the number is none of the file."""
        asked = NUMBERS[self.options.dtype] if self.options.dtype else None
        if self.options.range is not None:
            dtype = asked or "|u1"
        elif asked not in (None, dtype):
            return None
        number = number_of(text)
        if number is None or dtype[1] == "f":
            return None if number is None else NAN
        if self.options.range is not None or not math.isfinite(number) or number != int(number):
            return None
        return int(number) if fits(int(number), dtype) else None

    def _stored(self, sides: tuple[int | None, ...] | None) -> Field:
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
        """Return the option that a user types: dtype, range, nodata, times, pad, or bands."""
        if self.name != IMAGE:
            return f"--field {self.name}: {option}"
        return f"--{option}" if option in ("nodata", "bands", "times", "pad") else f"--image-{option}"


def padded(field: Field, pad: float, flag: str) -> Field:
    """Return a picture with the number around it; 0 leaves the one that it has."""
    if pad == 0:
        return field
    if field.no_data:
        raise UsageError(
            f"{flag} {pad:g}: padding is pixels without data, which have the number {field.fill}; leave it out, or "
            "state --nodata none"
        )
    number = float(np.dtype(field.dtype).type(pad)) if field.dtype in FLOATS else pad
    fill = int(number) if number == int(number) else number
    is_scaled = field.dtype in FLOATS and field.range == (0, 1)
    if not fits(fill, field.dtype) or (is_scaled and not 0 <= fill <= 1):
        numbers = f"{np.dtype(field.dtype)} from 0 to 1" if is_scaled else str(np.dtype(field.dtype))
        raise UsageError(f"{flag} {pad:g}: is no number of the stored type, which is {numbers}")
    return replace(field, fill=fill)


plan = PlannedPicture.of
