"""`Objects`: the objects of a row, from the number of an object and the class of each pixel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.classes import ClassTable
from readers.contract.errors import RequestError

BACKGROUND = frozenset({"background", "_background_", "unlabeled", "unlabelled", "void"})
"""The names of a first class whose pixels belong to no object, as labelling tools call it."""
MOST_COUNTED = 1 << 16
"""Numbers below this are counted, larger ones are sorted."""


@dataclass(frozen=True)
class Objects:
    """The objects of a row in the order of their numbers. Their pixels are `place == i + 1`, never N masks."""

    place: NDArray[np.int32]
    """For each pixel the position of its object, counted from 1; 0 in no object."""
    numbers: NDArray[np.int64]
    classes: NDArray[np.int64]
    """The position of the class among the classes of objects: the class that most pixels of the object have."""
    areas: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.numbers)

    @classmethod
    def of(cls, ids: NDArray[Any], label: NDArray[Any], things: Sequence[int]) -> Objects:
        """Find the objects whose class is among `things`, the numbers of classes. Others are in no object."""
        numbers, place = _counted(ids)
        position = np.full(int(np.iinfo(label.dtype).max) + 1, len(things), np.int64)
        position[list(things)] = np.arange(len(things))
        pairs = place * np.int64(len(things) + 1) + position[label]
        counts = np.bincount(pairs.ravel(), minlength=len(numbers) * (len(things) + 1))
        counts = counts.reshape(len(numbers), len(things) + 1)
        classes = counts.argmax(1)
        kept = (numbers != 0) & (classes < len(things))
        order = np.where(kept, np.cumsum(kept), 0).astype(np.int32)
        return cls(order[place], numbers[kept], classes[kept], counts.sum(1)[kept])

    def boxes(self) -> NDArray[np.int64]:
        """Return left, top, right and bottom of each object, (N, 4); right and bottom are the first pixels outside."""
        edges = []
        rows, columns = np.nonzero(self.place)
        objects = self.place[rows, columns] - 1
        for along, length in zip((columns, rows), self.place.shape[::-1], strict=True):
            seen = np.zeros((len(self), length), bool)
            seen[objects, along] = True
            edges.append((seen.argmax(1), length - seen[:, ::-1].argmax(1)))
        (left, right), (top, bottom) = edges
        return np.stack([left, top, right, bottom], 1).astype(np.int64)

    def masks(self) -> NDArray[np.bool_]:
        """Return a mask of each object, (N, H, W): made when a trainer asks, and not stored."""
        return np.equal(self.place, np.arange(1, len(self) + 1, dtype=np.int32)[:, None, None])


def things_of(classes: ClassTable, names: Sequence[str] | None = None) -> tuple[int, ...]:
    """Return the numbers of the classes that objects have: these names, by default all but a background."""
    if names is None:
        start = int(len(classes) > 1 and classes.names[0].lower() in BACKGROUND)
        return tuple(range(start, len(classes)))
    for name in names:
        if name not in classes.names:
            raise RequestError(f"things={name!r}: no class of that name: {', '.join(classes.names)}")
    return tuple(map(classes.names.index, names))


def _counted(ids: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers in a row of ids, sorted, and for each pixel the position of its number."""
    if int(ids.max(initial=0)) >= MOST_COUNTED:
        numbers, place = np.unique(ids, return_inverse=True)
        return numbers.astype(np.int64), place.reshape(ids.shape).astype(np.int64)
    present = np.bincount(ids.ravel()) > 0
    return np.flatnonzero(present), (np.cumsum(present) - 1)[ids]
