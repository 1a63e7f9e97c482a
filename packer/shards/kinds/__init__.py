"""Decode each kind of field, bring it to its stored size, check it and count it: one module for each kind."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from packer.decoding.header import Picture
from packer.recipe.source import Given
from readers.contract.statistics import FieldStatistics
from readers.contract.tiles import Origin, Size


class Decoded(NamedTuple):
    """A field of a row, upright, in a form of its kind, and the height and width of the picture it is of."""

    pixels: Any
    size: Size


class StoredRow(NamedTuple):
    """The statistics of a row that was stored; of a picture, also the planes that its hash is made of."""

    statistics: FieldStatistics
    planes: NDArray[Any] | None = None


class FieldKind(Protocol):
    """A field of a recipe. It turns what a source gives into stored rows. Threads may share it."""

    def decode(self, data: Given) -> Decoded:
        """Return the upright pixels, or raise BadPair."""

    def store(self, decoded: Decoded, origin: Origin | None, out: NDArray[Any]) -> StoredRow:
        """Write the picture, or the tile of it that begins at `origin`, to `out` at the stored size."""


def one_file(data: Given) -> Picture:
    """Return the file or array of a field that has one, or the files of its bands."""
    assert not isinstance(data, tuple), "only overlapping classes have several, and volumes slices"
    return data
