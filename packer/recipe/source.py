"""`Source`: the interface of everything that rows come from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeAlias

from packer.decoding.header import Header
from packer.recipe.row_ref import RowRef

Heads: TypeAlias = "tuple[Header, ...] | str"
"""The header of each field of a row, all of one upright size, or the reason why the row is bad."""


class Source(Protocol):
    """Gives rows. It lists references to all of them, and their sizes and types, without decoding any."""

    @property
    def templates(self) -> tuple[str, ...]:
        """The names of each field's files as a pattern, or an empty text. They are part of the recipe."""

    @property
    def tools(self) -> tuple[str, ...]:
        """The versions and rules, besides those of the decoders, that decide what a row is. Part of the recipe."""

    def rows(self) -> Iterable[RowRef]:
        """Yield a reference to each row, in any order."""

    def heads(self, refs: Sequence[RowRef]) -> Iterable[Heads]:
        """Yield the heads of each of these rows. Nothing is decoded for them."""
