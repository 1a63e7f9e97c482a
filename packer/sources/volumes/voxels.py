"""`Voxels`: the bytes of the numbers of a volume, wherever a format has them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path


class Voxels(ABC):
    """The numbers begin behind `offset` bytes, and are as many as the header demands."""

    offset: int
    is_packed: bool
    """True if a part of the numbers cannot be read alone."""

    @property
    @abstractmethod
    def files(self) -> tuple[Path, ...]:
        """The files that have the numbers."""

    @abstractmethod
    def check(self, size: int) -> None:
        """Refuse files that cannot have this number of bytes, before memory is taken for them."""

    @abstractmethod
    def pieces(self, size: int) -> Iterator[bytes]:
        """Yield what is before the numbers and the numbers, some at a time.

        Behind the last ones raise BadPair if the numbers are not `size` bytes, or a checksum is wrong.
        """

    @abstractmethod
    def part(self, start: int, size: int) -> bytes:
        """Return bytes of the numbers, if they are not packed."""
