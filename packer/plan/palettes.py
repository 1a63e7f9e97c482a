"""Palettes of many labels: whether index and colour mean the same thing in all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from packer.workers.inspect import Glance, colour_parts


class Palettes:
    """What the palettes seen so far agree on, and where they do not; of each, the indices that are used count."""

    def __init__(self, seen: Iterable[tuple[str, Glance]] = ()) -> None:
        self.indices: dict[int, set[int]] = {}
        """The indices that each colour is used as."""
        self.moving: dict[int, str] = {}
        """Colours that are one index in one file and another in another: then the colour is the class."""
        self.recoloured: dict[int, str] = {}
        """Indices that are one colour in one file and another in another: one of both is not the class."""
        self.numbered_anew = True
        """Whether every file uses the indices from 0 on, without a gap, as if its colours had been numbered for it."""
        self._colours: dict[int, tuple[int, str]] = {}
        self._places: dict[int, tuple[int, str]] = {}
        for path, glance in seen:
            self.add(path, glance)

    def add(self, path: str, glance: Glance) -> None:
        """Compare a file's palette with those before."""
        used = [index for index in sorted(glance.values) if index in glance.palette]
        self.numbered_anew &= used == list(range(len(used)))
        for index in used:
            code = glance.palette[index]
            self.indices.setdefault(code, set()).add(index)
            before, where = self._colours.get(index, (code, path))
            if before != code:
                self._differs(index, code, before, where, path)
        for index, code in glance.palette.items():
            self._colours.setdefault(index, (code, path))
        for index in used:
            self._places.setdefault(glance.palette[index], (index, path))

    @property
    def doubts(self) -> list[str]:
        """What speaks against the index as the class: its colour changes, and nothing else shows that it is meant."""
        return [*self.moving.values(), *(self.recoloured.values() if self.numbered_anew else ())]

    def _differs(self, index: int, code: int, before: int, where: str, path: str) -> None:
        told = f"index {index} is {colour_name(before)} in {where}, and {colour_name(code)} in {path}"
        self.recoloured.setdefault(index, told)
        other, place = self._places.get(code, (index, path))
        if other != index:
            told = f"{colour_name(code)} is index {other} in {place}, and index {index} in {path}"
            self.moving.setdefault(code, told)


def colour_name(code: int) -> str:
    """`#rrggbb`, with the alpha behind it where it is not opaque."""
    parts = colour_parts(np.array([code], np.uint32))[0].tolist()
    return "#" + bytes(parts if parts[3] < 255 else parts[:3]).hex()


def listed_colours(counts: Mapping[int, object], most: int) -> str:
    """The first few by name."""
    return ", ".join(colour_name(code) for code in list(counts)[:most])
