"""The files of cells: exact, equal for fresh and later counts, verified, copied, deleted, and never needed to open."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blake3 import blake3
from class_scenes import COUNT, NAMES, SIDES, VOLUME, label, make_pack
from conftest import SMALL_SHARDS, errors_of, good, json_of, make_raw, pack, write_png
from drills.published import same
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from packer import build_pack, verify_pack
from packer.errors import UsageError
from packer.packs.garbage import delete_garbage
from packer.packs.index import index_pack
from packer.packs.push import pull_pack, push_pack
from packer.packs.repair import repair_pack
from packer.packs.stage import stage_pack
from readers import open_dataset
from readers.class_index import ClassIndex
from readers.contract import count_cells as counting
from readers.contract import giant
from readers.contract.cells import HEAD_BYTES, CellFacts, ClassCells, check_digest
from readers.contract.count_cells import CELL, RowCells, count_cells, count_pixels, grid, merged
from readers.contract.errors import DamagedError
from readers.pack import Pack

pytestmark = pytest.mark.usefixtures("in_process")


def cells_in(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (out / "cells").glob("*")}


def counted(index: NDArray[Any], classes: int) -> dict[tuple[int, int], int]:
    """Count the pixels of each class in each cell: the places of one class divided by the sides of a cell."""
    counts: dict[tuple[int, int], int] = {}
    for number in range(classes):
        places = np.argwhere(index == number) // CELL[index.ndim]
        for cell, pixels in zip(*np.unique(places, axis=0, return_counts=True), strict=True):
            counts[number, int(np.ravel_multi_index(cell, grid(index.shape)))] = int(pixels)
    return counts


def as_counts(cells: RowCells) -> dict[tuple[int, int], int]:
    return {(int(c), int(n)): int(p) for c, n, p in zip(*cells, strict=True)}


@st.composite
def labels(draw: st.DrawFn) -> tuple[NDArray[Any], int]:
    sides = draw(st.one_of(st.tuples(st.integers(1, 140), st.integers(1, 140)), st.tuples(*[st.integers(1, 35)] * 3)))
    dtype, most = draw(st.sampled_from([(np.uint8, 255), (np.uint16, 400)]))
    classes = draw(st.integers(1, most))
    dice = np.random.default_rng(draw(st.integers(0, 99)))
    runs = dice.integers(0, classes + 1, sides).repeat(draw(st.integers(1, 9)), -1)[..., : sides[-1]]
    return np.where(runs == classes, 65535 if dtype is np.uint16 else 255, runs).astype(dtype), classes


@given(labels(), st.integers(0, 140), st.booleans(), st.sampled_from([8, 1 << 22]))
def test_cells_are_counted_exactly(drawn: tuple[NDArray[Any], int], cut: int, kernel: bool, at_once: int) -> None:
    index, classes = drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "AT_ONCE", at_once)
        if not kernel:
            patch.setattr(counting, "KERNEL", None)
        cells, expected = count_cells(index, classes), counted(index, classes)
        assert as_counts(cells) == expected
        assert list(as_counts(cells)) == sorted(expected)
        cut = min(cut, len(index))
        parts = [count_cells(index[:cut], classes), count_cells(index[cut:], classes, cut)]
        assert as_counts(merged(part for part in parts)) == expected
        assert count_pixels(index, classes).tolist() == np.bincount(index[index < classes], minlength=classes).tolist()


@pytest.mark.parametrize("storage", ["npy", "lmdb"])
@pytest.mark.parametrize(
    "options", [{}, {"labels": "onehot"}, {"encode": ["label=tiles-zstd:64", "image=tiles:64"]}, {"sides": VOLUME}]
)
def test_a_build_counts_what_is_stored(tmp_path: Path, storage: str, options: dict[str, Any]) -> None:
    out = make_pack(tmp_path / "out", storage, shard_size="200KB", **options)
    assert len(cells_in(out)) > 2
    index, dataset = ClassIndex.of(Pack.open(out)), open_dataset(out, "all", label="index")
    for row in range(COUNT):
        cells = index.of_row(row)
        assert cells is not None
        assert as_counts(cells.cells.row(cells.row)) == counted(dataset[row][1].numpy(), len(NAMES))
    before = cells_in(out)
    assert verify_pack(out, deep=True) == []
    assert index_pack(out) == 0
    shutil.rmtree(out / "cells")
    assert verify_pack(out, deep=True) == []
    assert index_pack(out, workers=2) == len(before)
    assert cells_in(out) == before
    assert index_pack(out, again=True) == len(before)


def test_rows_that_are_built_in_strips_have_the_same_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = tmp_path / "raw"
    for name, sides in (("a", (700, 300)), ("b", (90, 500))):
        write_png(raw / f"images/{name}.png", np.indices(sides).sum(0).astype(np.uint8))
        write_png(raw / f"labels/{name}.png", label(1, sides))
    options: dict[str, Any] = {"size": "native", "encode": ["image=tiles:48", "label=tiles:80"], "labels": "index"}
    options |= {"classes": NAMES, "ignore": ["255"], "max_pixels": 10**6}
    build_pack(raw, tmp_path / "whole", **options)
    monkeypatch.setattr(giant, "GIANT", 1000)
    build_pack(raw, tmp_path / "strips", **options)
    assert cells_in(tmp_path / "strips") == cells_in(tmp_path / "whole") != {}
    assert verify_pack(tmp_path / "strips", deep=True) == []


def test_an_incremental_build_counts_what_a_fresh_one_counts(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 9, "val": 4}).path
    out = pack(raw, tmp_path / "out", *SMALL_SHARDS)
    before = cells_in(out)
    for path in list((out / "cells").iterdir())[::2]:
        path.unlink()
    shutil.copy(raw / "train/masks/street_005.png", raw / "train/masks/street_003.png")
    pack(raw, out, *SMALL_SHARDS)
    fresh = pack(raw, tmp_path / "fresh", *SMALL_SHARDS)
    assert same(out, fresh)
    assert cells_in(fresh).items() <= cells_in(out).items()
    assert cells_in(fresh) != before
    delete_garbage(out, keep=1, grace=0)
    assert cells_in(out) == cells_in(fresh)


def test_cells_travel_with_their_shards(tmp_path: Path) -> None:
    out = make_pack(tmp_path / "out", shard_size="200KB")
    cells = cells_in(out)
    push_pack(out, tmp_path / "pushed")
    assert cells_in(tmp_path / "pushed") == cells
    pull_pack(tmp_path / "pushed", tmp_path / "pulled")
    assert cells_in(tmp_path / "pulled") == cells
    (tmp_path / "fast").mkdir()
    staged = stage_pack(out, tmp_path / "fast")
    assert cells_in(staged.path) == cells
    shutil.rmtree(tmp_path / "pushed" / "cells")
    assert push_pack(out, tmp_path / "pushed").shards == 0
    assert cells_in(tmp_path / "pushed") == cells
    victim = next((out / "cells").iterdir())
    victim.write_bytes(victim.read_bytes()[:-1] + b"x")
    with pytest.raises(DamagedError, match=r"its BLAKE3 is not the one in its head"):
        push_pack(out, tmp_path / "other")


def test_damage_is_found_and_repaired(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 5}).path
    out = pack(raw, tmp_path / "out", *SMALL_SHARDS)
    whole = cells_in(out)
    victim = out / "cells" / min(whole)
    for change in (b"", whole[victim.name][:100], whole[victim.name][:-1], whole[victim.name][:-1] + b"\x07"):
        victim.write_bytes(change)
        (damage,) = verify_pack(out)
        assert damage.file == victim
        assert damage.shard == victim.name.partition(".")[0]
        assert index_pack(out) == 1
        assert cells_in(out) == whole
    shutil.rmtree(raw)
    victim.write_bytes(b"")
    repaired = repair_pack(out)
    assert (repaired.summary, repaired.counted, len(repaired.damage)) == (None, 1, 1)
    assert cells_in(out) == whole
    assert verify_pack(out, deep=True) == []
    victim.write_bytes(b"")
    assert good("repair", out).stdout == f"{out}: whole; counted the classes of 1 shard again\n"
    assert good("repair", out).stdout == f"{out}: whole; nothing to repair\n"


def with_digest(head: bytes, arrays: bytes) -> bytes:
    return head + blake3(head + arrays).digest() + arrays


def test_a_file_that_is_whole_and_wrong_is_found(tmp_path: Path) -> None:
    out = pack(make_raw(tmp_path / "raw", {"train": 3}).path, tmp_path / "out")
    (victim,) = (out / "cells").iterdir()
    whole = victim.read_bytes()
    pack_read = Pack.open(out)
    rows = pack_read.table.rows(0)
    facts = CellFacts.of(pack_read.manifest.field("label"), rows)
    cells = ClassCells.of_bytes(np.frombuffer(whole, np.uint8), victim, facts)
    assert cells.to_bytes(facts) == whole
    every = [cells.row(row) for row in range(rows)]
    fewer = ClassCells.of_rows([*every[:-1], every[0]]).to_bytes(facts)
    victim.write_bytes(fewer)
    assert "its sums are not those in the receipt" in str(verify_pack(out)[0])
    swapped = ClassCells.of_rows(every[::-1]).to_bytes(facts)
    victim.write_bytes(swapped)
    assert verify_pack(out) == []
    assert "is not what its rows count" in str(verify_pack(out, deep=True)[0])
    assert index_pack(out, again=True) == 1
    assert victim.read_bytes() == whole


@given(st.data())
def test_no_change_of_a_byte_is_more_than_damage(data: st.DataObject) -> None:
    facts = CellFacts("label", 2, len(NAMES), 2)
    content = bytearray(ClassCells.of_rows([count_cells(label(row), len(NAMES)) for row in (1, 2)]).to_bytes(facts))
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(DamagedError, match="its BLAKE3"):
        check_digest(bytes(content), "x.cells")
    try:
        cells = ClassCells.of_bytes(np.frombuffer(bytes(content), np.uint8), "x.cells", facts)
        cells.check_cells("x.cells")
    except DamagedError:
        return
    for row in range(2):
        read = cells.row(row)
        assert (np.unique(read.classes) < len(NAMES)).all()
        assert len(read.classes) == len(read.cells) == len(read.pixels)


@given(st.binary(max_size=400))
def test_any_bytes_are_damage(content: bytes) -> None:
    for padded in (content, b"segcells\1\0\0\0" + content, content.ljust(HEAD_BYTES, b"\0")):
        with pytest.raises(DamagedError):
            ClassCells.of_bytes(np.frombuffer(padded, np.uint8), "x.cells", CellFacts("label", 2, 5, 2))


def test_the_command_counts(tmp_path: Path) -> None:
    out = make_pack(tmp_path / "out", shard_size="200KB")
    cells = cells_in(out)
    shutil.rmtree(out / "cells")
    assert json_of("index", "--json", "--quiet", out) == {"shards": len(cells)}
    assert good("index", "--quiet", out).stdout == f"{out}: 0 shards counted\n"
    assert cells_in(out) == cells
    assert "there is no such folder" in errors_of(1, "index", tmp_path / "nothing")
    with pytest.raises(UsageError, match="packer pull"):
        index_pack("s3://bucket/out")
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["generation"] == 1


def test_a_shard_without_rows_has_no_cells(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 2}).path
    (raw / "train/masks/street_000.png").write_bytes(b"")
    out = pack(raw, tmp_path / "out", "--on-bad", "skip", "--max-bad", "1", "--shard-size", "1KB")
    names = {path.name.partition(".")[0] for path in (out / "shards").glob("*.npy")}
    assert {name.partition(".")[0] for name in cells_in(out)} == names
    assert verify_pack(out) == []
    assert SIDES
