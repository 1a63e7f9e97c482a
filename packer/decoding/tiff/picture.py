"""Read the header of a TIFF, and put its strips or tiles together."""

from __future__ import annotations

from io import BytesIO
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from packer.decoding.grid import EXIF, Grid, turned
from packer.decoding.header import FilePixels, Header, Pixels
from packer.decoding.tiff import blocks, colours, geo
from packer.decoding.tiff.compressions import JPEG
from packer.decoding.tiff.directory import (
    BITS,
    COMPRESSION,
    HEIGHT,
    PHOTOMETRIC,
    SAMPLES,
    WIDTH,
    Directory,
    read_directory,
)

SIGNATURES = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")


def read(file: BinaryIO) -> Header:
    """Read the directory, and refuse what cannot be decoded. Only damage of the blocks is found later."""
    return header_of(read_directory(file))


def header_of(tiff: Directory) -> Header:
    """Return the header of a page."""
    colours.check(tiff)
    return Header(
        "TIFF",
        tiff.one(WIDTH),
        tiff.one(HEIGHT),
        tiff.one(BITS),
        tiff.one(SAMPLES),
        is_float=colours.is_float(tiff),
        is_signed=tiff.dtype[0] == "i",
        has_alpha=colours.has_alpha(tiff),
        extra=colours.extra(tiff),
        is_lossy=tiff.one(COMPRESSION) == JPEG,
        orientation=tiff.orientation,
        has_palette=tiff.one(PHOTOMETRIC) == colours.INDEXED,
        white_is_zero=tiff.one(PHOTOMETRIC) == colours.WHITE_IS_ZERO,
        grid=_grid(tiff),
        no_data=geo.no_data_of(tiff.geo),
    )


def _grid(tiff: Directory) -> Grid | None:
    """Return the place of the upright picture."""
    grid = geo.grid_of(tiff.geo, tiff.order, (tiff.one(WIDTH), tiff.one(HEIGHT)))
    return turned(grid, EXIF[tiff.orientation]) if grid is not None and tiff.orientation in EXIF else grid


def decode(data: bytes, header: Header) -> FilePixels:
    """Return gray, indices with their palette, colours, or many bands; alpha is separate."""
    tiff = read_directory(BytesIO(data))
    pixels = np.empty((header.stored_height, header.stored_width, header.channels), tiff.dtype)
    decoder = blocks.Decoder(tiff, data)
    for block in blocks.blocks_of(tiff):
        numbers = decoder.pixels(block)
        rows, columns = (
            slice(block.top, block.top + block.shape.rows),
            slice(block.left, block.left + block.shape.columns),
        )
        target = pixels[rows, columns, block.channels]
        target[:] = numbers[: target.shape[0], : target.shape[1]]
    return stored(pixels, header, colours.palette(tiff))


def stored(pixels: Pixels, header: Header, palette: NDArray[np.uint8] | None) -> FilePixels:
    """Return the numbers (H,W,channels) of a file, or some lines of them."""
    alpha = pixels[..., -1] if header.has_alpha else None
    others = header.channels - header.has_alpha
    if others > 1:
        return FilePixels(np.ascontiguousarray(pixels[..., :others]), alpha)
    gray = np.ascontiguousarray(pixels[..., 0])
    return FilePixels(2**header.depth - 1 - gray if header.white_is_zero else gray, alpha, palette)
