"""The header of a picture whose bands are in several files: one size, one place and one type of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from packer.decoding.grid import finer, other_place
from packer.decoding.header import Header
from packer.decoding.raw_file import naming_number
from packer.decoding.rules import MOST_PIXELS, check_size
from packer.errors import BadPair
from readers.contract.tiles import size_text


def join_headers(names: Sequence[str], headers: Sequence[Header], max_pixels: int = MOST_PIXELS) -> Header:
    """Return the header of the picture with these bands, upright. Raise BadFile if a file does not fit the finest."""
    first = max(range(len(headers)), key=lambda number: math.prod(headers[number].size))
    finest = headers[first]
    placed, elsewhere = next((number for number, header in enumerate(headers) if _has_place(header, finest)), first), ""
    for number, header in enumerate(headers):
        with naming_number(number):
            _check_band(header)
            _check_type(names[first], finest, header)
            factors = factors_of(names[first], finest, header)
            elsewhere = elsewhere or _elsewhere(names[placed], headers[placed], names[number], header, factors)
    bands = [band for name, header in zip(names, headers, strict=True) for band in _band_names(name, header)]
    height, width = finest.size
    check_size(height, width, len(bands), max_pixels)
    numbers = [header.no_data for header in headers for _ in header.names]
    return replace(
        finest,
        stored_width=width,
        stored_height=height,
        channels=len(bands),
        extra=len(bands) - 1,
        has_alpha=False,
        is_lossy=any(header.is_lossy for header in headers),
        orientation=1,
        grid=headers[placed].grid,
        no_data=next(filter(None, numbers), ""),
        band_names=tuple(bands),
        no_data_of=tuple(numbers) if len(set(numbers)) > 1 else (),
        elsewhere=elsewhere,
    )


def factors_of(name: str, finest: Header, header: Header) -> tuple[int, int]:
    """Return how often the finest file has each line and each column of a file."""
    size, largest = header.size, finest.size
    if any(most % side for side, most in zip(size, largest, strict=True)):
        raise BadPair(
            f"is {size_text(size)}, and {name} is {size_text(largest)} (height x width); the sides of a coarser band "
            "divide the sides of the finest one. Bring it to the same grid, or leave it out by --bands"
        )
    return largest[0] // size[0], largest[1] // size[1]


def _band_names(name: str, header: Header) -> list[str]:
    """Return the names of the bands of a file, such as `B02`, or `before red`, `before green` and `before blue`."""
    return [name] if len(header.names) == 1 else [f"{name} {band}" for band in header.names]


def _check_band(header: Header) -> None:
    if header.has_palette:
        raise BadPair(f"is a {header}; a band has numbers of its own. Convert it, or leave it out by --bands")


def _check_type(name: str, finest: Header, header: Header) -> None:
    if (header.depth, header.dtype) != (finest.depth, finest.dtype):
        raise BadPair(
            f"is a {header}, and {name} is a {finest}; all bands of a picture have one type of numbers. Convert it, or "
            "leave it out by --bands"
        )


def _has_place(header: Header, finest: Header) -> bool:
    """Return whether a file of the finest ones says where its pixels are."""
    return header.size == finest.size and header.grid is not None and bool(header.grid.transforms)


def _elsewhere(first: str, placed: Header, name: str, header: Header, factors: tuple[int, int]) -> str:
    """Return in words where a file is, if it is at another place. Of two sizes, both files say their place, or none."""
    if factors == (1, 1):
        return other_place(first, placed.grid, name, header.grid, "band")
    grids = [grid for grid in (placed.grid, header.grid) if grid is not None and grid.transforms]
    if len(grids) == 1:
        raise BadPair(
            f"is coarser than {first}, and only one of them says where its pixels are; give both the place that they "
            "have, or none"
        )
    grid = None if header.grid is None else finer(header.grid, factors)
    return other_place(first, placed.grid, name, grid, "band")
