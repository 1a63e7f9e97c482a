"""The pictures that a TIFF may hold: gray, RGB, a palette, YCbCr in JPEG, with alpha or with any more channels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from packer.decoding.tiff.compressions import CCITT, JPEG, PREDICTED, UNPACKERS
from packer.decoding.tiff.directory import (
    BITS,
    COMPRESSION,
    EXTRA_SAMPLES,
    FILL_ORDER,
    PALETTE,
    PHOTOMETRIC,
    PLANAR,
    PREDICTOR,
    SAMPLES,
    SAVE_AGAIN,
    SEPARATE,
    TOGETHER,
    Directory,
)
from packer.errors import BadPair

WHITE_IS_ZERO, GRAY, RGB, INDEXED, YCBCR = 0, 1, 2, 3, 6
NO_PREDICTOR, DIFFERENCES, PLANES = 1, 2, 3
_COLOURS = {WHITE_IS_ZERO: 1, GRAY: 1, RGB: 3, INDEXED: 1}
_OTHERS = {4: "a mask", 5: "CMYK", 6: "YCbCr", 8: "CIELab", 9: "ICCLab", 32803: "a raw sensor"}
_COMPRESSIONS = {
    6: "JPEG as TIFF 6 had it, which programs read differently",
    34712: "JPEG 2000",
    34887: "LERC",
    34925: "LZMA",
    50001: "WebP",
    50002: "JPEG XL",
    52546: "JPEG XL",
}
_OPAQUE_OR_NOT = (1, 2)
MOST_CHANNELS = 1024
"""More channels are refused. A picture with more has each channel in a file of its own."""


def check(tiff: Directory) -> None:
    """Refuse what cannot be decoded, or what programs decode differently."""
    compression, bits, samples = tiff.one(COMPRESSION), tiff.one(BITS), tiff.one(SAMPLES)
    _check_colours(tiff, samples)
    if compression not in UNPACKERS:
        raise BadPair(
            f"is a TIFF compressed by {_COMPRESSIONS.get(compression, f'method {compression}')}; {SAVE_AGAIN}"
        )
    if compression == JPEG and (bits != 8 or tiff.one(PHOTOMETRIC) == INDEXED or samples not in (1, 3)):
        raise BadPair(
            f"is a TIFF with JPEG and {samples} channels of {bits} bits; only gray and three colours of 8 can be packed"
        )
    if compression in CCITT and bits != 1:
        raise BadPair(f"is a TIFF with CCITT and {bits} bits; CCITT holds 1 bit")
    fitting = PLANES if is_float(tiff) else DIFFERENCES
    if bits < 8 or compression not in PREDICTED:
        fitting = NO_PREDICTOR
    if tiff.one(PREDICTOR) not in (NO_PREDICTOR, fitting):
        raise BadPair(
            f"is a TIFF with the predictor {tiff.one(PREDICTOR)}, which does not fit its numbers or its compression; "
            "save it with 1"
        )
    if tiff.one(FILL_ORDER) not in ((1, 2) if compression in CCITT else (1,)):
        raise BadPair("is a TIFF with FillOrder 2; save it with 1")
    if samples > 1 and tiff.one(PLANAR) not in ((TOGETHER,) if compression == JPEG else (TOGETHER, SEPARATE)):
        raise BadPair(f"is a TIFF with PlanarConfiguration {tiff.one(PLANAR)}; save it with 1")


def is_float(tiff: Directory) -> bool:
    return tiff.dtype[0] == "f"


def has_alpha(tiff: Directory) -> bool:
    """Return whether the one channel behind the colours is declared as alpha. Floating-point numbers have none."""
    declared = tiff.numbers.get(EXTRA_SAMPLES, ())
    is_alpha = len(declared) == 1 and declared[0] in _OPAQUE_OR_NOT
    return is_alpha and tiff.one(SAMPLES) == _colours(tiff) + 1 and not is_float(tiff)


def extra(tiff: Directory) -> int:
    """Return how many channels are neither colours nor alpha."""
    return tiff.one(SAMPLES) - _colours(tiff) - has_alpha(tiff)


def _colours(tiff: Directory) -> int:
    """Return how many channels are gray or colours."""
    photometric = tiff.one(PHOTOMETRIC)
    if photometric == YCBCR and tiff.one(COMPRESSION) == JPEG:
        return 3
    if photometric not in _COLOURS:
        raise BadPair(f"is a TIFF of {_OTHERS.get(photometric, photometric)}; convert it to gray or RGB")
    return _COLOURS[photometric]


def palette(tiff: Directory) -> NDArray[np.uint8] | None:
    """Return rows of red, green, blue, alpha. TIFF stores 16 bits per colour, and the upper 8 count.

    If no number needs more than 8 bits, the lower 8 count: some writers make this mistake, and libtiff allows it.
    """
    if tiff.one(PHOTOMETRIC) != INDEXED:
        return None
    colours = np.array(tiff.numbers.get(PALETTE, ()), np.uint64)
    if len(colours) != 3 * 256:
        raise BadPair(f"is damaged: its palette has {len(colours)} numbers")
    if colours.max() > 0xFFFF:
        raise BadPair(f"is damaged: its palette has the number {colours.max()}")
    rows = np.full((256, 4), 255, np.uint8)
    rows[:, :3] = (colours >> (8 if colours.max() > 255 else 0)).reshape(3, 256).T
    return rows


def _check_colours(tiff: Directory, samples: int) -> None:
    """Allow gray, RGB or a palette, and more channels behind them."""
    photometric, declared = tiff.one(PHOTOMETRIC), tiff.numbers.get(EXTRA_SAMPLES, ())
    colours = _colours(tiff)
    if photometric == WHITE_IS_ZERO and (tiff.one(BITS) > 8 or extra(tiff) or tiff.dtype != "u1"):
        raise BadPair("is a TIFF in which white is zero, with more than 8 bits or channels; save it with black as zero")
    if tiff.one(BITS) < 8 and (photometric not in (WHITE_IS_ZERO, GRAY) or samples != 1):
        raise BadPair(f"is a TIFF with {tiff.one(BITS)} bits that is not gray; convert it to PNG")
    if photometric == INDEXED and (samples, tiff.dtype) != (1, "u1"):
        raise BadPair("is a TIFF with a palette, but not with 8 bits; convert it to PNG")
    if not colours <= samples <= MOST_CHANNELS:
        raise BadPair(f"is a TIFF with {samples} channels; {colours} to {MOST_CHANNELS} are possible")
    if declared and samples > colours and len(declared) != samples - colours:
        raise BadPair(
            f"is a TIFF with {samples} channels, {colours} of them colours, but it declares {len(declared)} others"
        )
