"""A night holds few bytes of each stamp, and finds moved rows without an object for each row."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packer.plan.reuse import RowsByParts
from packer.recipe import long_text
from packer.recipe.ref_table import RefTable
from packer.recipe.row_ref import RowRef
from packer.shards.stamps import ShardStamps, load_stamps, record, write_stamps


def stamps_of(shard: int, rows: int) -> ShardStamps:
    keys = [f"{shard:03}/{row:04}" for row in range(rows)]
    lines = [f"{key}\0images/{key}.png\0masks/{key}.png" for key in keys]
    records = np.zeros(rows, record(6))
    records["state"] = np.arange(6 * rows).reshape(rows, 6) + shard
    return ShardStamps(f"train-{shard:032x}", "recipe", "judged", "folder", records, "\n".join(lines))


def test_stamps_are_stored_unchanged_and_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_text, "IN_MEMORY", 1 << 12)
    rows, shards = 300, 20
    for shard in range(shards):
        write_stamps(tmp_path, stamps_of(shard, rows))
    load_stamps(tmp_path)
    tracemalloc.start()
    try:
        stored = load_stamps(tmp_path)
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept < 12 * rows * shards, "they took 170 bytes a row"
    by_stem = {each.stem: each for each in stored}
    for shard in range(shards):
        written, found = stamps_of(shard, rows), by_stem[f"train-{shard:032x}"]
        loaded = found.load()
        assert (loaded.text, loaded.records.tobytes()) == (written.text, written.records.tobytes())
        assert (found.split, found.rows, found.width, found.first_key) == ("train", rows, 6, f"{shard:03}/0000")


@given(st.sets(st.text("aé ", max_size=4), max_size=30), st.lists(st.text("aé ", max_size=4)), st.booleans())
def test_rows_are_found_by_their_parts(known: set[str], wanted: list[str], collide: bool) -> None:
    table = RefTable.of(RowRef("all", f"k{number:03}", (text, "label")) for number, text in enumerate(sorted(known)))
    numbers = {"\0".join(ref.parts): number for number, ref in enumerate(table)}
    with pytest.MonkeyPatch.context() as patch:
        if collide:
            patch.setattr("packer.plan.reuse.hash", len, raising=False)
        found = RowsByParts(table).numbers([f"{text}\0label" for text in wanted])
    assert found.tolist() == [numbers.get(f"{text}\0label", -1) for text in wanted]
