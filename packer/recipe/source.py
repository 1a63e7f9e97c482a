"""`Source`: the interface of everything that rows come from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from packer.recipe.row_ref import RowRef


class Source(Protocol):
    """Gives rows. It lists references to all of them without decoding any."""

    @property
    def templates(self) -> tuple[str, ...]:
        """The names of each field's files as a pattern, or an empty text. They are part of the recipe."""

    @property
    def tools(self) -> tuple[str, ...]:
        """The versions and rules, besides those of the decoders, that decide what a row is. Part of the recipe."""

    def rows(self) -> Iterable[RowRef]:
        """Yield a reference to each row, in any order."""
