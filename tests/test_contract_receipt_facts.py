"""A build keeps of its receipts what it needs, and no object for each row."""

from __future__ import annotations

import gc
import hashlib
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import make_raw, pack
from hypothesis import given
from hypothesis import strategies as st

from packer.data_checks.find_mistakes import find_mistakes
from packer.data_checks.image_hashes import HashedImage, ImageHashes
from packer.publish.generation import Current, commit
from packer.recipe.recipe import Recipe
from readers.contract.manifest import Manifest
from readers.contract.receipt import FLAT, Note, Receipt, RowInput
from readers.contract.receipt_facts import HASH, MOST_NOTES, MOST_TOTALS, AllReceipts, count_text
from readers.contract.tiles import picture_of

BYTES_OF_A_ROW = 40
"""The limit for what is kept of a row. It was 1,100 bytes."""


def receipt_of(number: int, rows: int, split: str = "train", notes: Sequence[Note] = ()) -> Receipt:
    """Return a made-up receipt of many rows."""
    keys = [f"night/{number:06d}/{row:06d}" for row in range(rows)]
    return Receipt(
        split=split,
        fingerprint=f"{number:032x}",
        storage="npy",
        recipe="0" * 64,
        fields=("image", "label"),
        sources=tuple(RowInput(key, f"{row:064x}", f"{row:064x}") for row, key in enumerate(keys)),
        rejects=(),
        notes=tuple(notes),
        files=(),
        crc32={"image": tuple(range(rows)), "label": tuple(range(rows))},
        looks=tuple(f"{number * rows + row:08x}{row:016x}" for row in range(rows)),
        statistics={},
    )


def test_few_bytes_are_kept_of_a_row() -> None:
    rows, shards = 500, 20
    tracemalloc.start()
    try:
        receipts = AllReceipts()
        for number in range(shards):
            receipts.add(number, receipt_of(number, rows))
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert (receipts.rows, receipts.pieces, len(receipts)) == (rows * shards, rows * shards, shards)
    assert kept < rows * shards * BYTES_OF_A_ROW


def rows_alive() -> int:
    gc.collect()
    return sum(type(each) is RowInput for each in gc.get_objects())


def test_a_build_holds_the_rows_of_one_receipt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alive: list[int] = []

    def spy(out: Path, recipe: Recipe, receipts: AllReceipts, before: Current | None = None) -> Manifest:
        alive.append(rows_alive())
        return commit(out, recipe, receipts, before)

    raw = make_raw(tmp_path / "raw", {"train": 60}, height=8, width=8).path
    before = rows_alive()
    monkeypatch.setattr("packer.building.finish.commit", spy)
    pack(raw, tmp_path / "out", "--shard-size", "2KB")
    manifest = Manifest.load(tmp_path / "out")
    assert manifest.shards > 6
    pack(raw, tmp_path / "out", "--shard-size", "2KB")  # now all shards are reused
    assert len(alive) == 2
    assert max(alive) - before <= manifest.rows // 2


def test_facts_are_those_of_the_receipts_in_any_order() -> None:
    receipts = [receipt_of(number, 1 + number, split) for number, split in enumerate(("val", "train", "val"))]
    facts = AllReceipts({receipts[1].fingerprint: "not that of the file"})
    for number in (2, 0, 1):
        facts.add(number, receipts[number])
    texts = [receipt.to_text() for receipt in receipts]
    assert [each.digest for each in facts.values()] == [hashlib.sha256(text.encode()).hexdigest() for text in texts]
    assert [each.stem for each in facts.values()] == [receipt.stem for receipt in receipts]
    assert {split: [each.rows for each in members] for split, members in facts.splits.items()} == {
        "val": [1, 3],
        "train": [2],
    }
    other = facts.copy()
    other.add(3, receipt_of(3, 4))
    assert (len(facts), len(other), facts.rows, other.rows) == (3, 4, 6, 10)


def test_counts_are_summed_and_the_smallest_are_counted_together() -> None:
    facts, many = AllReceipts(), {f"objects of {number:03}": number for number in range(1, MOST_TOTALS + 3)}
    for number, counts in enumerate(({"objects painted": 1, "pixels": 5}, {"objects painted": 1, **many})):
        facts.add(number, replace(receipt_of(number, 1), counts=counts))
    assert (len(facts.notes.totals), facts.notes.totals["objects for other reasons"]) == (
        MOST_TOTALS + 1,
        1 + 2 + 3 + 4,
    )
    assert facts.notes.objects == (2, 2 + sum(many.values()))
    assert (count_text(1, "objects of boss"), count_text(2000, "pixels")) == ("1 object of boss", "2,000 pixels")


def slow_notes(receipts: Sequence[Receipt]) -> list[tuple[str, str, str]]:
    notes = ((receipt.split, picture_of(note.key), note.text) for receipt in receipts for note in receipt.notes)
    return [note for note, _ in groupby(notes)]


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)))), max_size=9)
)
def test_notes_of_tiles_count_once_also_across_shards(shards: list[tuple[str, list[tuple[int, int]]]]) -> None:
    def noted(rows: list[tuple[int, int]]) -> Iterator[Note]:
        for index, (key, text) in enumerate(rows):
            yield Note(f"{key}@{index:06d}+000000of100x100", f"text {text}")

    receipts = [receipt_of(number, 0, split, list(noted(rows))) for number, (split, rows) in enumerate(shards)]
    facts = AllReceipts(name=picture_of)
    for number, receipt in reversed(list(enumerate(receipts))):
        facts.add(number, receipt)
    expected = slow_notes(receipts)
    assert (facts.notes.rows, list(facts.notes.first)) == (len(expected), expected[:MOST_NOTES])


def slow_groups(images: Sequence[HashedImage]) -> list[tuple[str, ...]]:
    """Return the names of the images with equal hashes, in the order of these."""
    textured = sorted((image for image in images if not image.hash.endswith(FLAT)), key=lambda image: image.hash)
    groups = [[image.name for image in group] for _, group in groupby(textured, lambda image: image.hash)]
    return [tuple(group) for group in groups if len(group) > 1]


HASHES = st.tuples(st.sampled_from((0, 1, 2**31, 2**32 - 1)), st.sampled_from((None, 0, 1, 2**63, 2**64 - 1)))


@given(st.lists(st.lists(HASHES, max_size=6), max_size=6))
def test_images_that_are_the_same_are_found_and_only_their_keys_are_read(shards: list[list[tuple[int, Any]]]) -> None:
    def look(crc32: int, bits: int | None) -> str:
        return f"{crc32:08x}{FLAT if bits is None else f'{bits:016x}'}"

    images = [
        [HashedImage("ab"[number % 2], f"{number}/{row}", look(*each)) for row, each in enumerate(rows)]
        for number, rows in enumerate(shards)
    ]
    every = [image for shard in images for image in shard]
    starts = np.cumsum([0, *map(len, images)])[:-1]
    asked: list[int] = []

    def keys(shard: int) -> list[str]:
        asked.append(shard)
        return [image.key for image in images[shard]]

    alone = ImageHashes.of(every)
    hashes = ImageHashes(alone.parts, alone.flat, starts, ["ab"[number % 2] for number in range(len(shards))], keys)
    assert all(part.dtype == HASH for part in hashes.parts)
    found = find_mistakes(hashes, [])
    assert found == find_mistakes(alone, [])
    groups = [each.pairs for each in found.items if each.kind in ("leakage", "duplicates")]
    assert groups == slow_groups(every)
    flat = [image.name for image in every if image.hash.endswith(FLAT)]
    assert [each.name for each in found.of("one-colour")] == flat
    named = {name for each in found.items for name in each.pairs}
    assert asked == [number for number, shard in enumerate(images) if named & {image.name for image in shard}]
