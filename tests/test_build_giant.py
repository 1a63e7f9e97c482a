"""Rows that are too large for memory are built strip by strip: the same files, and the same reasons of rejects."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import pack
from PIL import Image
from scenes.giant_tiff import make_giant, write_tiff

import readers
from packer import verify_pack
from packer.errors import LostFileError, TargetError
from packer.packs.extract import extract_rows
from packer.plan.make_plan import make_plan
from packer.plan.request import request_of
from packer.recipe.shard_spec import ShardSpec
from packer.recipe.source import Source
from packer.report.heat import heat_maps
from packer.shards import giant_rows
from packer.shards.build_shard import build_shard
from packer.shards.formats import lmdb
from packer.sources.files.folder import FolderSource
from packer.sources.pack import PackSource
from readers.contract import giant
from readers.contract.files import sha256
from readers.contract.leftovers import sweep
from readers.contract.manifest import STORAGES
from readers.formats.shard import Shard
from readers.pack import Pack
from readers.row_pictures import RowPictures, Style

SIZE = (150, 210)
TILES: Encodings = ("image", "tiles:32"), ("label", "tiles-zstd:48x32")
Encodings = tuple[tuple[str, str], ...]
JPEG: Encodings = ("image", "tiles-jpeg:64:90"), ("label", "tiles:16")
KEPT: Encodings = ("image", "tiles-jpeg:64:keep"), ("label", "tiles:16")


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    make_giant(tmp_path / "raw", SIZE)
    make_giant(tmp_path / "raw", (90, 100), "other")
    return tmp_path / "raw"


def specs_of(raw: Path, **options: Any) -> list[ShardSpec]:
    chosen: dict[str, Any] = {"size": "native", "classes": "5", "labels": "index", "encode": TILES, **options}
    return list(make_plan(request_of(raw, raw.parent / "plan", **chosen)).specs)


def built(raw: Path, specs: list[ShardSpec], out: Path, source: Source | None = None) -> dict[str, str]:
    """Build shards; return the digests of all files that are left."""
    (out / "shards").mkdir(parents=True)
    for spec in specs:
        build_shard(spec, source or FolderSource(raw), out)
    return {path.name: sha256(path) for path in (out / "shards").rglob("*")}


def lower(monkeypatch: pytest.MonkeyPatch, limit: int = 0) -> None:
    """Have rows of more bytes built strip by strip."""
    monkeypatch.setattr(giant, "GIANT", limit)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets the name of each field of a row that is built strip by strip."""
    found: list[str] = []
    build: Callable[..., Any] = giant_rows.build

    def build_and_count(*arguments: Any) -> Any:
        found.append(arguments[3])
        return build(*arguments)

    monkeypatch.setattr(giant_rows, "build", build_and_count)
    return found


@pytest.mark.parametrize("storage", STORAGES)
def test_a_shard_is_the_same_whether_its_rows_are_built_at_once_or_in_strips(
    storage: str, raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    specs = specs_of(raw, format=storage)
    whole = built(raw, specs, raw.parent / "whole")
    strips = counted(monkeypatch)
    for limit, count in ((0, 2 * 2), (4 * 90 * 100, 2)):  # each row, or the larger one alone
        lower(monkeypatch, limit)
        assert built(raw, specs, raw.parent / f"strips-{limit}") == whole
        assert len(strips) == count
        strips.clear()


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("size", [None, f"{SIZE[0]}x{SIZE[1]}"])
def test_rows_that_keep_the_one_size_of_all_are_built_in_strips_too(
    storage: str, size: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("giant", "other"):
        make_giant(tmp_path / "raw", SIZE, name)
    specs = specs_of(tmp_path / "raw", format=storage, size=size)
    whole = built(tmp_path / "raw", specs, tmp_path / "whole")
    strips = counted(monkeypatch)
    lower(monkeypatch)
    assert built(tmp_path / "raw", specs, tmp_path / "strips") == whole
    assert len(strips) == 2 * 2
    resized = specs_of(tmp_path / "raw", format=storage, size="75x105")
    assert built(tmp_path / "raw", resized, tmp_path / "resized") != whole
    assert len(strips) == 2 * 2, "pixels are scaled"


@pytest.mark.parametrize(
    "options",
    [
        {"encode": JPEG},
        {"labels": "onehot"},
        {"image_dtype": "float16"},
        {"bands": "all", "encode": (("image", "tiles-zstd:100"), ("label", "tiles:64"))},
    ],
    ids=["jpeg", "planes of classes", "floats", "bands"],
)
def test_every_form_is_the_same_in_strips(options: dict[str, Any], raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = specs_of(raw, **options)
    whole = built(raw, specs, raw.parent / "whole")
    lower(monkeypatch)
    assert built(raw, specs, raw.parent / "strips") == whole


def rejected(
    raw: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[], object] = bool, **options: Any
) -> dict[str, str]:
    """Return the reasons of the rejects of a build strip by strip, with a change after it was planned."""
    specs = specs_of(raw, **options)
    change()
    lower(monkeypatch)
    (raw.parent / "out/shards").mkdir(parents=True)
    receipts = [build_shard(spec, FolderSource(raw), raw.parent / "out") for spec in specs]
    return {reject.key: reject.reason for receipt in receipts for reject in receipt.rejects}


def change(path: Path, row: int, value: int) -> None:
    """Write a label again with a line of another class."""

    def lines(top: int, bottom: int) -> Any:
        numbers = np.zeros((bottom - top, 210, 1), np.uint8)
        numbers[max(0, row - top) : max(0, row + 1 - top)] = value
        return numbers

    write_tiff(path, SIZE, lines)


def test_a_stray_class_is_named_with_its_row(raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change(raw / "labels/giant.tif", 100, 7)
    (reason,) = rejected(raw, monkeypatch).values()
    assert reason.startswith("labels/giant.tif: has a value in no class (7: 210 pixels, first at row 4, column 0)")
    assert reason.endswith("(rows are counted from row 96 of the picture)")


def test_a_damaged_file_is_a_reject_and_not_filled(raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = raw / "images/giant.tif"
    data = bytearray(path.read_bytes())
    data[40000:40100] = bytes(100)
    reasons = rejected(raw, monkeypatch, lambda: path.write_bytes(data))
    assert reasons["giant"].startswith("images/giant.tif: is damaged")
    assert len(reasons) == 1


def test_fields_that_got_different_sizes_end_the_build(raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = specs_of(raw)
    Image.fromarray(np.zeros((150, 209), np.uint8)).save(raw / "labels/giant.tif")
    lower(monkeypatch)
    (raw.parent / "out/shards").mkdir(parents=True)
    different = r"images/giant\.tif is 150x210, its label labels/giant\.tif is 150x209 .* the plan has read it"
    with pytest.raises(LostFileError, match=different):
        [build_shard(spec, FolderSource(raw), raw.parent / "out") for spec in specs]


def test_a_palette_whose_reading_needs_the_whole_picture_is_refused(raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    label = Image.fromarray(np.zeros(SIZE, np.uint8), "P")
    label.putpalette([0, 0, 0, 255, 255, 255])
    label.save(raw / "labels/giant.tif")
    options: dict[str, Any] = {"classes": None, "label_codec": "binary", "threshold": 3}
    assert "too large to find out whether its colours are gray" in rejected(raw, monkeypatch, **options)["giant"]


def packed_as(raw: Path, encodings: Encodings) -> Path:
    options = [f"--encode={name}={form}" for name, form in encodings]
    return pack(raw, raw.parent / "first", "--size", "native", "--classes", "5", "--labels", "index", *options)


def specs_again(first: Path, encodings: Encodings) -> list[ShardSpec]:
    """Return the shards of a pack that is made of a pack."""
    request = request_of(PackSource.at(first), first.parent / "plan", size="native", encode=encodings)
    return list(make_plan(request).specs)


@pytest.mark.parametrize(
    ("encodings", "again"),
    [(TILES, TILES), (JPEG, KEPT), (JPEG, TILES), (TILES, JPEG)],
    ids=["tiles", "kept", "jpeg to tiles", "tiles to jpeg"],
)
def test_rows_of_a_pack_are_the_same_in_strips(
    encodings: Encodings, again: Encodings, raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = PackSource.at(first := packed_as(raw, encodings))
    specs = specs_again(first, again)
    whole = built(raw, specs, raw.parent / "whole", source)
    lower(monkeypatch)
    strips = counted(monkeypatch)
    assert built(raw, specs, raw.parent / "strips", source) == whole
    assert len(strips) == 4


def test_a_damaged_row_of_a_pack_is_a_reject(raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = packed_as(raw, (("image", "tiles:32"), ("label", "tiles:32")))
    specs = specs_again(first, TILES)
    (path,) = (first / "shards").glob("*.image.npy")
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    lower(monkeypatch)
    (raw.parent / "out/shards").mkdir(parents=True)
    (reject,) = build_shard(specs[0], PackSource.at(first), raw.parent / "out").rejects
    assert "its image does not have its checksum" in reject.reason


def test_a_full_disk_is_named_and_leaves_nothing(raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = specs_of(raw)
    lower(monkeypatch)

    def full(*_: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(giant_rows, "TileTable", full)
    out = raw.parent / "out"
    (out / "shards").mkdir(parents=True)
    with pytest.raises(TargetError, match=r"shards: cannot be written \(No space left on device\)"):
        build_shard(specs[0], FolderSource(raw), out)
    assert not list((out / "shards").iterdir())


def test_a_plan_needs_room_on_the_disk_for_the_giant_rows_of_all_workers(
    raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = request_of(raw, raw.parent / "plan", size="native", classes="5", labels="index", encode=TILES)
    before = make_plan(request).needed_bytes
    lower(monkeypatch, 4 * 90 * 100)
    assert make_plan(request).needed_bytes == before + 4 * SIZE[0] * SIZE[1]


def test_a_killed_build_leaves_what_the_next_one_removes(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from packer.shards.scratch import Scratch;"
        "scratch = Scratch(Path(sys.argv[1])); scratch.path('row').write_bytes(b'x'); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path], check=False)
    assert len(list(tmp_path.glob(".partial-*"))) == 1
    sweep(tmp_path)
    assert not list(tmp_path.glob(".partial-*"))


def test_room_on_the_disk_is_taken_before_a_large_value_is_mapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(giant, "GIANT", 0)
    assert lmdb._memory(tmp_path / "a", 5).tolist() == [0] * 5
    monkeypatch.setattr("os.posix_fallocate", full)
    with pytest.raises(OSError, match="No space left"):
        lmdb._memory(tmp_path / "a", 5)
    assert not list(tmp_path.iterdir())


def test_a_value_that_lmdb_cannot_hold_is_refused(raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lmdb, "MOST_VALUE", 1000)
    specs = specs_of(raw, format="lmdb")
    (raw.parent / "out/shards").mkdir(parents=True)
    with pytest.raises(TargetError, match="a value of LMDB at most 1,000; take another --format"):
        build_shard(specs[0], FolderSource(raw), raw.parent / "out")


# Looking at rows


@pytest.fixture
def packed(raw: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    out = packed_as(raw, TILES)
    monkeypatch.setattr(giant, "GIANT", 0)
    return out


def test_every_row_is_verified_in_strips(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Shard, "numbers")
    assert verify_pack(packed, deep=True) == []


def test_pictures_and_maps_of_large_rows_are_made_of_some_of_their_pixels(
    packed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Pack.open(packed)
    label = opened.manifest.fields[1]
    pictures = RowPictures(opened, Style())
    small, maps, classes = pictures.one(0, 30), heat_maps(opened, label, [0, 1]), pictures.classes(0)
    monkeypatch.setattr(giant, "GIANT", 1 << 30)
    whole, same, every = pictures.one(0, 30), heat_maps(opened, label, [0, 1]), pictures.classes(0)
    assert small.shape == whole.shape
    assert np.abs(small.astype(int) - whole).mean() < 12
    assert maps is not None
    assert same is not None
    assert np.array_equal(maps.shares, same.shares)
    assert classes == every


def test_a_large_row_is_extracted_as_a_tiff(packed: Path) -> None:
    extract_rows(packed, packed.parent / "files", ["giant"])
    with Image.open(next((packed.parent / "files").rglob("images/giant.tif"))) as picture:
        np.testing.assert_array_equal(
            np.asarray(picture).transpose(2, 0, 1), readers.open_dataset(packed)[0].image.numpy()
        )
