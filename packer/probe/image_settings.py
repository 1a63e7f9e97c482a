"""Propose how images of 16 bits, of floats and of many bands are stored: a build would refuse them without options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from packer.config.config import Setting


def deepest_of(plain_depths: Iterable[int]) -> int:
    """Return the most bits per channel of any image; 0 if any image has floats or signed numbers."""
    depths = set(plain_depths)
    return 0 if 0 in depths else max(depths, default=8)


def image_doubts(has_bands: bool, deepest: int, kinds: Iterable[str], settings: dict[str, Setting]) -> Iterator[str]:
    """Set image-range for 16-bit and float images, or the bands, and report the guess."""
    if has_bands:
        settings["bands"] = "all"
    elif deepest == 0:
        settings["image-range"] = "0,1"
        yield "float images: image-range sets the numbers that become 0 and 1; 0,1 is a guess"
    elif deepest > 8:
        settings["image-range"] = "0,65535"
        yield "16-bit images: image-range sets the numbers that become 0 and 1; sensors often use less than 65535"
    if any("alpha" in kind for kind in kinds):
        yield 'images have an alpha channel: if pixels are transparent, alpha = "drop" keeps their stored colours'
