"""An image and its label."""

from __future__ import annotations

from typing import NamedTuple


class Pair(NamedTuple):
    """An image and its label, as paths below the raw folder. Pairs sort by split and key."""

    split: str
    key: str
    image: str
    label: str
    further: tuple[tuple[str, ...], ...] = ()
    """The files of each further field: none, one, or one for each class."""
    channels: tuple[str, ...] = ()
    """All files of the image, if each of its bands has one; `image` is the first of them."""
