"""`Annotation`: an object as a tool wrote it. `AnnotatedPicture`: all objects of a picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from packer.errors import BadPair
from readers.contract.plain_text import odd_character
from readers.contract.tiles import Size

MOST_OBJECTS = 65_535
"""The most objects of a picture: an id has 16 bits."""

MOST_SHOWN = 60
"""A message has this many characters of a category."""


class Mask(NamedTuple):
    """The pixels of an object: a window of the picture, and for each of its pixels whether it is inside."""

    top: int
    left: int
    inside: NDArray[np.bool_]


NOTHING = Mask(0, 0, np.zeros((0, 0), np.bool_))
"""The mask of a shape without a pixel."""


class Shape(Protocol):
    """A polygon, a run-length code, a bitmap: it paints itself as the tool of its format does."""

    def paint(self, size: Size) -> Mask:
        """Return the pixels of the shape in a picture of this size. The window may be empty, and never reaches out."""


def check_categories(names: Iterable[str]) -> None:
    """Raise BadPair if one of the categories of a file cannot be the name of a class."""
    for name in names:
        if not name.strip():
            raise BadPair(f"has the category {name!r}, which is not a name; rename it")
        if code := odd_character(name):
            raise BadPair(f"has the category {name[:MOST_SHOWN]!r}, with the character {code}; rename it")


@dataclass(frozen=True)
class Annotation:
    """An object: its category and its shapes, which are painted together."""

    category: str
    shapes: tuple[Shape, ...]
    instance: str | None = None
    """Annotations of one category and instance are one object. None: an object of its own."""
    is_crowd: bool = False
    """True if it stands for many objects without an outline of each."""


@dataclass(frozen=True)
class AnnotatedPicture:
    """The objects of a picture in the order of the file, and what the file says about the picture."""

    annotations: tuple[Annotation, ...]
    size: Size | None = None
    """The height and width that the file gives the picture. Coordinates are of a picture of this size."""
    name: str | None = None
    """The name that the file gives the picture."""
    lost: Mapping[str, int] = field(default_factory=dict)
    """The number of annotations that cannot be painted, by the reason, such as "with a box and no outline"."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """The numbers of other things that no label shows, such as 5 "pixels of no segment"."""
    longer_name: str | None = None
    """The name with the subset of a picture, which counts if several pictures of a file have the same name."""
