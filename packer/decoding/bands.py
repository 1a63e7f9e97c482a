"""`Bands`: the bands of a picture that are stored, and their order; and a picture with these bands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from packer.decoding.band_choice import ALL, GRAY, RGB, BandChoice
from packer.decoding.decode import header_of
from packer.decoding.header import COLOURS, BandFiles, FilePixels, Header, Picture, Pixels
from packer.decoding.no_data import without_data
from packer.decoding.no_data_choice import FILE, number_of
from packer.decoding.raw_file import naming_number
from packer.decoding.raw_pixels import TRANSPARENT, coloured, ranged, read_stored, upright
from packer.decoding.rules import ImageRules
from packer.errors import BadPair, first_of
from readers.contract.kinds import MOST_BANDS

MOST_NAMED = 16
"""The most bands that a message names."""
DTYPES = ("|u1", "<u2", "<i2", "<f2", "<f4")
"""The types of numbers in which a picture is stored unchanged."""
FEW_BITS = "gray of few bits 2"
"""The rule for gray of 1, 2 and 4 bits, for recipes. Rule 1 spread its numbers over 0..255, and had no name."""


@dataclass(frozen=True)
class Bands:
    """`all` means all bands of the file, alpha included.

    `gray` and `rgb` have none. Numbers count from 1, in any order, as names are.
    """

    chosen: BandChoice = ALL

    def names(self, header: Header) -> tuple[str, ...]:
        """Return the names of the stored bands of a picture. Raise BadPair if it does not have them."""
        names = header.names
        if self.chosen == ALL:
            if len(names) > MOST_BANDS:
                raise BadPair(f"has {len(names)} bands; at most {MOST_BANDS} are packed, so choose some")
            return names
        if isinstance(self.chosen, tuple):
            return tuple(names[position] for position in self.positions(names))
        if header.extra or header.band_names or header.colours not in (1, 3):
            raise BadPair(f"has {len(names)} bands, which are not {self.chosen}; choose them by their numbers or names")
        return COLOURS if self.chosen == RGB else (GRAY,)

    def positions(self, names: Sequence[str]) -> list[int]:
        """Return the positions of the chosen bands in a file. Raise BadPair if it lacks one."""
        positions = []
        for band in self.chosen:
            if isinstance(band, str):
                if band not in names:
                    raise BadPair(f"has the bands {', '.join(first_of(names, MOST_NAMED))}, and no band {band}")
                positions.append(names.index(band))
            elif band > len(names):
                raise BadPair(f"has {len(names)} bands, and no band {band}")
            else:
                positions.append(band - 1)
        return positions

    def may_be_of_few_bits(self, names: Sequence[str]) -> bool:
        """Return whether stored bands with these names could come from gray of 1, 2 or 4 bits."""
        return self.chosen == RGB or GRAY in names

    def check(self, header: Header, rules: ImageRules) -> None:
        """Refuse a picture without these bands, and numbers that are not stored without a range."""
        self.names(header)
        if rules.image_range is None and header.dtype not in DTYPES:
            kind = "signed" if header.is_signed else "whole"
            if header.is_float:
                kind = "floating-point"
            raise BadPair(
                f"has {kind} numbers of {header.depth} bits; a picture is stored in 8 or 16 bits, signed 16 bits, "
                "float16 or float32. Save it so, or give --image-range LOW,HIGH, the numbers that become 0 and 1"
            )


def read_bands(data: Picture, bands: Bands, rules: ImageRules) -> Pixels:
    """Return an upright picture (H,W,B), its numbers as in the file; with a range float32 from 0 to 1.

    Gray of 1, 2 or 4 bits is not spread over 0 to 255. A palette has its colours.
    """
    header = header_of(data, rules.max_pixels)
    bands.check(header, rules)
    if isinstance(data, BandFiles):
        return _read_files(data, header, bands, rules)
    stored = coloured(read_stored(data, header))
    numbers = _chosen(stored, header, bands, rules)
    is_kept = numbers.dtype.kind != "f" and rules.image_range is None
    if not rules.no_data or is_kept:
        return upright(_checked(numbers, rules), header)
    missing = without_data(numbers, number_of(header.no_data if rules.no_data == FILE else rules.no_data))
    checked = _checked(np.where(missing, numbers.dtype.type(0), numbers), rules)
    checked[missing] = np.nan
    return upright(checked, header)


def _read_files(picture: BandFiles, header: Header, bands: Bands, rules: ImageRules) -> Pixels:
    """Return a picture whose bands are in files of their own. Pixels of a coarser file are repeated: none is invented.

    The number for pixels without data that a file names is the one of its bands.
    """
    height, width = header.size
    pixels: Pixels | None = None
    first = 0
    for number, file in enumerate(picture.files):
        with naming_number(number):
            part = read_bands(file, Bands(), rules)
        rows, columns, count = part.shape
        if pixels is None:
            pixels = np.empty((height, width, len(header.names)), part.dtype)
        cells = pixels.reshape(rows, height // rows, columns, width // columns, -1)
        cells[..., first : first + count] = part[:, None, :, None]
        first += count
    assert pixels is not None, "a picture has a file"
    return pixels if bands.chosen == ALL else np.ascontiguousarray(pixels[..., bands.positions(header.names)])


def _checked(numbers: Pixels, rules: ImageRules) -> Pixels:
    """Return numbers (H,W,B) from 0 to 1 if there is a range, else unchanged. Refuse NaN, and infinite numbers."""
    if rules.image_range is not None:
        return ranged(numbers, *rules.image_range)
    check_finite(numbers)
    return numbers


def check_finite(numbers: Pixels) -> None:
    """Refuse a picture (H,W,B) in which a floating-point number is NaN or infinite."""
    if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
        row, column, band = np.argwhere(~np.isfinite(numbers))[0].tolist()
        wrong = numbers[row, column, band]
        raise BadPair(
            f"has the number {wrong} at row {row}, column {column} of its stored band {band + 1}; a picture has finite "
            f"numbers{', or --nodata nan for pixels without data' if np.isnan(wrong) else ''}"
        )


def _chosen(stored: FilePixels, header: Header, bands: Bands, rules: ImageRules) -> Pixels:
    """Return the chosen bands (H,W,B), not turned yet."""
    numbers = stored.numbers
    if numbers.ndim == 2:
        numbers = numbers[..., None]
    takes_alpha = header.has_alpha and bands.chosen not in (GRAY, RGB)
    if not takes_alpha and stored.opacity is not None and rules.alpha == "refuse":
        raise BadPair(f"{TRANSPARENT}, or pack the unchanged colours with --alpha drop")
    if takes_alpha and stored.alpha is not None:
        numbers = np.dstack([numbers, stored.alpha])
    if numbers.shape[2] != len(header.names) - (header.has_alpha and not takes_alpha):
        raise BadPair(f"decodes to {numbers.shape[2]} bands, and its header names other bands")
    if isinstance(bands.chosen, tuple):
        return np.ascontiguousarray(numbers[..., bands.positions(header.names)])
    if bands.chosen == RGB and numbers.shape[2] == 1:
        return numbers.repeat(3, axis=2)
    if bands.chosen == GRAY and numbers.shape[2] == 3:
        return _gray(numbers)
    return numbers


def _gray(colours: Pixels) -> Pixels:
    """Return one of three bands that are the same. Colours have no gray that all programs agree on."""
    differs: Any = (colours != colours[..., :1]).any(axis=2)
    if differs.any():
        row, column = np.argwhere(differs)[0].tolist()
        raise BadPair(
            f"has colours, first at row {row}, column {column} of the file; use the bands rgb, or one by its number"
        )
    return np.ascontiguousarray(colours[..., :1])
