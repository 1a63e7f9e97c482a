"""Volumes that are too large for memory are built slab by slab: the same packs, and the same reasons of rejects."""

from __future__ import annotations

import gzip
import os
import weakref
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drills.published import same
from drills.volumes import nifti
from starlette.testclient import TestClient
from test_build_giant import counted, lower
from test_readers_volumes import FIELDS, SIDES, build, call, image, label, make_nifti, make_tiff, write, write_pages

from packer import verify_pack
from packer.decoding.turn import Turn
from packer.errors import BadPair
from packer.report.field_draw import draw_field
from packer.report.heat import heat_maps
from packer.shards import build_shard, giant_rows
from packer.sources.volumes import volume, voxel_file
from packer.sources.volumes.scan import Scan
from packer.sources.volumes.tiff_volume import PageLines
from packer.sources.volumes.volume import Volume
from packer.sources.volumes.volume_lines import VolumeLines
from packer.view.app import make_app
from packer.view.serve import own_names
from packer.view.viewed import Settings, Viewed
from readers import open_dataset
from readers.contract import giant
from readers.contract.fields import picture_field
from readers.contract.manifest import STORAGES
from readers.formats.shard import Shard
from readers.pack import Pack
from readers.row_pictures import RowPictures, Style

pytestmark = pytest.mark.usefixtures("in_process")

TILES = ("--encode", "image=tiles:2x16x16", "--encode", "label=tiles-zstd:3x16x16")
Make = Callable[[Path], Path]


def is_same_in_slabs(raw: Path, monkeypatch: pytest.MonkeyPatch, *options: str, built: int = 2 * len(SIDES)) -> bool:
    """Build a pack at once and in slabs; return whether all their files are the same."""
    whole, slabs = raw.parent / "whole", raw.parent / "slabs"
    build(raw, whole, *options)
    with monkeypatch.context() as context:
        lower(context)
        names = counted(context)
        context.delattr(Volume, "all_bytes")
        build(raw, slabs, *options)
    assert len(names) == built
    return same(whole, slabs)


@pytest.mark.parametrize("make", [make_nifti, make_tiff])
@pytest.mark.parametrize("storage", STORAGES)
def test_a_pack_is_the_same_whether_its_volumes_are_built_at_once_or_in_slabs(
    make: Make, storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_same_in_slabs(make(tmp_path / "raw"), monkeypatch, *TILES, "--format", storage)


@pytest.mark.parametrize("axis", ["0", "1"])
def test_another_axis_is_the_same_in_slabs(axis: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_same_in_slabs(make_nifti(tmp_path / "raw"), monkeypatch, *TILES, "--axis", axis, "--labels", "index")


def test_every_kind_is_the_same_in_slabs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw, dice = make_tiff(tmp_path / "raw"), np.random.default_rng(3)
    for number, sides in enumerate(SIDES):
        write_pages(raw / f"cells/c{number}.tif", dice.integers(0, 60_000, sides).astype(np.uint16))
        write_pages(raw / f"depth/c{number}.tif", dice.random(sides).astype(np.float32))
        for name in "xyz":
            write_pages(raw / f"parts/{name}/c{number}.tif", dice.integers(0, 2, sides).astype(np.uint8) * 255)
    options = [each for field in FIELDS for each in ("--field", field)]
    options += [each for name in ("cells", "depth", "parts") for each in ("--encode", f"{name}=tiles-zstd:2x16x16")]
    assert is_same_in_slabs(raw, monkeypatch, *TILES, *options, built=5 * len(SIDES))


def test_volumes_of_one_colour_and_of_scaled_numbers_are_the_same_in_slabs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hash of a flat volume says so, and scaled numbers become float32."""
    for name, sides in (("flat", (4, 5, 6)), ("one", (9, 20, 20))):
        numbers = np.full(sides, 7, "<i2")
        numbers[-1] += name == "one"
        write(tmp_path / f"raw/imagesTr/{name}.nii.gz", nifti(numbers.T, 2, slope=0.5, intercept=3))
        write(tmp_path / f"raw/labelsTr/{name}.nii", nifti(np.zeros(sides, ">f4").T))
    assert is_same_in_slabs(tmp_path / "raw", monkeypatch, *TILES, "--image-dtype", "float32", built=4)


def test_volumes_of_a_pack_are_the_same_in_slabs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = make_tiff(tmp_path / "raw")
    for number, source in enumerate([(), TILES]):
        first = build(raw, tmp_path / f"first{number}", *source)
        packs = []
        names = counted(monkeypatch)
        for name, limit in (("whole", 1 << 28), ("slabs", 0)):
            lower(monkeypatch, limit)
            packs.append(tmp_path / f"{name}{number}")
            encode = ("--encode", "image=tiles-zstd:4x16x32", "--encode", "label=tiles:2x16x16")
            call(["build", "--from", str(first), str(packs[-1]), *encode])
        assert same(*packs)
        assert len(names) == 2 * len(SIDES)


def damaged(raw: Path, bad: str) -> None:
    """Damage the label of c1 in one of some ways."""
    path, numbers = raw / "labelsTr/c1.nii.gz", label(1).T.astype("<f4")
    data = bytearray(gzip.compress(nifti(numbers), 1))
    if bad == "checksum":
        data[-8] ^= 1
    elif bad == "cut short":
        del data[-9:]
    elif bad == "too long":
        data = bytearray(gzip.compress(nifti(numbers) + b"\0", 1))
    else:
        numbers[2, 1, -1] = 7 if bad == "stray class" else 1.5
        data = bytearray(gzip.compress(nifti(numbers), 1))
    path.write_bytes(data)


@pytest.mark.parametrize("bad", ["checksum", "cut short", "too long", "stray class", "half a class"])
def test_rejects_are_the_same_in_slabs(bad: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = make_nifti(tmp_path / "raw")
    damaged(raw, bad)
    monkeypatch.setattr("packer.plan.inspect_sample.SAMPLE_SIZE", 0)
    found = is_same_in_slabs(raw, monkeypatch, *TILES, "--on-bad", "skip", built=6 if "class" in bad else 4)
    assert found
    receipts = [path.read_text() for path in (tmp_path / "slabs/shards").glob("*.json")]
    assert any("labelsTr/c1.nii.gz: " in text for text in receipts), receipts


def test_a_bad_page_is_the_same_in_slabs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw, bad = make_tiff(tmp_path / "raw"), label(0)
    bad[4, 1, 2] = 9
    write_pages(raw / "labels/c0.tif", bad)
    monkeypatch.setattr("packer.plan.inspect_sample.SAMPLE_SIZE", 0)
    assert is_same_in_slabs(raw, monkeypatch, *TILES, "--on-bad", "skip")
    receipts = [path.read_text() for path in (tmp_path / "slabs/shards").glob("*.json")]
    assert any("labels/c0.tif: slice 4: has a value in no class" in text for text in receipts), receipts


def test_a_volume_that_is_too_large_at_once_is_built_in_slabs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw, options = make_nifti(tmp_path / "raw"), ("--on-bad", "skip")
    monkeypatch.setattr(volume, "MOST_BYTES", 2 * 2 * 7 * 9)
    told = call(["build", "--from", str(raw), str(tmp_path / "no"), "--volumes", "--classes", "4", *options])
    assert "imagesTr/c0.nii: has 315 bytes, and at most 252 are read at once; --volumes --encode image=tiles:64" in told
    lower(monkeypatch)
    assert open_dataset(build(raw, tmp_path / "slabs", *TILES)).size(0) == SIDES[0]
    deep = ("--axis", "0", "--image-range=0,255", "--encode", "image=tiles:16", "--encode", "label=tiles:16")
    told = call(["build", "--from", str(raw), str(tmp_path / "deep"), "--volumes", "--classes", "4", *deep], 1)
    assert "imagesTr/c0.nii: has 315 bytes in 9 slices; take tiles of less depth" in told


@pytest.mark.parametrize("parts", [1, 3])
def test_a_compressed_volume_is_unpacked_in_small_pieces(
    parts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(voxel_file, "_UNPACKED", 50)
    data = nifti(np.arange(3 * 40 * 50, dtype="<u2").reshape(3, 40, 50) // 7)
    cuts = np.linspace(0, len(data), parts + 1, dtype=int)
    packed = b"".join(gzip.compress(data[start:stop]) for start, stop in pairwise(cuts))
    (tmp_path / "a.nii.gz").write_bytes(packed)
    pieces = list(Volume.open(tmp_path / "a.nii.gz").pieces())
    assert b"".join(pieces) == data
    assert max(map(len, pieces)) <= 50


@pytest.mark.parametrize("axis", [0, 2])
def test_a_volume_that_changes_while_it_is_read_is_refused(axis: int, tmp_path: Path) -> None:
    raw = make_nifti(tmp_path / "raw")
    path = raw / "imagesTr/c0.nii"
    lines = VolumeLines(Scan((Volume.open(path).turned(Turn.along(axis)),)), "imagesTr/c0.nii")
    depth = lines.size[0]
    slab = lines.lines(0, depth)
    for number in range(depth - 1):
        slab.slice(number)
    os.utime(path, (1, 1))
    with pytest.raises(BadPair, match="changed while it was read"):
        slab.slice(depth - 1)
    lines.close()


def test_a_tiff_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    make_tiff(tmp_path)
    pages = PageLines(tmp_path, "images/c0.tif", 1 << 20)
    slab, path = pages.lines(0, 5), tmp_path / "images/c0.tif"
    os.utime(path, (1, 1))
    assert slab.slice(3)
    with pytest.raises(BadPair, match="changed while it was read"):
        slab.slice(4)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(BadPair, match="ends within a header"):
        slab.slice(4)
    pages.close()


def test_a_bad_row_leaves_no_scratch_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of the image is removed when the label is found bad, not when the shard ends."""
    raw, bad = make_tiff(tmp_path / "raw"), label(0)
    bad[4, 1, 2] = 9
    write_pages(raw / "labels/c0.tif", bad)
    lower(monkeypatch)
    monkeypatch.setattr("packer.plan.inspect_sample.SAMPLE_SIZE", 0)
    left: list[list[str]] = []
    store: Callable[..., Any] = build_shard._store

    def store_and_look(*arguments: Any) -> Any:
        left.append(sorted(path.name for path in (tmp_path / "out/shards").glob(".partial-*/*")))
        return store(*arguments)

    monkeypatch.setattr(build_shard, "_store", store_and_look)
    build(raw, tmp_path / "out", *TILES, "--on-bad", "skip")
    assert left == [["1-image", "1-label", "2-image", "2-label"]]


def test_no_slab_is_kept_when_it_is_stored() -> None:
    field = replace(picture_field("image", "<u2", (None, None, None), ("gray",)), encoding="tiles", tile=(2, 16, 16))
    raw, slab = giant_rows._Raw(field, (8, 300, 300)), np.zeros((1, 2, 300, 300), "<u2")
    for top in (0, 4):
        raw.add(top, slab, slab)
    kept = weakref.ref(slab)
    del slab
    assert kept() is None


# Looking at volumes


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    return build(make_tiff(tmp_path / "raw"), tmp_path / "out", *TILES, "--labels", "index")


def test_every_volume_is_verified_in_slabs(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giant, "GIANT", 0)
    monkeypatch.delattr(Shard, "numbers")
    assert verify_pack(packed, deep=True) == []


def test_pictures_and_maps_of_large_volumes_are_those_of_their_middle_slice(
    packed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Pack.open(packed)
    first, second = opened.manifest.fields
    pictures = RowPictures(opened, Style())

    def looked() -> tuple[object, ...]:
        maps = heat_maps(opened, second, [0, 1, 2])
        assert maps is not None
        return pictures.one(0).tolist(), maps.shares.tolist(), pictures.classes(0), call(["inspect", str(packed), "c0"])

    whole = looked()
    monkeypatch.setattr(giant, "GIANT", 0)
    monkeypatch.delattr(Shard, "numbers")
    assert looked() == whole
    middles = [image(number)[side // 2].mean() for number, (side, *_) in enumerate(SIDES)]
    assert draw_field(opened, first, [0, 1, 2]).means == pytest.approx(middles)
    call(["report", str(packed), "-o", str(packed.parent / "report.html")])
    call(["stats", str(packed)])


def test_the_page_of_a_pack_shows_the_middle_slice_of_a_large_volume(
    packed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(giant, "GIANT", 7 * 9)
    monkeypatch.delattr(Shard, "numbers")
    viewed = Viewed(Settings(packed))
    assert viewed.index.wait(60), viewed.index.problem
    client = TestClient(make_app(viewed, own_names(8000), "secret"), base_url="http://127.0.0.1:8000/secret")
    digest = client.get("/api/pack").json()["digest"]
    layer = client.get(f"/{digest}/layer/0/label")
    assert np.array_equal(np.frombuffer(layer.content, "u1").reshape(SIDES[0][1:]), label(0)[2])
    assert client.get(f"/{digest}/thumbnail/0").headers["content-type"] == "image/jpeg"
    assert "too large to be read again" in client.get("/api/raw/0").json()["problem"]
