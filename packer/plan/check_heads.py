"""Check the headers of all rows that are not known from an earlier build."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from packer.decoding.decode import elsewhere_in
from packer.decoding.grid import check_place
from packer.decoding.header import Header
from packer.decoding.raw_file import naming
from packer.errors import BadPair
from packer.plan.fields.by_kind import check_headers
from packer.plan.fields.planned_field import PlannedField
from packer.plan.found_rows import FoundRows
from packer.plan.reuse import PreviousBuild
from packer.recipe.field_rule import judged
from packer.recipe.ref_table import CHUNK
from packer.recipe.row_ref import RowRef
from packer.recipe.source import Heads
from packer.shards.alike_heads import AlikeHeads, alike_heads
from packer.workers.pool import Pool
from packer.workers.run import read_heads
from readers.contract.tiles import Size

MANY = 1 << 12
"""Rows whose headers are read by workers: fewer are read before these have started."""


@dataclass(frozen=True)
class CheckedHeads:
    """The sizes of all rows, and why some are bad."""

    sizes: NDArray[np.uint32]
    """The sides of each row; all 0 if its headers are bad."""
    bad: Mapping[int, str]
    """The reasons of rows with bad headers, by their index."""

    @property
    def good(self) -> NDArray[np.bool_]:
        """For each row: are its headers good?"""
        return self.sizes[:, 0] > 0


def check_heads(
    found_rows: FoundRows, fields: Sequence[PlannedField], previous: PreviousBuild, side: float | None, pool: Pool
) -> CheckedHeads:
    """Return the size of each row, whose pixels get this side, or stay. Headers are read of rows that are not in an
    earlier build, or that changed."""
    sizes = previous.sizes(judged_by(found_rows, fields, side))
    bad = read_sizes(found_rows, fields, side, np.flatnonzero(sizes[:, 0] == 0), sizes, pool)
    return CheckedHeads(sizes, dict(sorted(bad.items())))


def read_sizes(
    found_rows: FoundRows,
    fields: Sequence[PlannedField],
    side: float | None,
    numbers: NDArray[np.intp],
    sizes: NDArray[np.uint32],
    pool: Pool,
) -> dict[int, str]:
    """Read the headers of the rows with these numbers. Put their sizes into `sizes`, which has a line for each row, and
    return why some are bad."""
    bad = dict[int, str]()
    for some, groups in _read(found_rows, numbers, pool):
        for group in groups:
            rows = some[group.rows]
            answer = _size_or_reason(found_rows, fields, int(rows[0]), group.heads, side)
            if not isinstance(answer, str):
                sizes[rows] = answer
                continue
            for row in rows.tolist():  # each reason names the files of its row
                bad[row] = str(_size_or_reason(found_rows, fields, row, group.heads, side))
    return bad


def _read(
    found_rows: FoundRows, numbers: NDArray[np.intp], pool: Pool
) -> Iterator[tuple[NDArray[np.intp], list[AlikeHeads]]]:
    """Yield some of these rows, and which of them have the same headers. Workers read the headers of many rows: the
    threads of one process take turns to run Python."""
    refs, source = found_rows.refs, found_rows.source
    if source.heads_apart and pool.workers > 1 and len(numbers) >= MANY:
        yield from read_heads(refs, numbers, source, pool)
        return
    for first in range(0, len(numbers), CHUNK):
        some = numbers[first : first + CHUNK]
        taken = refs.take(some)
        yield some, alike_heads(taken, source.heads(taken))


def _size_or_reason(
    found_rows: FoundRows, fields: Sequence[PlannedField], row: int, heads: Heads, side: float | None
) -> Size | str:
    """Return the size of a row with these headers, or why it is bad."""
    heads = at_one_place(heads, found_rows.files.place)
    if isinstance(heads, str):
        return heads
    ref = found_rows.refs[row]
    try:
        check_headers(fields, ref, heads)
        return heads[0].size if side is None else _scaled(ref, heads[0], side, found_rows)
    except BadPair as reason:
        return str(reason)


def at_one_place(heads: Heads, place: str) -> Heads:
    """Return the headers of a row, or why it is bad, also because its fields are at different places."""
    try:
        check_place("" if isinstance(heads, str) else elsewhere_in(heads), place)
    except BadPair as bad:
        return str(bad)
    return heads


def _scaled(ref: RowRef, header: Header, side: float, found_rows: FoundRows) -> Size:
    from packer.pixels.resolution import Resolution  # most pictures keep their pixels

    with naming(ref.parts[0]):
        return Resolution(side, found_rows.files.max_pixels).size_of(header)


def judged_by(found_rows: FoundRows, fields: Sequence[PlannedField], side: float | None) -> str:
    """Return the fingerprint of what decides whether headers are good; none if the label has no classes."""
    if not all(field.can_judge for field in fields):
        return ""
    rules = (field.rule(None, "") for field in fields)
    return judged(rules, found_rows.files.place, found_rows.source.sides, side)
