"""A night holds few bytes of each stamp, and finds moved rows without an object for each row."""

from __future__ import annotations

import errno
import io
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packer.errors import TargetError
from packer.plan.reuse import RowsByParts, RowStates
from packer.recipe.ref_table import RefTable
from packer.recipe.row_ref import RowRef
from packer.shards.stamps import ShardStamps, load_stamps, record, write_stamps
from packer.sources.files.folder import FolderSource
from packer.spill import long_text


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
    assert kept - io.DEFAULT_BUFFER_SIZE < 12 * rows * shards, "they took 170 bytes a row"
    by_stem = {each.stem: each for each in stored}
    for shard in range(shards):
        written, found = stamps_of(shard, rows), by_stem[f"train-{shard:032x}"]
        loaded = found.load()
        assert (loaded.text, loaded.records.tobytes()) == (written.text, written.records.tobytes())
        assert (found.split, found.rows, found.width, found.first_key) == ("train", rows, 6, f"{shard:03}/0000")


def test_a_long_table_is_not_held_and_a_full_disk_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_text, "IN_MEMORY", 1 << 12)
    tracemalloc.start()
    try:
        table = long_text.long_table(10_000, 6)
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept < 10_000, "it is as large as its numbers"
    assert not table.any()
    table[5_000:] = np.arange(6)
    assert (table.sum(), long_text.long_table(10, 6).shape) == (5_000 * 15, (10, 6))

    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, "")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(TargetError, match=r"No space left on device.*set TMPDIR to a folder with more than 480,000"):
        long_text.long_table(10_000, 6)


def test_the_states_of_all_rows_are_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_text, "IN_MEMORY", 1 << 12)
    rows = 3_000
    table = RefTable.of(RowRef("all", f"k{number:05}", ("a.png", "b.png")) for number in range(rows))
    for name, data in (("a.png", b"image"), ("b.png", b"label!")):
        (tmp_path / name).write_bytes(data)
        os.utime(tmp_path / name, (1_500_000_000, 1_500_000_000))  # the time of a new file is not believed
    tracemalloc.start()
    try:
        states = RowStates(FolderSource(tmp_path, templates=("", "")), table)
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept < 8 * rows, "they took 48 bytes a row"
    found = states.of(np.arange(10, rows, 7))
    assert len(found) == len(range(10, rows, 7))
    assert (found == found[0]).all()
    assert {5, 6} <= set(found[0].tolist())


@given(st.sets(st.text("aé ", max_size=4), max_size=30), st.lists(st.text("aé ", max_size=4)), st.booleans())
def test_rows_are_found_by_their_parts(known: set[str], wanted: list[str], collide: bool) -> None:
    table = RefTable.of(RowRef("all", f"k{number:03}", (text, "label")) for number, text in enumerate(sorted(known)))
    numbers = {"\0".join(ref.parts): number for number, ref in enumerate(table)}
    with pytest.MonkeyPatch.context() as patch:
        if collide:
            patch.setattr("packer.plan.reuse.hash", len, raising=False)
        found = RowsByParts(table).numbers([f"{text}\0label" for text in wanted])
    assert found.tolist() == [numbers.get(f"{text}\0label", -1) for text in wanted]
