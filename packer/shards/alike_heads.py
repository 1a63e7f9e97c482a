"""`AlikeHeads`: rows that have the same headers. Most rows of a data set do, so few headers are sent and judged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, NamedTuple

from packer.decoding.grid import Grid
from packer.decoding.header import Header
from packer.recipe.row_ref import RowRef
from packer.recipe.source import Heads
from readers.contract.place import System

_NAMES = tuple(field.name for field in fields(Header))
_facts = attrgetter(*_NAMES)
"""All facts of a header: headers that are at two places are equal, too."""


class AlikeHeads(NamedTuple):
    """Rows that have the same fields with the same headers, or a row that is bad."""

    heads: Heads
    rows: list[int]
    """The positions of the rows among those that were asked for."""

    def to_json(self) -> list[Any]:
        return [self.heads if isinstance(self.heads, str) else list(map(_facts, self.heads)), self.rows]

    @classmethod
    def from_json(cls, heads: Any, rows: Iterable[Any]) -> AlikeHeads:
        every = heads if isinstance(heads, str) else tuple(header_of_facts(*facts) for facts in heads)
        return cls(every, list(map(int, rows)))


def alike_heads(refs: Sequence[RowRef], every: Iterable[Heads]) -> list[AlikeHeads]:
    """Put the rows with the same headers together."""
    alike: dict[Any, AlikeHeads] = {}
    for row, (ref, heads) in enumerate(zip(refs, every, strict=True)):
        key = row if isinstance(heads, str) else (*map(bool, ref.parts), *map(_facts, heads))
        if key in alike:
            alike[key].rows.append(row)
        else:
            alike[key] = AlikeHeads(heads, [row])
    return list(alike.values())


def header_of_facts(*facts: Any) -> Header:
    """Return a header whose facts were JSON."""
    header = Header(*facts)
    header = replace(header, band_names=tuple(header.band_names), no_data_of=tuple(header.no_data_of))
    if header.grid is None:
        return header
    sides, transforms, (kind, crs, keys, numbers, text), assumed = header.grid
    transforms_of = tuple((name, tuple(numbers_of_form)) for name, numbers_of_form in transforms)
    system = System(kind, crs, tuple(keys), tuple(numbers), text)
    return replace(header, grid=Grid(tuple(sides), transforms_of, system, tuple(assumed)))
