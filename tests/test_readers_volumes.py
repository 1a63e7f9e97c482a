"""Rows with three sides: NIfTI volumes and TIFFs with many pages, from files to batches, crops and commands."""

from __future__ import annotations

import gzip
import io
import json
import re
import struct
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import PIL
import pytest
import torch
from blake3 import blake3
from conftest import run
from drills.published import same
from drills.volumes import nifti
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from page_reader import read_rows
from PIL import Image
from scenes.giant_tiff import write_tiff
from starlette.testclient import TestClient
from torch.utils.data import DataLoader

from packer import build_pack
from packer.bench.copy_loop import middle
from packer.cli.values import CropType
from packer.decoding.decode import decode_image
from packer.decoding.rules import ImageRules
from packer.decoding.tiff.pages import page_alone, read_pages
from packer.errors import BadPair, UsageError
from packer.recipe.row_ref import RowRef
from packer.shards.one_row import of_one_row
from packer.sources.container import Names
from packer.sources.files.folder import FolderSource
from packer.sources.volumes.volume_slices import VolumeSlices
from packer.view.app import make_app
from packer.view.serve import own_names
from packer.view.viewed import Settings, Viewed
from readers import CenterCrop, RandomCrop, open_dataset, stitch
from readers.contract.errors import DamagedError, ManifestError, RequestError
from readers.contract.json_entry import fingerprint
from readers.contract.manifest import Manifest
from readers.contract.statistics import ClassStatistics
from readers.contract.tile_grid import index_of
from readers.crop import CropAndFlip
from readers.epoch import BatchRows, Run
from readers.formats import shard as shard_module
from readers.pack import Pack
from readers.pictures.sheet import SheetGrid
from readers.row_pictures import RowPictures, Style
from readers.row_sheet import _cell
from readers.windows import HowToCopy

pytestmark = pytest.mark.usefixtures("in_process")

SIDES = [(5, 7, 9), (1, 4, 6), (8, 6, 5)]
"""Depth, height and width of the volumes."""
FORMATS = ("npy", "hdf5", "arrow", "lmdb")


def image(number: int) -> NDArray[np.uint8]:
    return np.random.default_rng(number).integers(0, 256, SIDES[number]).astype(np.uint8)


def label(number: int) -> NDArray[np.uint8]:
    return np.random.default_rng(9 + number).integers(0, 4, SIDES[number]).astype(np.uint8)


def call(arguments: list[str], code: int = 0) -> str:
    """Run a command, and return what it printed."""
    result = run(*arguments)
    assert result.exit_code == code, result.output
    return result.output


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data, 1) if path.suffix == ".gz" else data)


def write_pages(path: Path, pages: NDArray[Any], **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    first, *others = map(Image.fromarray, pages)
    first.save(path, save_all=True, append_images=others, **options)
    return path


def make_nifti(raw: Path) -> Path:
    for number in range(len(SIDES)):
        for folder, volume in (("imagesTr", image(number)), ("labelsTr", label(number))):
            write(
                raw / folder / f"c{number}.nii{'.gz' if number else ''}",
                nifti(volume.T.astype("<i2" if number else "u1")),
            )
    return raw


def make_tiff(raw: Path) -> Path:
    for number in range(len(SIDES)):
        write_pages(raw / f"images/c{number}.tif", image(number), compression="tiff_lzw" if number else None)
        write_pages(raw / f"labels/c{number}.tif", label(number), compression="tiff_adobe_deflate")
    return raw


def test_volumes_that_python_gives_keep_their_sizes(tmp_path: Path) -> None:
    source = VolumeSlices.at(make_nifti(tmp_path / "raw"), Names()).as_volumes()
    assert source.as_volumes() is source
    for options in ({"size": (8, 8)}, {"fit": "tile"}):
        with pytest.raises(UsageError, match="volumes keep their own sizes"):
            build_pack(source, tmp_path / "out", classes="4", **options)
    assert build_pack(source, tmp_path / "out", classes="4", image_range=(0, 255)).rows == len(SIDES)


def build(raw: Path, out: Path, *options: str) -> Path:
    source = ("--from", raw) if (raw / "imagesTr").exists() else (raw,)
    call(["build", *map(str, source), str(out), "--volumes", "--classes", "4", "--image-range=0,255", *options])
    return out


@pytest.fixture(params=[make_nifti, make_tiff])
def raw(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    made: Path = request.param(tmp_path / "raw")
    return made


@pytest.mark.parametrize("storage", FORMATS)
@pytest.mark.parametrize("encoding", ["raw", "zstd", "tiles:2x16x16", "tiles-zstd:16"])
def test_volumes_are_rows(raw: Path, tmp_path: Path, storage: str, encoding: str) -> None:
    """The pack, read by our readers and by the code of FORMAT.md, has the numbers of the files."""
    encode = [each for name in ("image", "label") for each in ("--encode", f"{name}={encoding}")]
    out = build(raw, tmp_path / "out", "--format", storage, *encode)
    onehot, index = (open_dataset(out, label=form) for form in ("onehot", "index"))
    for number in range(len(SIDES)):
        assert index.size(number) == SIDES[number]
        assert np.array_equal(index[number][0], image(number)[None])
        assert np.array_equal(index[number][1], label(number))
        assert np.array_equal(onehot[number][1], np.arange(4)[:, None, None, None] == label(number))
    rows = list(read_rows(out))
    assert [key for _, key, _ in rows] == ["c0", "c1", "c2"]
    for number, (_, _, fields) in enumerate(rows):
        assert np.array_equal(fields["image"][0], image(number))
        assert np.array_equal(fields["label"].argmax(0), label(number))
    call(["verify", str(out), "--deep"])


def test_probe_proposes_volumes(raw: Path, tmp_path: Path) -> None:
    config, is_nifti = tmp_path / "packer.toml", (raw / "imagesTr").exists()
    if is_nifti:  # the others have two bytes
        for folder, volume in (("imagesTr", image(0)), ("labelsTr", label(0))):
            write(raw / folder / "c0.nii", nifti(volume.T.astype("<i2")))
    page = call(["probe", str(raw), "--write", str(config)])
    assert "sizes     5x7x9 (1), 1x4x6 (1), 8x6x5 (1) (depth x height x width)" in page
    assert "only the middle slice of each label was decoded" in page
    assert ("without it each slice is a row, which needs image-range" in page) == is_nifti
    assert f"packer build --config {config} {'--from ' * is_nifti}{raw} out/" in page
    call(["build", "--config", str(config), *["--from"] * is_nifti, str(raw), str(tmp_path / "out")])
    data = open_dataset(tmp_path / "out", label="index")
    assert all(np.array_equal(data[number][0], image(number)[None]) for number in range(3))


def test_probe_asks_for_a_range_only_where_slices_need_one(tmp_path: Path) -> None:
    """Slices of 8 bits are stored as they are, and the question said that they need a range."""
    for folder, volume in (("imagesTr", image(0)), ("labelsTr", label(0))):
        write(tmp_path / "raw" / folder / "c0.nii", nifti(volume.T.astype("u1")))
    page = call(["probe", str(tmp_path / "raw")])
    assert "volumes = true makes one row of each volume; without it each slice is a row\n" in page


def test_probe_counts_bad_pairs_and_not_their_files(tmp_path: Path) -> None:
    """One page of each is fine, so the folder has pictures, and both files of the other pair have several pages."""
    raw = tmp_path / "raw"
    for folder in ("images", "labels"):
        write_pages(raw / folder / "a.tif", image(0)[:1])
        write_pages(raw / folder / "b.tif", image(0))
    page = call(["probe", str(raw)])
    assert "1 pair cannot be packed without a change" in page
    assert "1 bad pair was found" in page


def test_probe_names_a_volume_without_a_partner(tmp_path: Path) -> None:
    raw = make_nifti(tmp_path / "raw")
    (raw / "labelsTr/c1.nii.gz").unlink()
    assert "volumes without a partner" in call(["probe", str(raw)], 1)


def test_nifti_and_tiff_give_the_same_rows(tmp_path: Path) -> None:
    ours, other = (
        build(make(tmp_path / make.__name__), tmp_path / f"{make.__name__}.out") for make in (make_nifti, make_tiff)
    )
    a, b = open_dataset(ours), open_dataset(other)
    assert a.fields == b.fields
    assert a.manifest.statistics == b.manifest.statistics
    assert all(torch.equal(x, y) for row in range(3) for x, y in zip(a[row], b[row], strict=True))


def test_statistics_are_those_of_whole_volumes(tmp_path: Path) -> None:
    statistics = open_dataset(build(make_nifti(tmp_path / "raw"), tmp_path / "out")).manifest.statistics["label"]
    assert isinstance(statistics, ClassStatistics)
    labels = [label(number) for number in range(3)]
    assert statistics.classes == tuple(sum(int((each == c).sum()) for each in labels) for c in range(4))
    assert statistics.rows == tuple(sum(bool((each == c).any()) for each in labels) for c in range(4))
    assert statistics.areas == tuple(sum(each.size for each in labels if (each == c).any()) for c in range(4))
    slices = [ClassStatistics((2, 0), (1, 0), (4, 0), 2), ClassStatistics((1, 0), (1, 0), (4, 0), 3)]
    assert of_one_row(slices, 8) == ClassStatistics((3, 0), (1, 0), (8, 0), 5)


@pytest.mark.parametrize("axis", [0, 1])
def test_another_axis_is_the_depth(tmp_path: Path, axis: int) -> None:
    raw = make_nifti(tmp_path / "raw")
    data = open_dataset(build(raw, tmp_path / "out", "--axis", str(axis)), label="index")
    options = ["--classes", "4", "--image-range=0,255", "--axis", str(axis), "--size", "native"]
    call(["build", "--from", str(raw), str(tmp_path / "slices"), *options])
    slices = open_dataset(tmp_path / "slices", label="index")
    for number in range(3):
        for depth in range(data.size(number)[0]):
            picture, index = slices[slices.index(f"c{number}/{depth:04}")]
            assert torch.equal(picture[:1], data[number][0][:, depth])
            assert torch.equal(index, data[number][1][depth])


def test_numbers_and_bands_are_kept(tmp_path: Path) -> None:
    deep = np.random.default_rng(1).integers(0, 65536, (3, 4, 5)).astype(np.uint16)
    colours = np.random.default_rng(2).integers(0, 256, (3, 4, 5, 3)).astype(np.uint8)
    for name, pages in (("deep", deep), ("colours", colours)):
        write_pages(tmp_path / name / "images/a.tif", pages)
        write_pages(tmp_path / name / "labels/a.tif", np.zeros((3, 4, 5), np.uint8))
        call(["build", str(tmp_path / name), str(tmp_path / f"{name}.out"), "--volumes", "--classes", "2"])
    found, coloured = (open_dataset(tmp_path / f"{name}.out") for name in ("deep", "colours"))
    assert np.array_equal(found[0][0].numpy(), deep[None])
    assert np.array_equal(coloured[0][0].numpy(), colours.transpose(3, 0, 1, 2))


PARTS = '{"name":"parts","kind":"multilabel","from":"parts/{class}/{key}.tif","classes":["x","y","z"],"form":"bits"}'
FIELDS = ["cells=ids:cells/{key}.tif", "depth=values:depth/{key}.tif", PARTS]


@pytest.mark.parametrize("storage", FORMATS)
def test_every_kind_is_stored_delivered_and_cropped(tmp_path: Path, storage: str) -> None:
    raw, dice = make_tiff(tmp_path / "raw"), np.random.default_rng(3)
    cells, depth, parts = {}, {}, {}
    for number, sides in enumerate(SIDES):
        cells[number] = dice.integers(0, 60_000, sides).astype(np.uint16)
        depth[number] = dice.random(sides).astype(np.float32)
        parts[number] = dice.integers(0, 2, (3, *sides)).astype(np.uint8)
        write_pages(raw / f"cells/c{number}.tif", cells[number])
        write_pages(raw / f"depth/c{number}.tif", depth[number])
        for plane, name in zip(parts[number], "xyz", strict=True):
            write_pages(raw / f"parts/{name}/c{number}.tif", plane * np.uint8(255))
    out = build(raw, tmp_path / "out", "--format", storage, *[each for field in FIELDS for each in ("--field", field)])
    names = ("cells", "depth", "parts", "label")
    data = open_dataset(out, fields=names, form={"parts": "planes", "label": "onehot"})
    cropped = open_dataset(out, fields=names, form={"parts": "planes"}, transform=CenterCrop((2, 3, 4)))
    for number in range(3):
        expected: list[NDArray[Any]] = [cells[number], depth[number], parts[number]]
        assert all(np.array_equal(ours, theirs) for ours, theirs in zip(data[number], expected, strict=False))
        assert all(part.shape[-3:] == (2, 3, 4) for part in cropped[number])
    stacked = map(torch.stack, zip(*cropped, strict=True))
    loader = open_dataset(out, fields=names, form={"parts": "planes"}).loader(3, crop=CenterCrop((2, 3, 4)))
    assert all(np.allclose(x, y, equal_nan=True) for x, y in zip(next(iter(loader)), stacked, strict=True))
    call(["verify", str(out), "--deep"])
    call(["build", "--from", str(out), str(tmp_path / "again"), "--format", "npy" if storage != "npy" else "lmdb"])
    again = open_dataset(tmp_path / "again", fields=names, form={"parts": "planes", "label": "onehot"})
    assert all(np.array_equal(x, y) for row in range(3) for x, y in zip(data[row], again[row], strict=True))


sides = st.tuples(*[st.integers(1, 9)] * 3)


@given(sides, sides, st.integers(0, 99), st.sampled_from(["|u1", "<u2", "<f4"]), st.booleans(), st.booleans())
def test_windows_are_those_of_padded_arrays(
    volume: tuple[int, ...], size: tuple[int, ...], seed: int, dtype: str, flip: bool, has_planes: bool
) -> None:
    """A window of random bits, in any place, is that of the volume in a frame of padding."""
    dice = np.random.default_rng(seed)
    pixels = dice.integers(1, 200, (*[2] * has_planes, *volume)).astype(dtype)
    cut = CropAndFlip.of(RandomCrop(size), flip, False, (None, None, None))
    assert cut is not None
    windows = cut.windows(np.array([seed]), [Run(0, 0, 1)], np.array([volume]))
    out = np.empty((*pixels.shape[:-3], *size), dtype)
    windows.copy(0, volume, lambda part: pixels[index_of(part)], out, HowToCopy(fill=7))
    frame = np.pad(pixels, [(0, 0)] * has_planes + [(side, side) for side in size], constant_values=7)
    part = tuple(slice(start + side, start + 2 * side) for start, side in zip(windows.starts[0], size, strict=True))
    expected = frame[(slice(None),) * has_planes + part]
    assert np.array_equal(out, expected[..., ::-1] if windows.flips[0] else expected)
    for start, side, length in zip(windows.starts[0], volume, size, strict=True):
        assert min(0, side - length) <= start <= max(0, side - length)


@pytest.mark.parametrize("encoding", ["zstd", "tiles:2x16x16", "tiles-zstd:16"])
def test_windows_are_the_same_in_every_encoding(tmp_path: Path, encoding: str) -> None:
    raw = make_tiff(tmp_path / "raw")
    encode = [each for name in ("image", "label") for each in ("--encode", f"{name}={encoding}")]
    data = [open_dataset(build(raw, tmp_path / f"out{len(each)}", *each)) for each in ([], encode)]
    one, other = (next(iter(each.loader(3, crop=(4, 5, 3), flip=True, seed=5))) for each in data)
    assert all(torch.equal(x, y) for x, y in zip(one, other, strict=True))


def test_only_the_lines_of_a_window_are_prefetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = open_dataset(build(make_tiff(tmp_path / "raw"), tmp_path / "out", "--labels", "index"), fields=("image",))
    batches: Any = data.loader(1, crop=(2, 3, 4))._batches
    batch = BatchRows(np.array([2]), [Run(0, 0, 1)], (1,))
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(shard_module, "absent", lambda path, data, starts: range(len(starts)))
    monkeypatch.setattr(shard_module, "prefetch", lambda data, spans: asked.extend(spans))
    batches.prefetch([batch])
    windows = batches._windows(batch, batches.held(batch)).windows
    assert windows is not None
    (deep, top, _), (_, height, width) = windows.starts[0], SIDES[2]
    _, begin, _ = data._pack.shard(0).position("image", 2)
    lines = [begin + ((deep + number) * height + top) * width for number in range(2)]
    assert asked == [(at, at + 3 * width) for at in lines]
    assert batches.bytes() == 2 * 3 * SIDES[0][2]


def test_crops_of_a_loader_follow_from_seed_and_row(tmp_path: Path) -> None:
    data = open_dataset(build(make_tiff(tmp_path / "raw"), tmp_path / "out"))
    batches = [list(data.loader(size, crop=(3, 4, 5), flip=True, seed=2)) for size in (1, 3)]
    assert [tuple(part.shape) for part in batches[1][0]] == [(3, 1, 3, 4, 5), (3, 4, 3, 4, 5)]
    for part, whole in zip(zip(*batches[0], strict=True), batches[1][0], strict=True):
        assert torch.equal(torch.cat(part), whole)
    sampled = DataLoader(open_dataset(tmp_path / "out", transform=RandomCrop((3, 4, 5))), 3)
    assert [tuple(part.shape) for part in next(iter(sampled))] == [(3, 1, 3, 4, 5), (3, 4, 3, 4, 5)]
    mean, std = torch.tensor(data.mean), torch.tensor(data.std)
    ((images, labels),) = data.loader(3, crop=CenterCrop((3, 4, 5))).to("cpu", normalize=True, channels_last=True)
    plain, planes = next(iter(data.loader(3, crop=CenterCrop((3, 4, 5)))))
    assert torch.allclose(images, (plain / 255 - mean) / std, atol=1e-5)
    assert torch.equal(labels, planes)


@pytest.mark.parametrize("encoding", ["raw", "tiles-zstd:16"])
def test_windows_of_a_volume_are_stitched_to_it(tmp_path: Path, encoding: str) -> None:
    data = open_dataset(build(make_tiff(tmp_path / "raw"), tmp_path / "out", "--encode", f"image={encoding}"))
    for row in range(3):
        windows = list(data.windows(row, (3, 4, 5), overlap=2))
        for part, whole in enumerate(data[row]):
            assert np.array_equal(stitch((key, sample[part].numpy()) for key, sample in windows), whole)


def test_what_does_not_fit_together_is_refused(tmp_path: Path) -> None:
    out = build(make_tiff(tmp_path / "raw"), tmp_path / "out")
    data = open_dataset(out)
    with pytest.raises(RequestError, match=r"are volumes; expected \(D, H, W\)"):
        data.loader(2, crop=(4, 4))
    with pytest.raises(RequestError, match=r"volumes of different .*5x7x9.*depth x .*crop=\(D, H, W\)"):
        next(iter(data.loader(2)))
    with pytest.raises(RequestError, match="are volumes"):
        open_dataset(out, transform=CenterCrop((4, 4)))[0]
    with pytest.raises(RequestError, match=r"transform=RandomCrop\(\(D, H, W\)\)"):
        next(iter(DataLoader(data, 2)))
    to_nothing = [str(tmp_path / "no"), "--classes", "4"]
    for options, words in (
        (["--size", "8x8"], "volumes keep their own sizes"),
        (["--fit", "tile", "--encode", "image=jpeg"], "leave them out, or --volumes, if the rows are pictures"),
        (["--encode", "image=jpeg"], "not volumes; zstd stores every field"),
    ):
        assert words in call(["build", str(tmp_path / "raw"), *to_nothing, "--volumes", *options], 2)
    scaled = call(["build", "--from", str(out), str(tmp_path / "no"), "--fit", "tile"], 2)
    assert "volumes keep their own sizes" in scaled
    colours = ["extract", str(out), "--all", "--labels", "colours", str(tmp_path / "files")]
    assert "are volumes, whose labels have numbers in a NIfTI file" in call(colours, 2)
    assert "--volumes" in call(["build", str(tmp_path / "raw"), *to_nothing], 1)


def test_volumes_of_different_sides_are_rejects(tmp_path: Path) -> None:
    raw = make_tiff(tmp_path / "raw")
    write_pages(raw / "labels/c0.tif", label(0)[:4])
    told = call(["build", str(raw), str(tmp_path / "out"), "--volumes", "--classes", "4", "--on-bad", "skip"])
    assert "images/c0.tif is 5x7x9, its label labels/c0.tif is 4x7x9 (depth x height x width)" in told
    assert len(open_dataset(tmp_path / "out")) == 2
    raw = make_nifti(tmp_path / "nifti")
    write(raw / "labelsTr/c1.nii.gz", nifti(label(0).T.astype("<i2")))
    options = ["--volumes", "--classes", "4", "--on-bad", "skip"]
    told = call(["build", "--from", str(raw), str(tmp_path / "second"), *options])
    assert "is 1x4x6, its label labelsTr/c1.nii.gz is 5x7x9" in told


def test_a_bad_volume_is_known_by_its_bytes(tmp_path: Path) -> None:
    first, other = Image.fromarray(image(0)[0]), Image.fromarray(image(0)[1][:3])
    first.save(tmp_path / "a.tif", save_all=True, append_images=[other])
    loaded = FolderSource(tmp_path, templates=("",), volumes=True).load(RowRef("train", "a", ("a.tif",)))
    assert (loaded.bad is None, loaded.identities) == (False, (blake3((tmp_path / "a.tif").read_bytes()).hexdigest(),))


def test_a_bad_slice_is_named(tmp_path: Path) -> None:
    raw, bad = make_tiff(tmp_path / "raw"), label(0)
    bad[4, 1, 2] = 9
    write_pages(raw / "labels/c0.tif", bad)
    told = call(["build", str(raw), str(tmp_path / "out"), "--volumes", "--classes", "4"], 1)
    assert "labels/c0.tif: slice 4: " in told


def test_commands_show_volumes(tmp_path: Path) -> None:
    raw, out = make_tiff(tmp_path / "raw"), tmp_path / "out"
    build(raw, out)
    assert "(1, D, H, W)" in call(["info", str(out)])
    assert "5x7x9" in call(["stats", str(out)])
    told = call(["inspect", str(out), "c0"])
    assert "size        5x7x9\n" in told
    assert sum(map(float, re.findall(r"([\d.]+) %", told))) == pytest.approx(100, abs=0.01)
    call(["log", str(out)])
    call(["sheet", str(out), "-o", str(tmp_path / "sheet.png")])
    call(["report", str(out), "-o", str(tmp_path / "report.html")])
    assert "c0  all, 5x7x9, label over image" in call(["show", str(out), "c0"])
    assert _cell(RowPictures(Pack.open(out), Style()), 0, SheetGrid.of([(7, 9)], 2)).note == "5x7x9"
    assert "such as --crop 64x128x128" in call(["bench", str(out)], 2)
    assert CropType().convert("4x5x6", None, None) == (4, 5, 6)
    assert np.array_equal(middle(image(0), (3, 5, 5)), image(0)[1:4, 1:6, 2:7])
    assert open_dataset(out).show(0).size == (9, 7)
    write_pages(raw / "labels/c1.tif", label(1)[:, ::-1])
    assert "all/c1: label" in call(["diff", str(raw), str(out)], 1)


def test_the_page_of_a_pack_shows_volumes(tmp_path: Path) -> None:
    """Every address of a row and a field answers with the middle slice, and the raw files are read again."""
    out = build(make_tiff(tmp_path / "raw"), tmp_path / "out", "--labels", "index")
    viewed = Viewed(Settings(out))
    assert viewed.index.wait(60), viewed.index.problem
    client = TestClient(make_app(viewed, own_names(8000), "secret"), base_url="http://127.0.0.1:8000/secret")
    digest = client.get("/api/pack").json()["digest"]
    assert client.get("/api/rows").json()["total"] == 3
    assert client.get("/api/rows/0").json()["size"] == list(SIDES[0])
    assert client.get(f"/{digest}/thumbnail/0").headers["content-type"] == "image/jpeg"
    picture = np.asarray(Image.open(io.BytesIO(client.get(f"/{digest}/picture/0/image").content)))
    assert np.array_equal(picture, np.repeat(image(0)[2][..., None], 3, 2))
    layer = client.get(f"/{digest}/layer/0/label")
    assert np.array_equal(np.frombuffer(layer.content, "u1").reshape(SIDES[0][1:]), label(0)[2])
    again = client.get("/api/raw/0").json()
    assert again["problem"] == ""
    assert {name: pixels for name, (pixels, _) in again["differences"].items()} == {"image": 0, "label": 0}


def test_parts_of_a_plan_make_the_same_pack(tmp_path: Path) -> None:
    raw, plan, out = make_tiff(tmp_path / "raw"), tmp_path / "plan", tmp_path / "out"
    options = ["--volumes", "--classes", "4", "--image-range=0,255", "--shard-size", "1KiB"]
    call(["plan", str(raw), str(plan), *options])
    for part in (1, 2):
        call(["build-part", "--plan", str(plan), "--part", f"{part}/2", str(out)])
    call(["commit", "--plan", str(plan), str(out)])
    call(["build", str(raw), str(tmp_path / "whole"), *options])
    assert same(out, tmp_path / "whole")


VOLUME = [None, None, None]


@pytest.mark.parametrize(
    ("image", "label", "message"),
    [
        ([1, *VOLUME], [None, None], "differ in size"),
        ([1, 5, None, None], VOLUME, "fields.0.shape: expected 3 numbers, or a third side of null in a volume"),
        ([1, 5, 6, 7], [5, 6, 7], "fields.0.shape: expected 3 numbers, or a third side of null in a volume"),
        ([None, *VOLUME], VOLUME, "fields.0.shape: expected null for height and width"),
        ([1, None, *VOLUME], VOLUME, "fields.0.shape: expected 3 numbers"),
    ],
)
def test_impossible_shapes_are_refused(tmp_path: Path, image: list[Any], label: list[Any], message: str) -> None:
    schema = json.loads((Path(__file__).parents[1] / "docs/manifest.schema.json").read_text())
    out = build(make_tiff(tmp_path / "raw"), tmp_path / "out", "--labels", "index")
    document = json.loads((out / "manifest.json").read_text())
    jsonschema.validate(document, schema)
    del document["checksum"]
    document["fields"][0]["shape"], document["fields"][1]["shape"] = image, label
    document["checksum"] = fingerprint(document)
    with pytest.raises(ManifestError, match=re.escape(message)):
        Manifest.from_text(json.dumps(document), "m")
    if "differ" not in message:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(document, schema)


@pytest.mark.parametrize("numbers", [[[0, 4, 5]], [[5, 7, 10]], [[2**32 - 1] * 3]])
def test_sizes_that_are_not_possible_are_damage(tmp_path: Path, numbers: list[list[int]]) -> None:
    out = build(make_tiff(tmp_path / "raw"), tmp_path / "out")
    (path,) = (out / "shards").glob("*.size.npy")
    sizes = np.load(path)
    np.save(path, np.array([*numbers, *sizes[1:].tolist()], "<u4"))
    with pytest.raises(DamagedError, match=r"sides|sizes"):
        open_dataset(out)[0]


def test_an_unchanged_volume_is_not_read_again(tmp_path: Path) -> None:
    raw, out = make_nifti(tmp_path / "raw"), tmp_path / "out"
    build(raw, out)
    before = open_dataset(out).manifest
    build(raw, out)
    assert open_dataset(out).manifest.table == before.table
    write(raw / "labelsTr/c1.nii.gz", nifti(label(1)[:, ::-1].T.astype("<i2")))
    build(raw, out)
    build(raw, tmp_path / "fresh")
    assert same(out, tmp_path / "fresh")


def test_pages_are_read_as_files_of_one_page(tmp_path: Path) -> None:
    """Any page, taken alone, decodes to its numbers; pages that are not alike, and hostile directories, are refused."""
    for options in ({"compression": "tiff_lzw"}, {"big_tiff": True}, {}):
        if "big_tiff" in options and PIL.__version__.startswith("11.2."):
            continue  # this Pillow cannot append a page to a BigTIFF
        data = write_pages(tmp_path / "a.tif", image(0), **options).read_bytes()
        pages = read_pages(io.BytesIO(data))
        assert pages.size == SIDES[0]
        for number, offset in enumerate(pages.offsets):
            assert np.array_equal(
                np.asarray(Image.open(io.BytesIO(page_alone(io.BytesIO(data), offset)))), image(0)[number]
            )
    first, other = Image.fromarray(image(0)[0]), Image.fromarray(image(0)[1][:3])
    first.save(tmp_path / "b.tif", save_all=True, append_images=[other])
    with pytest.raises(BadPair, match=r"page 1: is TIFF gray, 8 bits of 3x9, and page 0 is .* of 7x9"):
        read_pages(io.BytesIO((tmp_path / "b.tif").read_bytes()))
    (start,) = struct.unpack_from("<I", data, 4)
    (count,) = struct.unpack_from("<H", data, start)
    looped = bytearray(data)
    struct.pack_into("<I", looped, start + 2 + 12 * count, start)
    with pytest.raises(BadPair, match="list of pages has no end"):
        read_pages(io.BytesIO(bytes(looped)))
    strips = data.index(struct.pack("<HHI", 279, 4, 1)) + 8
    claimed = data[:strips] + struct.pack("<I", 1 << 30) + data[strips + 4 :]
    with pytest.raises(BadPair, match="blocks claim 1073741824 of"):
        page_alone(io.BytesIO(claimed), pages.offsets[0])
    write_tiff(tmp_path / "c.tif", (7, 9), lambda top, bottom: image(0)[0, top:bottom, :, None], tile=16)
    data = (tmp_path / "c.tif").read_bytes()
    one_sample, unknown_turn = struct.pack("<HHQQ", 277, 3, 1, 1), struct.pack("<HHQQ", 274, 16, 1, 1 << 63)
    turned = data.replace(one_sample, unknown_turn)
    (offset,) = read_pages(io.BytesIO(turned)).offsets
    assert np.array_equal(decode_image(page_alone(io.BytesIO(turned), offset), ImageRules())[..., 0], image(0)[0])
