"""`ArrayLayout`: how an array of Zarr (versions 2 and 3) or N5 lies in its folder, and which files hold a row."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from readers.contract.regular_files import open_raw

MOST_BYTES = 16 << 20
"""The most that is read of a description."""


@dataclass(frozen=True)
class ArrayLayout:
    """The driver that reads an array, and the names of its chunks."""

    driver: str
    metadata: str
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    name: Callable[[Sequence[int]], str]

    def names(self, row: int) -> Iterator[str]:
        """Yield the names of the chunks that hold a row."""
        others = [range(-(-side // chunk)) for side, chunk in zip(self.shape[1:], self.chunks[1:], strict=True)]
        return map(self.name, product([row // self.chunks[0]], *others))


def layout_of(folder: Path) -> ArrayLayout:
    """Return the layout of the array in a folder. Raise ValueError if it holds none."""
    for metadata, read in FILES.items():
        if (folder / metadata).is_file():
            try:
                with open_raw(folder / metadata) as file:
                    return read(json.loads(file.read(MOST_BYTES)))
            except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
                raise ValueError(f"has no array described in {metadata}") from error
    raise ValueError("there is no such array")


def _zarr2(facts: Any) -> ArrayLayout:
    separator = str(facts.get("dimension_separator", "."))
    return ArrayLayout("zarr", ".zarray", *_sides(facts["shape"], facts["chunks"]), lambda cell: _join(separator, cell))


def _zarr3(facts: Any) -> ArrayLayout:
    encoding = facts["chunk_key_encoding"]
    is_old = encoding["name"] == "v2"
    separator = str(encoding.get("configuration", {}).get("separator", "." if is_old else "/"))
    start = "" if is_old else f"c{separator}"
    sides = _sides(facts["shape"], facts["chunk_grid"]["configuration"]["chunk_shape"])
    return ArrayLayout("zarr3", "zarr.json", *sides, lambda cell: start + _join(separator, cell))


def _n5(facts: Any) -> ArrayLayout:
    """N5 has the axes in the other order than Python."""
    sides = _sides(facts["dimensions"][::-1], facts["blockSize"][::-1])
    return ArrayLayout("n5", "attributes.json", *sides, lambda cell: _join("/", cell[::-1]))


FILES = {".zarray": _zarr2, "zarr.json": _zarr3, "attributes.json": _n5}


def _sides(shape: Sequence[int], chunks: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if len(shape) != len(chunks) or not shape or min(chunks) < 1:
        raise ValueError("expected a chunk with the axes of the array")
    return tuple(map(int, shape)), tuple(map(int, chunks))


def _join(separator: str, cell: Sequence[int]) -> str:
    return separator.join(map(str, cell))
