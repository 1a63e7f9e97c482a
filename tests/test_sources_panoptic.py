"""COCO panoptic: segments that a JSON file lists, and PNGs with their ids, become labels and objects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import errors_of, json_of, opencv_rgb, pack, run, write_png
from handmade import chunk, exif, png
from numpy.typing import NDArray

from packer.annotations import panoptic
from packer.annotations.paint import Brush, Canvas
from packer.errors import BadPair
from packer.recipe.row_ref import RowRef
from packer.sources.annotated.annotated import PaintedField
from packer.sources.annotated.indexed import IndexedSource
from packer.sources.annotated.indexed_files import IndexedFiles
from packer.sources.files.folder import FolderSource
from readers import open_dataset
from readers.contract.kinds import CLASSES
from readers.contract.manifest import Manifest
from readers.contract.shard_table import ShardTable

pytestmark = pytest.mark.usefixtures("in_process")
SIZE = (24, 36)
CATEGORIES = [
    {"id": 184, "name": "tree", "isthing": 0, "color": [107, 142, 35]},
    {"id": 1, "name": "person", "isthing": 1, "color": [220, 20, 60]},
]
OPTIONS = ("--annotations", "annotations/panoptic_train2017.json", "--image", "train2017/{key}.png")
SHARDS = (*OPTIONS, "--shard-size", "3KB")
FILE = "annotations/panoptic_train2017.json"
PERSON, CROWD, TREE, GONE = 3_226_956, 65_793, 16_777_215, 77
Segment = dict[str, Any]


def segment(number: Any, category: Any, crowd: int = 0) -> Segment:
    return {"id": number, "category_id": category, "area": 1, "bbox": [0, 0, 1, 1], "iscrowd": crowd}


OUTLINES = {
    "categories": CATEGORIES,
    "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "segmentation": [[0, 0, 9, 0, 9, 9]]}],
}
SEGMENTS = [segment(TREE, 184), segment(PERSON, 1), segment(CROWD, 1, 1), segment(GONE, 1)]


def id2rgb(ids: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the colours of ids: red + 256 green + 65536 blue."""
    return np.stack([ids % 256, ids // 256 % 256, ids // 65536], -1).astype(np.uint8)


def ids_of(shift: int = 0) -> NDArray[np.int64]:
    """Return ids of which 12 belong to no segment, and 36 are void."""
    ids = np.full(SIZE, TREE)
    ids[4:10, 2 + shift : 9 + shift] = PERSON
    ids[20:, 30:] = CROWD
    ids[0], ids[1, :12] = 0, 5
    return ids


def panoptic_folder(raw: Path, segments: list[Segment] | None = None, **lists: Any) -> Path:
    names = {7: "a", 5: "b", 9: "c"}
    for number, key in names.items():
        rng = np.random.default_rng(number)
        write_png(raw / f"train2017/{key}.png", rng.integers(0, 256, (*SIZE, 3), np.uint8))
        write_png(raw / f"annotations/panoptic_train2017/{key}.png", id2rgb(ids_of(number)))
    images = [{"id": number, "file_name": f"{key}.png", "height": 24, "width": 36} for number, key in names.items()]
    listed = SEGMENTS if segments is None else segments
    annotations = [
        {"image_id": number, "file_name": f"{key}.png", "segments_info": listed} for number, key in names.items()
    ]
    facts = {"images": images, "annotations": annotations, "categories": CATEGORIES, **lists}
    (raw / FILE).write_text(json.dumps(facts))
    return raw


def fields_of(out: Path, row: int = 0) -> list[NDArray[Any]]:
    return [np.asarray(each) for each in open_dataset(out, "all", label="index", fields=("label", "instance"))[row]]


def shards(out: Path) -> list[str]:
    table = ShardTable.open(out, Manifest.load(out))
    return [table.fingerprint(number) for number in range(len(table))]


def painted(segments: list[Segment], ids: NDArray[Any], numbers: Mapping[str, int]) -> Canvas:
    picture = json.dumps({"id": 1, "file_name": "a.jpg"}).encode()
    annotation = json.dumps({"image_id": 1, "file_name": "a.png", "segments_info": segments}).encode()
    found = panoptic.read(picture, [annotation], {1: "person", 184: "tree"}, ids.astype(np.uint32))
    assert found.size is not None
    return Canvas(found, found.size, Brush(numbers))


def test_segments_become_labels_and_objects(tmp_path: Path) -> None:
    out = pack(panoptic_folder(tmp_path / "raw"), tmp_path / "out", *OPTIONS, "--field", "instance=ids")
    classes = Manifest.load(out).classes
    assert classes is not None
    assert classes.names == ("background", "person", "tree")
    ids = ids_of(7)
    expected = np.select([ids == TREE, np.isin(ids, [PERSON, CROWD])], [2, 1])
    objects = np.select([ids == TREE, ids == PERSON, ids == CROWD], [1, 2, 3])
    label, instance = fields_of(out)
    np.testing.assert_array_equal(label, expected)
    np.testing.assert_array_equal(instance, objects)
    assert run("verify", "--deep", out).exit_code == 0


def test_pngs_with_ids_are_not_pictures(tmp_path: Path) -> None:
    raw = panoptic_folder(tmp_path / "raw")  # its pictures and its PNGs have the same names
    out = pack(raw, tmp_path / "out", *OPTIONS[:2])
    assert len(open_dataset(out, "all")) == 3
    facts = json_of("probe", "--json", raw)
    assert (facts["annotations"], facts["objects"]) == (FILE, {"person": 9, "tree": 3})
    (raw / "objects.json").write_text(json.dumps({"images": [{"id": 1, "file_name": "a.png"}], **OUTLINES}))
    assert json_of("probe", "--json", raw)["annotations"] == "objects.json"
    (raw / "train2017").rename(raw / "elsewhere")
    (raw / FILE).rename(raw / "annotations/segments.json")
    for file in (raw / "annotations/panoptic_train2017").iterdir():
        file.rename(raw / "annotations" / file.name)
    again = pack(raw, tmp_path / "again", "--annotations", "annotations/segments.json")
    assert len(open_dataset(again, "all")) == 3
    for row in range(3):
        before, after = (open_dataset(each, "all", label="index")[row][1] for each in (out, again))
        np.testing.assert_array_equal(before, after)


def test_ids_are_of_the_picture_before_exif_turns_it(tmp_path: Path) -> None:
    raw = panoptic_folder(tmp_path / "raw")
    for folder in ("train2017", "annotations/panoptic_train2017"):  # a PNG of ids is never turned itself
        stored = opencv_rgb((raw / folder / "a.png").read_bytes())
        (raw / folder / "a.png").write_bytes(png(stored.reshape(24, -1), 8, 2, chunk(b"eXIf", exif(6))))
    out = pack(raw, tmp_path / "out", *OPTIONS, "--size", "native")
    label = np.asarray(open_dataset(out, "all", label="index")[0][1])
    np.testing.assert_array_equal(label == 2, np.rot90(ids_of(7) == TREE, -1))


def test_what_is_lost_is_counted(tmp_path: Path) -> None:
    raw = panoptic_folder(tmp_path / "raw", [*SEGMENTS, segment(9, 999)])
    facts = json_of("build", "--json", "--crowd", "ignore", *OPTIONS, raw, tmp_path / "out")
    assert facts["note_totals"] == {
        "objects painted": 9,
        "objects without a pixel": 3,
        "objects of a category that the file does not list": 3,
        "pixels of no segment": 36,
    }
    label = np.asarray(open_dataset(tmp_path / "out", "all", label="index")[0][1])
    assert (label[ids_of(7) == CROWD] == 255).all()


def test_colours_are_ids_as_in_panopticapi() -> None:
    random = np.random.default_rng(0)
    colours = random.integers(0, 256, (6, 3))
    color = colours[random.integers(0, 6, (40, 50))].astype(np.uint8)
    color = color.astype(np.int32)  # from here on as panopticapi.utils.rgb2id has it
    ids = color[:, :, 0] + 256 * color[:, :, 1] + 256 * 256 * color[:, :, 2]
    listed = np.unique(ids)[::-1]
    canvas = painted([segment(int(each), 1) for each in listed], ids, {"person": 1})
    np.testing.assert_array_equal(listed[canvas.ids().astype(int) - 1], ids)
    assert canvas.overlap == 0
    assert canvas.notes() == ()


def test_windows_are_found_in_strips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panoptic, "STRIP", 100)
    ids = np.random.default_rng(1).integers(0, 300, (40, 30))
    ids[30:] = 7
    canvas = painted([segment(each, 1) for each in range(1, 300)], ids, {"person": 1})
    np.testing.assert_array_equal(canvas.ids(), ids)


def test_ids_that_no_colour_can_be_have_no_pixel() -> None:
    ids = np.array([[0, 1, 2, 2]])
    odd = [segment(number, 1) for number in (0, -1, 1 << 24, (1 << 24) + 1, 1 << 80, 2.0)]
    canvas = painted(odd, ids, {"person": 1})
    assert canvas.label().tolist() == [[0, 0, 1, 1]]
    assert canvas.notes() == ("5 objects without a pixel", "1 pixel of no segment")


@pytest.mark.parametrize(
    ("segments", "words"),
    [
        ([segment(3, 1), segment(4, 1), segment(3, 184)], "has two segments with the id 3"),
        ([segment("3", 1)], "has a segment whose id is a text"),
        ([segment(None, 1)], "neither a whole number nor a text"),
        ([segment(3, [1])], "neither a whole number nor a text"),
        ([3], "segments_info that is not a list of tables"),
        ([{}] * 65_536, "has 65536 segments"),
    ],
)
def test_damaged_segments_are_refused(segments: list[Any], words: str) -> None:
    with pytest.raises(BadPair, match=words):
        painted(segments, np.zeros((2, 2), int), {"person": 1})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"file_name": "../a.png"}, "has a PNG that is not below its folder: '../a.png'"),
        ({"file_name": "/a.png"}, "has a file_name of a PNG that is not one"),
        ({"file_name": None}, "has a file_name of a PNG that is not one"),
        ({"segments_info": {}}, "segments_info that is not a list of tables"),
        ({"image_id": 7}, "has two annotations of one picture: a.png and b.png"),
    ],
)
def test_damaged_files_stop_the_plan(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    raw = panoptic_folder(tmp_path / "raw")
    facts = json.loads((raw / FILE).read_text())
    facts["annotations"][1] |= change
    (raw / FILE).write_text(json.dumps(facts))
    assert words in errors_of(1, "build", *OPTIONS, raw, tmp_path / "out")
    del facts["annotations"][1]["segments_info"]
    (raw / FILE).write_text(json.dumps(facts))
    assert "has no segments_info" in run("build", *OPTIONS, raw, tmp_path / "out").stderr


@pytest.mark.parametrize(
    ("pixels", "words"),
    [
        (None, "panoptic_train2017/b.png: cannot be read (No such file or directory)"),
        (id2rgb(ids_of())[1:], "b.png: is 23x36, and its annotation is of a picture of 24x36 (height x width)"),
        (ids_of().astype(np.uint8), "b.png: has the type PNG gray, 8 bits; ids of segments are in RGB with 8 bits"),
    ],
)
def test_a_damaged_png_is_named_by_the_plan(tmp_path: Path, pixels: NDArray[Any] | None, words: str) -> None:
    raw = panoptic_folder(tmp_path / "raw")
    file = raw / "annotations/panoptic_train2017/b.png"
    file.unlink()
    if pixels is not None:
        write_png(file, pixels)
    planned = run("build", "--dry-run", *OPTIONS, raw, tmp_path / "out")
    assert words in planned.stdout + planned.stderr
    pack(raw, tmp_path / "out", *OPTIONS, "--on-bad", "skip")
    assert len(open_dataset(tmp_path / "out", "all")) == 2


def test_one_changed_png_builds_one_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = panoptic_folder(tmp_path / "raw")
    out = pack(raw, tmp_path / "out", *SHARDS)
    assert len(shards(out)) == 3
    assert "3 reused" in run("build", *SHARDS, raw, out).stdout
    file = raw / "annotations/panoptic_train2017/b.png"
    write_png(file, id2rgb(ids_of(1)))
    assert "2 reused" in run("build", *SHARDS, raw, out).stdout
    assert shards(out) == shards(pack(raw, tmp_path / "fresh", *SHARDS))
    file.touch()
    assert "3 reused" in run("build", *SHARDS, raw, out).stdout


def test_a_png_is_identified_as_it_is_read(tmp_path: Path) -> None:
    raw = panoptic_folder(tmp_path / "raw")
    files = FolderSource(raw, templates=("", ""))
    brush = Brush({"person": 1, "tree": 2})
    fields = (PaintedField(1, CLASSES),)
    source = IndexedSource(files, "panoptic", fields, brush, indexed=IndexedFiles.at(raw, [FILE]))
    ref = RowRef("all", "a", ("train2017/a.png", f"{FILE}#a.png"))
    before, state = list(source.identities([ref])), source.states([ref])
    assert source.load(ref).identities == before[0]
    ids = ids_of(2)
    ids[12:] = np.random.default_rng(0).integers(1, 1 << 24, (12, 36))
    write_png(raw / "annotations/panoptic_train2017/a.png", id2rgb(ids))
    loaded = source.load(ref)
    assert loaded.identities == next(iter(source.identities([ref]))) != before[0]
    assert (np.asarray(loaded.data[1])[5, 4:11] == 1).all()
    assert (source.states([ref])[0, 3:] != state[0, 3:]).all()  # the size and both times
