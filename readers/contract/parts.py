"""`Part`: the rows of a split that have the same fields. Rows that lack an optional field make a part of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from readers.contract.fields import Field
from readers.contract.json_entry import Entry

MOST_PARTS = 16
"""The most parts of a split."""


@dataclass(frozen=True)
class Part:
    """Rows of a split with the same fields. Their shards follow the shards of the part before it."""

    fields: tuple[str, ...]
    rows: int
    shards: int

    def to_json(self) -> dict[str, Any]:
        return {"fields": list(self.fields), "rows": self.rows, "shards": self.shards}

    @classmethod
    def from_json(cls, entry: Entry) -> Part:
        part = cls(entry.texts("fields"), entry.whole("rows"), entry.whole("shards", least=1))
        entry.close()
        return part


def presence(fields: Sequence[Field], names: Sequence[str]) -> int:
    """Return which fields these are as a binary number, the first field as its highest digit.

    The parts of a split are ordered from the highest number to the lowest.
    """
    number = 0
    for field in fields:
        number = 2 * number + (field.name in names)
    return number


def part_problems(fields: Sequence[Field], parts: Sequence[Part]) -> Iterator[tuple[str, str]]:
    """Yield the place and the message of everything that is wrong with the parts of a split."""
    if len(parts) > MOST_PARTS:
        yield "", f"expected at most {MOST_PARTS}, found {len(parts)}"
    for number, part in enumerate(parts):
        ordered = tuple(field.name for field in fields if field.name in part.fields)
        if part.fields != ordered:
            yield f".{number}.fields", f"expected fields of the pack in their order, found {list(part.fields)}"
        elif missing := [field.name for field in fields if not field.optional and field.name not in ordered]:
            yield f".{number}.fields", f"{missing[0]!r} is not optional"
    order = [presence(fields, part.fields) for part in parts]
    if order != sorted(set(order), reverse=True):
        yield "", "expected different parts, those with more of the first fields first"
