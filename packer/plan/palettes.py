"""Compare the palettes of many labels: do index and colour mean the same in all of them?"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from packer.shards.inspect import LabelCounts, colour_parts


class Palettes:
    """Collects the indices that labels use and their colours, and where two labels contradict each other."""

    def __init__(self, labels: Iterable[tuple[str, LabelCounts]] = ()) -> None:
        self.indices: dict[int, set[int]] = {}
        """The indices of each colour."""
        self.moving: dict[int, str] = {}
        """Colours whose index differs from file to file: the colour is then probably the class. Values are messages."""
        self.recoloured: dict[int, str] = {}
        """Indices whose colour differs from file to file: index or colour is not the class. Values are messages."""
        self.numbered_per_file = True
        """True if every file uses the indices 0 to n without a gap, as if its own colours had been numbered."""
        self._colours: dict[int, tuple[int, str]] = {}
        self._indices: dict[int, tuple[int, str]] = {}
        for path, label in labels:
            self.add(path, label)

    def add(self, path: str, label: LabelCounts) -> None:
        """Compare the palette of one more file with those before it."""
        used = [index for index in sorted(label.values) if index in label.palette]
        self.numbered_per_file &= used == list(range(len(used)))
        for index in used:
            code = label.palette[index]
            self.indices.setdefault(code, set()).add(index)
            before, where = self._colours.get(index, (code, path))
            if before != code:
                self._differs(index, code, before, where, path)
        for index, code in label.palette.items():
            self._colours.setdefault(index, (code, path))
        for index in used:
            self._indices.setdefault(label.palette[index], (index, path))

    @property
    def doubts(self) -> list[str]:
        """Return the messages that speak against the index as the class."""
        doubts = list(self.moving.values())
        if self.numbered_per_file:
            doubts += self.recoloured.values()
        return doubts

    def _differs(self, index: int, code: int, before: int, where: str, path: str) -> None:
        message = f"index {index} is {colour_name(before)} in {where}, and {colour_name(code)} in {path}"
        self.recoloured.setdefault(index, message)
        other, other_path = self._indices.get(code, (index, path))
        if other != index:
            message = f"{colour_name(code)} is index {other} in {other_path}, and index {index} in {path}"
            self.moving.setdefault(code, message)


def colour_name(code: int) -> str:
    """Return `#rrggbb`, or `#rrggbbaa` if the colour is not opaque."""
    parts = colour_parts(np.array([code], np.uint32))[0].tolist()
    return "#" + bytes(parts if parts[3] < 255 else parts[:3]).hex()
