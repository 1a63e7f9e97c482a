"""`Placement`: how a row is brought to the stored size. It is computed once and used for each field of the row."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from readers.contract.tiles import Origin, Size

PicturePart = tuple[slice, slice]
"""The rows and columns of a part of a picture."""


class Placement(NamedTuple):
    """All fields of a row are scaled from `source` to `scaled`, both (height, width).

    The part `taken` of the scaled field becomes the part `region` of the row, whose size is `stored`. The rest of the
    row is filled.
    """

    source: Size
    scaled: Size
    stored: Size
    taken: PicturePart
    region: PicturePart

    @classmethod
    @lru_cache(maxsize=256)  # the rows of a pack have few sizes
    def of(cls, source: Size, scaled: Size, stored: Size, origin: Origin | None = None) -> Placement:
        """Centre the scaled field, or begin at `origin`, the top left corner of a tile."""
        starts = (None, None) if origin is None else origin
        (rows, top), (columns, left) = (_span(scaled[side], stored[side], starts[side]) for side in (0, 1))
        return cls(source, scaled, stored, (rows, columns), (top, left))

    @property
    def is_filled(self) -> bool:
        """True if a part of the row has no picture under it."""
        return any(part.stop - part.start != side for part, side in zip(self.region, self.stored, strict=True))


def scaled_size(source: Size, target: Size, fit: str) -> Size:
    """Return the size to scale a picture to before it is padded (letterbox) or cut (shorter-side)."""
    if fit == "stretch":
        return target
    (height, width), (tall, wide) = source, target
    by_height = tall, max(1, (2 * width * tall + height) // (2 * height))
    by_width = max(1, (2 * height * wide + width) // (2 * width)), wide
    height_binds = tall * width <= wide * height
    return by_height if height_binds == (fit == "letterbox") else by_width


def _span(source: int, target: int, start: int | None) -> tuple[slice, slice]:
    """Return the part of a side that is stored, and its position in the target.

    A tile begins at `start`, and what is beyond the picture is padded at the end. Otherwise both have the same centre,
    and an odd pixel is cut or padded at the end.
    """
    if start is not None:
        length = min(source - start, target)
        return slice(start, start + length), slice(0, length)
    length = min(source, target)
    start, offset = (source - length) // 2, (target - length) // 2
    return slice(start, start + length), slice(offset, offset + length)
