"""A folder of files as a source. A row is a pair of files; its parts are their paths below the folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from packer.decoding.decode import check_same_size
from packer.decoding.file_types import read_header
from packer.decoding.header import Header
from packer.decoding.raw_file import naming
from packer.decoding.rules import MOST_PIXELS
from packer.errors import BadPair
from packer.pairs.pair import Pair
from packer.recipe.row_ref import RowRef
from packer.recipe.source import Heads
from readers.contract.regular_files import open_raw

THREADS = 16
"""Reading headers waits for the disk, not for the processor."""


@dataclass(frozen=True)
class FolderSource:
    """The files below a folder, and the pairs that were found among them."""

    raw: Path
    pairs: tuple[Pair, ...] = field(default=(), repr=False)
    templates: tuple[str, ...] = ("", "")
    max_pixels: int = MOST_PIXELS
    tools: tuple[str, ...] = ()

    def rows(self) -> Iterator[RowRef]:
        return refs_of(self.pairs)

    def heads(self, refs: Sequence[RowRef]) -> Iterator[Heads]:
        with ThreadPoolExecutor(THREADS) as pool:
            yield from pool.map(self._heads, refs)

    def _heads(self, ref: RowRef) -> Heads:
        try:
            image, label = map(self._header, ref.parts)
            check_same_size(ref.parts[0], image.size, ref.parts[1], label.size)
        except BadPair as bad:
            return str(bad)
        return image, label

    def _header(self, path: str) -> Header:
        with naming(path), open_raw(self.raw / path) as file:
            return read_header(file, self.max_pixels)


def refs_of(pairs: Iterable[Pair]) -> Iterator[RowRef]:
    """Yield the reference to each pair."""
    return (RowRef(split, key, (image, label)) for split, key, image, label in pairs)
