"""Drill: damage pictures of every kind, by cuts, holes and single flipped bits, and count what the decoder makes of it.

    python tools/drills/bitflips.py [--count 2000] 2>/dev/null     (decoders talk to stderr)

Refused is right, and so are the same pixels. Other pixels are a lie that went unnoticed.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from packer.decoding.decode import decode_image
from packer.decoding.rules import ImageRules
from packer.errors import BadPair

RAW = Path(__file__).resolve().parents[2] / "data_samples" / "raw" / "train"
REFUSED, SAME, OTHER = "refused", "same pixels", "other pixels"
FEWER = 10
"""For the kinds that are rare."""

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
COMMON = ("PNG", "JPEG", "JPEG, progressive")


def cut(data: bytes, dice: random.Random) -> bytes:
    return data[: dice.randrange(len(data))]


def flip(data: bytes, dice: random.Random) -> bytes:
    damaged, place = bytearray(data), dice.randrange(8 * len(data))
    damaged[place // 8] ^= 1 << place % 8
    return bytes(damaged)


def hole(data: bytes, dice: random.Random) -> bytes:
    """A twentieth of the file is zeros, as after a download that was interrupted."""
    length = len(data) // 20
    start = dice.randrange(len(data) - length)
    return data[:start] + bytes(length) + data[start + length :]


DAMAGES: dict[str, Callable[[bytes, random.Random], bytes]] = {"cut": cut, "hole": hole, "bit flipped": flip}


def picture(kind: str) -> bytes:
    """A quarter of a sample's street, with its colours, as a file of this kind."""
    source = cv2.imread(str(min((RAW / "images").iterdir())))
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
    """Damage a picture `count` times, the same way every time this is run."""
    whole, dice = picture(kind), random.Random(f"{kind} {damage}")
    pixels = decode_image(whole, ImageRules())
    return Counter(verdict(DAMAGES[damage](whole, dice), pixels) for _ in range(count))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000, help="how often each common kind is damaged in each way")
    most = parser.parse_args().count
    print(f"{'kind':<20}{'damage':<14}{'files':>7}{REFUSED:>10}{SAME:>14}{OTHER:>14}")
    for kind in KINDS:
        for damage in DAMAGES:
            count = most if kind in COMMON else max(1, most // FEWER)
            found = drill(kind, damage, count)
            print(f"{kind:<20}{damage:<14}{count:>7}{found[REFUSED]:>10}{found[SAME]:>14}{found[OTHER]:>14}")


if __name__ == "__main__":
    main()
