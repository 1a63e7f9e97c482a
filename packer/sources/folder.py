"""A folder of files as a source. A row is a pair of files; its parts are their paths below the folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from packer.pairs.pair import Pair
from packer.recipe.row_ref import RowRef


@dataclass(frozen=True)
class FolderSource:
    """The files below a folder, and the pairs that were found among them."""

    raw: Path
    pairs: tuple[Pair, ...] = field(default=(), repr=False)
    templates: tuple[str, ...] = ("", "")
    tools: tuple[str, ...] = ()

    def rows(self) -> Iterator[RowRef]:
        return refs_of(self.pairs)


def refs_of(pairs: Iterable[Pair]) -> Iterator[RowRef]:
    """Yield the reference to each pair."""
    return (RowRef(split, key, (image, label)) for split, key, image, label in pairs)
