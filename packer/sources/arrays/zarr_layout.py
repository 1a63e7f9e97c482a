"""`ArrayLayout`: how an array of Zarr (versions 2 and 3) or N5 is divided into files, and which files hold a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from operator import index
from pathlib import Path
from typing import Any

from readers.contract.json_entry import RepeatedKeyError, loads
from readers.contract.regular_files import open_raw

MOST_BYTES = 1 << 20
"""The most bytes of a description. Parsed, it may take fifty times as many."""
MOST_AXES = 32
"""The most axes that TensorStore reads."""
MOST_CHUNKS = 1 << 14
"""The most chunks of a row: the state of each is asked for, and each is opened or sought."""
MOST_CHUNK_BYTES = 1 << 31
"""The most bytes of a chunk, which is decompressed whole. Blosc and LZ4 allow no more."""


@dataclass(frozen=True)
class ArrayLayout:
    """The driver that reads an array, and the names of its chunks."""

    driver: str
    metadata: str
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    name: Callable[[Sequence[int]], str]
    inner: tuple[int, ...] = ()
    """The sides of the chunks in a chunk, if it is a shard."""

    def check(self) -> None:
        """Raise ValueError if a row has too many chunks."""
        inner = self.inner or self.chunks
        count = prod(-(-side // chunk) for side, chunk in zip(self.shape[1:], inner[1:], strict=True))
        if count > MOST_CHUNKS:
            raise ValueError(f"has {count} chunks of {inner} for each row; {MOST_CHUNKS} are read at most; rechunk it")

    def check_chunks(self, item_bytes: int) -> None:
        """Raise ValueError if chunks of such numbers are too large."""
        size = prod(self.inner or self.chunks) * item_bytes
        if size > MOST_CHUNK_BYTES:
            most = MOST_CHUNK_BYTES >> 30
            raise ValueError(f"has chunks of {size} bytes unpacked; {most} GiB are read at most; rechunk it")

    def names(self, row: int) -> Iterator[str]:
        """Yield the names of the chunks that hold a row."""
        others = [range(-(-side // chunk)) for side, chunk in zip(self.shape[1:], self.chunks[1:], strict=True)]
        return map(self.name, product([row // self.chunks[0]], *others))


def layout_of(folder: Path) -> ArrayLayout:
    """Return the layout of the array in a folder. Raise ValueError if it holds none."""
    for metadata, read in FILES.items():
        if (folder / metadata).is_file():
            with open_raw(folder / metadata) as file:
                text = file.read(MOST_BYTES + 1)
            if len(text) > MOST_BYTES:
                raise ValueError(f"has a description of more than {MOST_BYTES >> 20} MiB in {metadata}")
            try:
                layout = read(loads(text))
            except RepeatedKeyError as error:
                raise ValueError(f"has {metadata}, in which {error}") from None
            except (AttributeError, KeyError, TypeError, ValueError, RecursionError, OverflowError) as error:
                raise ValueError(f"has no array described in {metadata}") from error
            layout.check()
            return layout
    raise ValueError("there is no such array")


def _zarr2(facts: Any) -> ArrayLayout:
    separator = str(facts.get("dimension_separator", "."))
    return ArrayLayout("zarr", ".zarray", *_sides(facts["shape"], facts["chunks"]), lambda cell: _join(separator, cell))


def _zarr3(facts: Any) -> ArrayLayout:
    encoding = facts["chunk_key_encoding"]
    is_old = encoding["name"] == "v2"
    separator = str(encoding.get("configuration", {}).get("separator", "." if is_old else "/"))
    start = "" if is_old else f"c{separator}"
    shape, chunks = _sides(facts["shape"], facts["chunk_grid"]["configuration"]["chunk_shape"])
    inner = _inner(facts["codecs"], shape)
    return ArrayLayout("zarr3", "zarr.json", shape, chunks, lambda cell: start + _join(separator, cell), inner)


def _inner(codecs: Any, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the sides of the chunks in a shard, which may have shards in it again; nothing if there is no shard."""
    for codec in codecs:
        if codec["name"] == "sharding_indexed":
            facts = codec["configuration"]
            return _inner(facts["codecs"], shape) or _sides(shape, facts["chunk_shape"])[1]
    return ()


def _n5(facts: Any) -> ArrayLayout:
    """N5 has the axes in the other order than Python."""
    sides = _sides(facts["dimensions"][::-1], facts["blockSize"][::-1])
    return ArrayLayout("n5", "attributes.json", *sides, lambda cell: _join("/", cell[::-1]))


FILES = {".zarray": _zarr2, "zarr.json": _zarr3, "attributes.json": _n5}


def _sides(shape: Sequence[int], chunks: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    sides, parts = tuple(map(index, shape)), tuple(map(index, chunks))
    if not 0 < len(sides) == len(parts) <= MOST_AXES or min(parts) < 1 or min(sides) < 0:
        raise ValueError("expected a chunk with the axes of the array")
    return sides, parts


def _join(separator: str, cell: Sequence[int]) -> str:
    return separator.join(map(str, cell))
