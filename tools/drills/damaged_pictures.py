"""Damage picture files of every type by cuts, holes and flipped bits, and count what the decoder makes of them.

    tools/run drills.damaged_pictures [--count 2000] 2>/dev/null     (decoders print to stderr)

It is right to refuse a file, or to return the same pixels. Other pixels are an undetected error.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from program import SAMPLES, parser
from tables import line

from packer.decoding.decode import decode_image
from packer.decoding.rules import ImageRules
from packer.errors import BadPair

REFUSED, SAME, OTHER = "refused", "same pixels", "other pixels"
FEWER = 10
"""The factor by which rare file types have fewer cases."""

KINDS = {
    "PNG": (".png", ()),
    "JPEG": (".jpg", ()),
    "JPEG, progressive": (".jpg", (cv2.IMWRITE_JPEG_PROGRESSIVE, 1)),
    "BMP": (".bmp", ()),
    "TIFF, plain": (".tif", (cv2.IMWRITE_TIFF_COMPRESSION, 1)),
    "TIFF, LZW": (".tif", (cv2.IMWRITE_TIFF_COMPRESSION, 5)),
    "TIFF, deflate": (".tif", (cv2.IMWRITE_TIFF_COMPRESSION, 8)),
    "WebP, lossless": (".webp", (cv2.IMWRITE_WEBP_QUALITY, 101)),
    "WebP, lossy": (".webp", (cv2.IMWRITE_WEBP_QUALITY, 90)),
}
WIDTHS = (-20, -14, 7, 10, 14, 14)
COMMON = ("PNG", "JPEG", "JPEG, progressive")


def cut(data: bytes, dice: random.Random) -> bytes:
    return data[: dice.randrange(len(data))]


def flip(data: bytes, dice: random.Random) -> bytes:
    damaged, bit = bytearray(data), dice.randrange(8 * len(data))
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def hole(data: bytes, dice: random.Random) -> bytes:
    """Replace a twentieth of the file by zeros, as an interrupted download does."""
    length = len(data) // 20
    start = dice.randrange(len(data) - length)
    return data[:start] + bytes(length) + data[start + length :]


DAMAGES: dict[str, Callable[[bytes, random.Random], bytes]] = {"cut": cut, "hole": hole, "bit flipped": flip}


def picture(kind: str) -> bytes:
    """Return a part of a sample image as a file of this type."""
    source = cv2.imread(str(min((SAMPLES / "train" / "images").iterdir())))
    assert source is not None
    suffix, options = KINDS[kind]
    ok, data = cv2.imencode(suffix, source[:128, :192], options)
    assert ok
    return data.tobytes()


def verdict(data: bytes, pixels: NDArray[Any]) -> str:
    try:
        decoded = decode_image(data, ImageRules())
    except BadPair:
        return REFUSED
    return SAME if np.array_equal(decoded, pixels) else OTHER


def drill(kind: str, damage: str, count: int) -> Counter[str]:
    """Damage a picture `count` times, the same way in every run."""
    whole, dice = picture(kind), random.Random(f"{kind} {damage}")
    pixels = decode_image(whole, ImageRules())
    return Counter(verdict(DAMAGES[damage](whole, dice), pixels) for _ in range(count))


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--count", type=int, default=2000, help="cases for each common file type and damage")
    most = options.parse_args().count
    print(line(("file type", "damage", "files", REFUSED, SAME, OTHER), WIDTHS))
    for kind in KINDS:
        for damage in DAMAGES:
            count = most if kind in COMMON else max(1, most // FEWER)
            found = drill(kind, damage, count)
            print(line((kind, damage, count, found[REFUSED], found[SAME], found[OTHER]), WIDTHS))
