"""A table of rows, and one of pieces, is the list of its rows and pieces, in a fraction of the memory."""

from __future__ import annotations

import errno
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn
from unittest.mock import Mock

import numpy as np
import pytest
from conftest import write_table
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from packer.decoding.header import Header
from packer.errors import TargetError
from packer.pixels.resize import Geometry
from packer.plan.make_plan import make_plan
from packer.plan.request import request_of
from packer.recipe import ref_table
from packer.recipe.piece import Piece, PieceTable, keys_of, text_of
from packer.recipe.ref_table import RefTable
from packer.recipe.row_ref import RowRef
from packer.recipe.source import UNKNOWN, Heads, Loaded, Source
from packer.shards.inspect import LabelCounts
from packer.spill import long_text
from packer.workers.in_process import InProcess

NAMES = st.text("ab/é€\U0001f600 \ud800", max_size=5)
REFS = st.lists(
    st.builds(RowRef, st.sampled_from(["train", "val", "test"]), NAMES, st.tuples(NAMES, NAMES)),
    unique_by=lambda ref: ref[:2],
    max_size=40,
)


@pytest.fixture(params=[(1, 0), (3, 30), (1 << 14, 1 << 20)])
def chunk(request: pytest.FixtureRequest) -> Iterator[int]:
    """Rows that are objects at the same time. The text is in a file, at first in memory, or always in memory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ref_table, "CHUNK", request.param[0])
        patch.setattr(long_text, "IN_MEMORY", request.param[1])
        yield request.param[0]


@given(refs=REFS, data=st.data())
@pytest.mark.usefixtures("chunk")
def test_a_table_is_the_sorted_list(refs: list[RowRef], data: st.DataObject) -> None:
    table, rows = RefTable.of(iter(refs)), sorted(refs)
    start, stop = sorted(data.draw(st.tuples(*2 * [st.integers(0, len(refs))])))
    assert list(table) == rows
    assert [table[index] for index in range(len(table))] == rows
    assert [table[index - len(rows)] for index in range(len(table))] == rows
    assert list(table.between(start, stop)) == table[start:stop] == rows[start:stop]
    lines = ["\0".join((ref.key, *ref.parts)) + "\n" for ref in rows[start:stop]]
    assert table.lines(start, stop) == "".join(lines).encode("utf-8", "surrogatepass")
    assert list(table.keys(start, stop)) == [ref.key for ref in rows[start:stop]]
    assert table.text(start, stop) == text_of(list(map(Piece, rows[start:stop])))
    assert table.take(np.arange(0, len(rows), 2)) == rows[::2]
    assert sum(table.splits.values()) == len(rows)
    assert list(table.splits) == sorted({ref.split for ref in refs})
    with pytest.raises(IndexError):
        table[len(rows)]


def test_a_long_table_is_not_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_text, "IN_MEMORY", 1 << 16)
    monkeypatch.setattr(ref_table, "CHUNK", 1 << 10)
    rows = 30_000
    tracemalloc.start()
    try:
        table = RefTable.of(RowRef("all", f"{7_919 * n % rows:060}", ("images/a.png", str(n))) for n in range(rows))
        kept, highest = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (len(table), table[5].key) == (rows, f"{5:060}")
    assert kept < 20 * rows, "the ends of the lines take 8 bytes each; the lines were in memory, too: 90 bytes each"
    assert highest < 80 * rows


def test_a_full_disk_for_the_list_of_rows_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(long_text, "IN_MEMORY", 10)
    monkeypatch.setattr("tempfile.TemporaryFile", lambda: Mock(write=full))
    with pytest.raises(TargetError, match=r"cannot be written \(No space left on device\); set TMPDIR to"):
        RefTable.of([RowRef("all", "a" * 20, ("b", "c"))])


def listed(refs: Sequence[RowRef], sizes: Sequence[tuple[int, int]], geometry: Geometry) -> list[Piece]:
    """The definition of the pieces of rows."""
    if not geometry.depends_on_source:
        return [Piece(ref, is_bad=not size[0]) for ref, size in zip(refs, sizes, strict=True)]
    return [
        Piece(ref, size if size[0] else None, origin, not size[0])
        for ref, size in zip(refs, sizes, strict=True)
        for origin in (geometry.origins(size) if size[0] else [None])
    ]


@given(refs=REFS, data=st.data())
@pytest.mark.parametrize("geometry", [Geometry((2, 3)), Geometry(None, "native"), Geometry((2, 3), "tile")])
def test_a_table_of_pieces_is_their_list(geometry: Geometry, refs: list[RowRef], data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 7)), min_size=len(refs), max_size=len(refs)))
    sizes = [size if size[0] else (0, 0) for size in sizes]
    rows = range(*sorted(data.draw(st.tuples(*2 * [st.integers(0, len(refs))]))))
    table = PieceTable(RefTable.of(refs), np.array(sizes, np.uint32).reshape(-1, 2), geometry, rows)
    expected = listed(sorted(refs)[rows.start : rows.stop], sizes[rows.start : rows.stop], geometry)
    assert list(table) == expected
    assert [table[index] for index in range(len(table))] == expected
    start, stop = sorted(data.draw(st.tuples(*2 * [st.integers(0, len(expected))])))
    part, wanted = table[start:stop], expected[start:stop]
    assert (len(part), list(part), list(keys_of(part)), text_of(part)) == (
        len(wanted),
        wanted,
        [piece.key for piece in wanted],
        text_of(wanted),
    )
    assert list(part[1:]) == wanted[1:]
    if geometry.fit != "tile":
        assert part.sizes.tolist() == [list(size) for size in sizes[rows.start :][start:stop]]


@dataclass(frozen=True)
class Numbered(Source):
    """So many rows with keys of 40 characters, in an order that is not theirs."""

    count: int
    kind: str = "numbered"
    templates: tuple[str, ...] = ("", "")
    tools: tuple[str, ...] = ()

    def rows(self) -> Iterator[RowRef]:
        for number in range(self.count):
            row = number * 7919 % self.count
            yield RowRef("train", f"{row:040}", (str(row), str(row)))

    def heads(self, refs: Sequence[RowRef]) -> Iterator[Heads]:
        header = Header("array", 8, 8, 8, 1)
        return ((header, header) for _ in refs)

    def states(self, refs: Sequence[RowRef]) -> NDArray[np.int64]:
        return np.full((len(refs), 2), UNKNOWN)

    def load(self, ref: RowRef) -> Loaded:
        return Loaded((), ("", ""), "is not there")

    def to_text(self) -> str:
        return "{}"


PLAIN, TILES, NATIVE = {"size": None}, {"size": (4, 4), "fit": "tile"}, {"size": "native"}


@pytest.mark.parametrize(
    ("geometry", "rows"),
    [
        pytest.param(TILES, 2 * 10**4, marks=pytest.mark.short),
        pytest.param(TILES, 5 * 10**4, marks=pytest.mark.long),
        *(pytest.param(geometry, 10**5, marks=pytest.mark.long) for geometry in (PLAIN, NATIVE)),
    ],
)
def test_a_plan_of_many_rows_needs_little_memory(
    tmp_path: Path, rows: int, geometry: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """125 bytes a row, besides 16 MiB for any plan. Four tiles of each picture are four pieces, and take as little."""
    monkeypatch.setattr("packer.plan.sample.inspect_pairs", lambda requests, *others: [LabelCounts()] * len(requests))
    write_table(tmp_path / "class_dict.csv")
    request = request_of(Numbered(rows), tmp_path / "out", classes=tmp_path / "class_dict.csv", **geometry)
    tracemalloc.start()
    try:
        plan = make_plan(request, pool=InProcess(1, 60))
        assert tracemalloc.get_traced_memory()[1] < (16 << 20) + 125 * rows + (1 << 18)
    finally:
        tracemalloc.stop()
    assert plan.pieces == rows * (4 if request.shape.fit == "tile" else 1)
    assert plan.specs[0].pieces[0].ref.key == f"{0:040}"
