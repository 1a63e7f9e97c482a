"""The pictures that a TIFF may hold: gray, RGB, a palette, YCbCr in JPEG; in which numbers, and with which alpha."""

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
    50000: "Zstandard",
    50001: "WebP",
}
_OPAQUE_OR_NOT = (1, 2)


def check(tiff: Directory) -> None:
    """Refuse what cannot be decoded, or what programs decode differently."""
    compression, bits, samples = tiff.one(COMPRESSION), tiff.one(BITS), tiff.one(SAMPLES)
    is_float = tiff.dtype == "f4"
    _check_colours(tiff, samples)
    if compression not in UNPACKERS:
        raise BadPair(f"is a TIFF compressed by {_COMPRESSIONS.get(compression, compression)}; convert it to PNG")
    if compression == JPEG and (bits != 8 or tiff.one(PHOTOMETRIC) == INDEXED or samples not in (1, 3)):
        raise BadPair(
            f"is a TIFF with JPEG and {samples} channels of {bits} bits; only gray and three colours of 8 can be packed"
        )
    if compression in CCITT and bits != 1:
        raise BadPair(f"is a TIFF with CCITT and {bits} bits; CCITT holds 1 bit")
    fitting = NO_PREDICTOR if bits < 8 or compression not in PREDICTED else PLANES if is_float else DIFFERENCES
    if tiff.one(PREDICTOR) not in (NO_PREDICTOR, fitting):
        raise BadPair(
            f"is a TIFF with the predictor {tiff.one(PREDICTOR)}, which does not fit its numbers or its compression; "
            "save it with 1"
        )
    if tiff.one(FILL_ORDER) not in ((1, 2) if compression in CCITT else (1,)) or (
        samples > 1 and tiff.one(PLANAR) != 1
    ):
        raise BadPair("is a TIFF with PlanarConfiguration 2 or FillOrder 2; save it with 1")


def has_alpha(tiff: Directory) -> bool:
    return tiff.one(SAMPLES) in (2, 4)


def palette(tiff: Directory) -> NDArray[np.uint8] | None:
    """Return rows of red, green, blue, alpha. TIFF stores 16 bits per colour, of which the upper 8 count.

    If no number needs more than 8 bits, the lower 8 count: some writers make this mistake, and libtiff allows it.
    """
    if tiff.one(PHOTOMETRIC) != INDEXED:
        return None
    colours = np.array(tiff.numbers.get(PALETTE, ()), np.uint16)
    if len(colours) != 3 * 256:
        raise BadPair(f"is damaged: its palette has {len(colours)} numbers")
    rows = np.full((256, 4), 255, np.uint8)
    rows[:, :3] = (colours >> (8 if colours.max() > 255 else 0)).reshape(3, 256).T
    return rows


def _check_colours(tiff: Directory, samples: int) -> None:
    """Allow gray, RGB or a palette, and one more channel if it is declared as alpha."""
    photometric, extra = tiff.one(PHOTOMETRIC), tiff.numbers.get(EXTRA_SAMPLES, ())
    is_ycbcr = photometric == YCBCR and tiff.one(COMPRESSION) == JPEG
    colours = 3 if is_ycbcr else _COLOURS.get(photometric)
    if colours is None:
        raise BadPair(f"is a TIFF of {_OTHERS.get(photometric, photometric)}; convert it to gray or RGB")
    if photometric == WHITE_IS_ZERO and tiff.one(BITS) > 8:
        raise BadPair("is a TIFF in which white is zero, with more than 8 bits; save it with black as zero")
    if tiff.one(BITS) < 8 and (photometric not in (WHITE_IS_ZERO, GRAY) or samples != 1):
        raise BadPair(f"is a TIFF with {tiff.one(BITS)} bits that is not gray; convert it to PNG")
    if photometric == INDEXED and (samples, tiff.dtype) != (1, "u1"):
        raise BadPair("is a TIFF with a palette, but not with 8 bits; convert it to PNG")
    if samples == colours + 1 and len(extra) == 1 and extra[0] in _OPAQUE_OR_NOT and tiff.dtype != "f4":
        return
    if samples != colours:
        raise BadPair(f"is a TIFF with {samples} channels, not {colours}; save it with {colours}")
