"""`Turn`: the axes of a file as the sides of a row, in another order, or backwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from numpy.typing import NDArray

T = TypeVar("T")


class Turn(NamedTuple):
    """For each side of a row the axis of the file, and whether the row has it backwards.

    The first side is the one whose pixels are next to each other in the row: (column, row) or (column, row, slice).
    """

    order: tuple[int, ...]
    backwards: tuple[bool, ...]

    @classmethod
    def along(cls, axis: int) -> Turn:
        """Return the axes of a volume whose slices follow each other along an axis; the later other one goes down."""
        return cls((*(other for other in range(3) if other != axis), axis), (False, False, False))

    def then(self, turn: Turn) -> Turn:
        """Return the axes of a row that is turned once more."""
        backwards = (self.backwards[side] != back for side, back in zip(*turn, strict=True))
        return Turn(tuple(self.order[side] for side in turn.order), tuple(backwards))

    @property
    def inverse(self) -> Turn:
        """The sides of the row as the axes of the file."""
        order = tuple(self.order.index(axis) for axis in range(len(self.order)))
        return Turn(order, tuple(self.backwards[side] for side in order))

    def of(self, facts: Sequence[T]) -> tuple[T, ...]:
        """Return facts about the axes of the file in the order of the sides."""
        return tuple(facts[axis] for axis in self.order)

    def apply(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return a view of an array that has the last axis of the file first, as the row has its sides."""
        last = len(self.order) - 1
        turned = numbers.transpose([last - axis for axis in reversed(self.order)])
        return turned[tuple(slice(None, None, -1 if back else 1) for back in reversed(self.backwards))]


UNTURNED = Turn((0, 1, 2), (False, False, False))
"""The axes of a volume in the order of its file."""
