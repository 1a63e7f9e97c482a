"""A pair: an image and its label, as found."""

from __future__ import annotations

from typing import NamedTuple


class Pair(NamedTuple):
    """An image and its label, as found; the paths are below the raw folder. Sorted by split and key."""

    split: str
    key: str
    image: str
    label: str
