"""Damage picture files of every type by cuts, holes and flipped bits, and count what the decoder makes of them.

    tools/run drills.damaged_pictures [--count 2000] [--decoder pillow] [--only TIFF] 2>/dev/null

It is right to refuse a file, or to return the same pixels. Other pixels are an undetected error. The other decoders are
there for comparison. tifffile and rasterio have to be installed for it. Some decoders print to stderr.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from io import BytesIO
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image
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
    "TIFF, JPEG": (".tif", (cv2.IMWRITE_TIFF_COMPRESSION, 7, cv2.IMWRITE_TIFF_ROWSPERSTRIP, 64)),
    "TIFF, Group 4": (".tif", ()),
    "WebP, lossless": (".webp", (cv2.IMWRITE_WEBP_QUALITY, 101)),
    "WebP, lossy": (".webp", (cv2.IMWRITE_WEBP_QUALITY, 90)),
}
THRESHOLD = 100
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
    if kind == "TIFF, Group 4":
        return group_4(source[:128, :192, 1] > THRESHOLD)
    suffix, options = KINDS[kind]
    ok, data = cv2.imencode(suffix, source[:128, :192], options)
    assert ok
    return data.tobytes()


def group_4(mask: NDArray[np.bool_]) -> bytes:
    """Return a mask as a TIFF with CCITT Group 4, which OpenCV does not write."""
    file = BytesIO()
    Image.fromarray(mask).save(file, "TIFF", compression="group4")
    return file.getvalue()


def ours(data: bytes) -> NDArray[Any]:
    return decode_image(data, ImageRules())


def by_opencv(data: bytes) -> NDArray[Any]:
    pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    if pixels is None:
        raise ValueError("cannot be decoded")
    return pixels


def by_pillow(data: bytes) -> NDArray[Any]:
    return np.asarray(Image.open(BytesIO(data)))


def by_tifffile(data: bytes) -> NDArray[Any]:
    return np.asarray(import_module("tifffile").imread(BytesIO(data)))


def by_rasterio(data: bytes) -> NDArray[Any]:
    with import_module("rasterio").MemoryFile(data) as file, file.open() as picture:
        return np.asarray(picture.read())


DECODERS = {"ours": ours, "opencv": by_opencv, "pillow": by_pillow, "tifffile": by_tifffile, "rasterio": by_rasterio}


def drill(kind: str, damage: str, count: int, decoder: str = "ours") -> Counter[str]:
    """Damage a picture `count` times, the same way in every run."""
    whole, dice = picture(kind), random.Random(f"{kind} {damage}")
    decode, refusals = DECODERS[decoder], BadPair if decoder == "ours" else Exception
    pixels, verdicts = decode(whole), Counter[str]()
    for _ in range(count):
        try:
            decoded = decode(DAMAGES[damage](whole, dice))
        except refusals:
            verdicts[REFUSED] += 1
        else:
            verdicts[SAME if np.array_equal(decoded, pixels) else OTHER] += 1
    return verdicts


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--count", type=int, default=2000, help="cases for each common file type and damage")
    options.add_argument("--decoder", choices=DECODERS, default="ours")
    options.add_argument("--only", default="", metavar="TEXT", help="only file types whose names contain this")
    chosen = options.parse_args()
    print(line(("file type", "damage", "files", REFUSED, SAME, OTHER), WIDTHS))
    for kind in (kind for kind in KINDS if chosen.only in kind):
        for damage in DAMAGES:
            count = chosen.count if kind in COMMON else max(1, chosen.count // FEWER)
            found = drill(kind, damage, count, chosen.decoder)
            print(line((kind, damage, count, found[REFUSED], found[SAME], found[OTHER]), WIDTHS))
