"""Slides: a level of them is a picture like any other, at once or line by line. Only Aperio's files and tiled TIFFs are
made here, and read by the real openslide."""

from __future__ import annotations

import json
import os
import sys
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
import simplejpeg
from conftest import pack, run, without_workers
from scenes.giant_tiff import label_lines, picture_lines, write_tiff
from scenes.slide_files import TILE, write_slide

from packer.decoding import raw_pixels
from packer.decoding import slide as opened_slide
from packer.decoding.header import Strip
from packer.decoding.strips import slide as slide_lines
from packer.decoding.strips.slide import SlideFile
from packer.errors import BadPair
from packer.packs.raw_rows import RawRows
from packer.pairs.template import SLIDES
from packer.plan.make_plan import make_plan
from packer.plan.request import request_of
from packer.recipe.row_ref import RowRef
from packer.shards.build_shard import build_shard
from packer.sources.files.folder import FolderSource
from packer.sources.files.slides import slide_levels
from readers import open_dataset
from readers.contract import giant
from readers.contract.files import sha256
from readers.pack import Pack

SIZE = (603, 401)
LEVELS = [SIZE, (150, 100), (37, 25)]
REF = RowRef("all", "a", ("images/a.svs", "labels/a.tif"))
OPTIONS = ["--size", "native", "--classes", "5", "--labels", "index"]


@pytest.fixture
def openslide() -> Any:
    return pytest.importorskip("openslide")


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """A slide, and a label for its finest level."""
    for folder in ("images", "labels"):
        (tmp_path / "raw" / folder).mkdir(parents=True)
    write_slide(tmp_path / "raw/images/a.svs", SIZE, picture_lines(SIZE))
    write_tiff(tmp_path / "raw/labels/a.tif", SIZE, label_lines(SIZE))
    return tmp_path / "raw"


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The path of a module that stands for openslide, also in other processes."""
    folder = tmp_path / "fake"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "openslide", raising=False)
    opened_slide.library.cache_clear()
    yield folder / "openslide.py"
    opened_slide.library.cache_clear()
    sys.modules.pop("openslide", None)


def call(arguments: list[str], code: int = 0) -> str:
    result = run(*arguments)
    assert result.exit_code == code, result.output
    return result.output


def numbers(paths: list[Path], level: int = 0, step: int = 1 << 20) -> Any:
    with closing(SlideFile(paths, level)) as slide:
        height = slide.size[0]
        found = [slide.lines(top, min(top + step, height)) for top in range(0, height, step)]
    assert all(isinstance(each, Strip) for each in found)
    return np.concatenate([each.stored.numbers for each in found])  # type: ignore[union-attr]


def decoded_tiles(level: int) -> Any:
    """Return the picture of a level, its tiles decoded by libjpeg."""
    factor, size = 4**level, LEVELS[level]
    whole = np.zeros((-(-size[0] // TILE) * TILE, -(-size[1] // TILE) * TILE, 3), np.uint8)
    whole[: size[0], : size[1]] = picture_lines(SIZE)(0, size[0] * factor)[::factor, ::factor][:, : size[1]]
    for top in range(0, len(whole), TILE):
        for left in range(0, whole.shape[1], TILE):
            tile = whole[top : top + TILE, left : left + TILE]
            data = simplejpeg.encode_jpeg(np.ascontiguousarray(tile), quality=90, colorsubsampling="444")
            tile[:] = simplejpeg.decode_jpeg(data)
    return whole[: size[0], : size[1]]


@pytest.mark.parametrize("aperio", [True, False], ids=["Aperio", "tiled TIFF"])
@pytest.mark.parametrize("level", range(3))
def test_a_level_has_the_pixels_of_its_tiles(
    openslide: Any, level: int, aperio: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slide_lines, "MOST_TILE", 0)
    monkeypatch.setattr(slide_lines, "BAND", 40)  # of coarse levels these lines lie between those of level 0
    write_slide(tmp_path / "a.svs", SIZE, picture_lines(SIZE), aperio=aperio)
    assert openslide.OpenSlide.detect_format(tmp_path / "a.svs") == ("aperio" if aperio else "generic-tiff")
    assert np.array_equal(numbers([tmp_path / "a.svs"], level), decoded_tiles(level))


@pytest.mark.parametrize("whole", [1 << 26, 0], ids=["at once", "in parts"])
@pytest.mark.parametrize("level", range(3))
def test_lines_do_not_depend_on_how_many_are_asked_for(
    openslide: Any, level: int, whole: int, raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slide_lines, "WHOLE", whole)
    monkeypatch.setattr(slide_lines, "MOST_BAND", 40 * 4 * LEVELS[level][1])
    path = raw / "images/a.svs"
    every = numbers([path], level)
    assert every.shape == (*LEVELS[level], 3)
    assert all(np.array_equal(numbers([path], level, step), every) for step in (7, 40, 64))


IN_TILES: dict[str, Any] = {"size": "native", "encode": (("image", "tiles:32"), ("label", "tiles-zstd:48"))}


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("shape", [IN_TILES, {"size": (64, 48), "fit": "tile", "overlap": 5}], ids=["native", "tile"])
def test_a_shard_is_the_same_whether_its_slides_are_read_at_once_or_in_strips(
    openslide: Any, level: int, shape: dict[str, Any], raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tiff(raw / "labels/a.tif", LEVELS[level], label_lines(LEVELS[level]))
    chosen: dict[str, Any] = {"classes": "5", "labels": "index", "slide_level": level, **shape}
    plan = make_plan(request_of(raw, raw.parent / "plan", **chosen))
    digests = []
    for limit in (1 << 28, 0):
        monkeypatch.setattr(giant, "GIANT", limit)
        if not limit:
            monkeypatch.setattr(FolderSource, "load", None)  # every row is built strip by strip
        out = raw.parent / f"out-{limit}"
        (out / "shards").mkdir(parents=True)
        for spec in plan.specs:
            assert not build_shard(spec, plan.found_rows.source, out).rejects
        digests.append({path.name: sha256(path) for path in (out / "shards").rglob("*")})
    assert digests[0] == digests[1]


def test_a_slide_is_packed_and_its_versions_are_in_the_recipe(openslide: Any, raw: Path) -> None:
    out = pack(raw, raw.parent / "out", *OPTIONS, "--encode", "image=tiles:64", "--encode", "label=tiles-zstd:64")
    dataset = open_dataset(out)
    image, label = dataset[0]
    assert np.array_equal(np.moveaxis(np.asarray(image), 0, -1), decoded_tiles(0))
    assert np.asarray(label).shape == SIZE
    recipe = dataset.manifest.recipe
    assert f"openslide {openslide.__library_version__} of openslide-bin" in " ".join(recipe["tools"])
    assert "slide_level" not in recipe["fields"][0]["read"]


def test_a_coarser_level_is_another_recipe(openslide: Any, raw: Path) -> None:
    out, level = raw.parent / "out", ["--slide-level", "1"]
    pack(raw, out, *OPTIONS)
    refused = call(["build", str(raw), str(out), *OPTIONS, *level], 1)
    assert "images/a.svs: is 150x100, its label labels/a.tif is 603x401" in refused
    assert "--slide-level 0 has this size" in refused
    write_tiff(raw / "labels/a.tif", LEVELS[1], label_lines(LEVELS[1]))
    assert "--slide-level 1 has this size" in call(["build", str(raw), str(out), *OPTIONS], 1)
    pack(raw, out, *OPTIONS, *level)
    dataset = open_dataset(out)
    assert np.asarray(dataset[0][0]).shape == (3, 150, 100)
    assert dataset.manifest.recipe["fields"][0]["read"]["slide_level"] == 1


def test_a_level_that_does_not_exist_is_refused_with_those_that_do(openslide: Any, raw: Path) -> None:
    told = call(["build", str(raw), str(raw.parent / "out"), *OPTIONS, "--slide-level", "3"], 1)
    assert "images/a.svs: has no level 3; its levels are 0: 603x401, 1: 150x100, 2: 37x25 (height x width)" in told


def test_a_slide_of_too_many_pixels_names_the_level_that_fits(openslide: Any, raw: Path) -> None:
    told = call(["build", str(raw), str(raw.parent / "out"), *OPTIONS, "--max-pixels", "20000"], 1)
    assert "claims 401x603 pixels; 1 to 20000 are allowed (--max-pixels), or --slide-level 1, which is 150x100" in told


def test_no_level_has_the_size_of_the_label(openslide: Any, raw: Path) -> None:
    write_tiff(raw / "labels/a.tif", (150, 101), label_lines((150, 101)))
    told = call(["build", str(raw), str(raw.parent / "out"), *OPTIONS], 1)
    assert "they must have the same size; the levels are 0: 603x401, 1: 150x100" in told


def test_a_damaged_slide_is_a_reject_with_its_name(openslide: Any, raw: Path) -> None:
    path = raw / "images/a.svs"
    data = path.read_bytes()
    damaged = bytearray(data)
    damaged[60:400] = bytes(340)
    for content, words in ((b"no slide", "not a slide that openslide reads"), (data[:3000], "images/a.svs")):
        path.write_bytes(content)
        assert words in call(["build", str(raw), str(raw.parent / "out"), *OPTIONS], 1)
    path.write_bytes(damaged)
    loaded = FolderSource(raw).load(REF)
    assert loaded.bad is not None
    assert loaded.bad.startswith("images/a.svs: is damaged")


def test_a_slide_that_is_too_large_to_be_read_at_once_is_a_reject(
    openslide: Any, raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw_pixels, "MOST_WHOLE", 10)
    assert "at most 10 are decoded at once; a slide" in str(FolderSource(raw).load(REF).bad)


def test_the_original_of_a_row_is_that_of_its_level(openslide: Any, raw: Path) -> None:
    write_tiff(raw / "labels/a.tif", LEVELS[1], label_lines(LEVELS[1]))
    out = pack(raw, raw.parent / "out", *OPTIONS, "--slide-level", "1")
    with without_workers():
        original = RawRows(Pack.open(out)).row(0)
    assert not original.problem
    assert original.as_it_is["image"][1].shape == (3, *LEVELS[1])
    refused = call(["build", "--from", str(out), str(raw.parent / "again"), "--slide-level", "2"], 2)
    assert "says how files are read" in refused


def test_a_slide_that_changes_while_it_is_read_is_refused(openslide: Any, raw: Path) -> None:
    path = raw / "images/a.svs"
    with closing(SlideFile([path])) as slide:
        slide.lines(0, 100)
        os.utime(path, ns=(1, 1))
        with pytest.raises(BadPair, match="changed while it was read"):
            slide.lines(100, SIZE[0])


def test_a_slide_is_refused_as_a_label(openslide: Any, raw: Path) -> None:
    (raw / "labels/a.tif").unlink()
    (raw / "labels/a.svs").write_bytes((raw / "images/a.svs").read_bytes())
    assert "is a slide with lossy compression" in call(["build", str(raw), str(raw.parent / "out"), *OPTIONS], 1)


def test_a_probe_describes_slides(openslide: Any, raw: Path) -> None:
    told = call(["probe", str(raw)])
    assert "slide RGB, 8 bits (1)" in told
    assert "603x401 (1)" in told


FAKE = """
import os, signal
import numpy as np
__library_version__ = "9"
class OpenSlideError(Exception): ...
class OpenSlide:
    level_dimensions = {dimensions}
    level_downsamples = (float("{downsample}"),)
    properties = {properties}
    def __init__(self, path):
        if path.endswith("crash.svs"):
            os.kill(os.getpid(), signal.SIGSEGV)
    def read_region(self, position, level, size):
        pixels = np.full((size[1], size[0], 4), 200, np.uint8)
        pixels[..., 3] = np.arange(size[0]) % 2 * 255
        return pixels
    def close(self): ...
"""


def write_fake(path: Path, dimensions: Any = ((4, 3),), properties: Any = None, downsample: str = "1") -> None:
    path.write_text(FAKE.format(dimensions=dimensions, properties=properties or {}, downsample=downsample))


def test_a_slide_that_crashes_the_library_is_named_and_the_next_one_is_read(fake: Path, tmp_path: Path) -> None:
    write_fake(fake)
    names = ["a.svs", "crash.svs", "c.svs"]
    for name in names[:2]:
        (tmp_path / name).write_bytes(b"x")
    os.mkfifo(tmp_path / "c.svs")
    found = dict(slide_levels(tmp_path, names))
    assert found["a.svs"] == ((3, 4),)
    assert "crashed the process that read it (SIGSEGV)" in str(found["crash.svs"])
    assert "is not a regular file" in str(found["c.svs"])


@pytest.mark.parametrize("dimensions", [(), ((0, 3),), ((1 << 40, 3),), ((4, 3),) * 65])
def test_levels_that_are_impossible_are_refused(fake: Path, dimensions: Any, tmp_path: Path) -> None:
    write_fake(fake, dimensions)
    (tmp_path / "a.svs").write_bytes(b"x")
    with pytest.raises(BadPair, match=r"claims \d+ levels"):
        SlideFile([tmp_path / "a.svs"])


@pytest.mark.parametrize("downsample", ["nan", "inf", "0"])
def test_a_level_of_an_impossible_scale_is_refused(fake: Path, downsample: str, tmp_path: Path) -> None:
    write_fake(fake, downsample=downsample)
    (tmp_path / "a.svs").write_bytes(b"x")
    with pytest.raises(BadPair, match="times smaller than level 0"):
        SlideFile([tmp_path / "a.svs"])


@pytest.mark.parametrize(("colour", "expected"), [(None, 255), ("102030", (16, 32, 48)), ("nothing", 255)])
def test_pixels_that_were_not_scanned_have_the_colour_of_the_background(
    fake: Path, colour: str | None, expected: Any, tmp_path: Path
) -> None:
    write_fake(fake, properties={"openslide.background-color": colour} if colour else {})
    (tmp_path / "a.svs").write_bytes(b"x")
    found = numbers([tmp_path / "a.svs"])
    assert (found[:, ::2] == expected).all()
    assert (found[:, 1::2] == 200).all()


def test_without_openslide_the_build_names_the_extra_once(raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (raw / "images/b.svs").write_bytes(b"x")
    (raw / "labels/b.tif").write_bytes((raw / "labels/a.tif").read_bytes())
    monkeypatch.setitem(sys.modules, "openslide", None)
    opened_slide.library.cache_clear()
    for command in (["build", str(raw), str(raw.parent / "out"), *OPTIONS], ["probe", str(raw)]):
        assert call(command, 2).count("pip install 'segpack[slides]'") == 1
    opened_slide.library.cache_clear()


def test_a_level_of_other_pictures_is_refused(raw: Path) -> None:
    (raw / "images/a.svs").unlink()
    (raw / "images/a.tif").write_bytes((raw / "labels/a.tif").read_bytes())
    for command in (["build", str(raw), str(raw.parent / "out")], ["build", "--from", str(raw), str(raw.parent / "o")]):
        assert "only slides have levels" in call([*command, *OPTIONS, "--slide-level", "1"], 2)


def test_a_change_in_the_folder_of_a_mirax_slide_is_seen(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a.mrxs").write_bytes(b"x")
    data = tmp_path / "a/Data0000.dat"
    source, ref = FolderSource(tmp_path), RowRef("all", "a", ("a.mrxs", ""))
    assert "the folder a, which is not there" in str(source.load(ref).bad)
    facts: list[tuple[object, object]] = []
    for content in (b"1", b"2"):
        data.write_bytes(content)
        os.utime(data, ns=(len(facts), 10))
        facts.append((source.states([ref]).tolist(), list(source.identities([ref]))))
    data.rename(tmp_path / "a/Data0001.dat")
    facts.append((source.states([ref]).tolist(), list(source.identities([ref]))))
    states, identities = zip(*facts, strict=True)
    assert states[0] != states[1]
    assert len({str(each) for each in identities}) == 3


def test_slides_are_not_volumes_and_nothing_is_painted_on_them(fake: Path, raw: Path) -> None:
    write_fake(fake)
    arguments = ["build", str(raw), str(raw.parent / "out")]
    assert "--volumes: slides are pictures" in call([*arguments, "--volumes"], 2)
    sides = {"version": "5", "imageHeight": 3, "imageWidth": 4}
    shape = {"label": "road", "shape_type": "polygon", "points": [[0, 0], [9, 0], [9, 9]]}
    (raw / "labels/a.json").write_text(json.dumps({"shapes": [shape], "imagePath": "a.svs", **sides}))
    painted = call([*arguments, "--image", "images/{key}", "--annotations", "labels/{key}.json"], 2)
    assert "labels are not painted on slides" in painted


def test_slides_in_a_store_or_a_tar_are_refused(raw: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        tar.add(raw / "images/a.svs", "a.svs")
        tar.add(raw / "labels/a.tif", "a.seg.tif")
    told = call(["build", "--from", str(tmp_path / "a.tar"), str(tmp_path / "out"), *OPTIONS], 1)
    assert "has the slide a.svs, which openslide reads from a folder alone" in told
    store = fsspec.filesystem("memory")
    store.put(str(raw), "/slides", recursive=True)
    for command in (["build", "memory://slides", str(tmp_path / "out"), *OPTIONS], ["probe", "memory://slides"]):
        assert "slides are not read from a store" in call(command, 2)


@pytest.mark.parametrize("suffix", SLIDES)
def test_every_suffix_of_slides_has_pairs(suffix: str, fake: Path, tmp_path: Path) -> None:
    write_fake(fake, ((400, 603),))
    for name in (f"images/a{suffix}", "images/a/Data.dat", "labels/a.tif"):
        (tmp_path / "raw" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "raw" / name).write_bytes(b"x")
    write_tiff(tmp_path / "raw/labels/a.tif", (603, 400), label_lines((603, 400)))
    pack(tmp_path / "raw", tmp_path / "out", *OPTIONS)
