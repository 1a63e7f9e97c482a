"""A pack as a source, with fields of every kind and rows that lack some: each field of each row stays as it is."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from any_pack import NAMES, write_any_pack
from conftest import errors_of, good, json_of, pack, run, scene, write_png
from drills.band_files import blocks_tiff
from drills.published import same
from test_sources_pack import converted

from packer import build_pack
from packer.packs.generations import receipt_paths
from packer.pixels.field_options import FieldOptions, PictureField
from packer.plan.make_plan import make_plan
from packer.plan.request import request_of
from packer.sources.pack import PackSource
from readers import open_dataset
from readers.contract.kinds import PICTURE
from readers.contract.manifest import STORAGES, Manifest
from readers.contract.receipt import Receipt

pytestmark = pytest.mark.usefixtures("in_process")

Sums = dict[tuple[str, str], dict[str, int]]
DEPTH = '{"name": "depth", "kind": "values", "from": "depth/{key}.png", "invalid": 0, "scale": 0.001}'
MILLIMETRES = '{"name": "millimetres", "kind": "values", "from": "millimetres/{key}.png"}'
COARSE = '{"name": "coarse", "kind": "classes", "from": "coarse/{key}.png", "classes": ["a", "b", "c", "d"]}'
PARTS = '{"name": "parts", "kind": "multilabel", "from": "parts/{class}/{key}.png", "classes": ["wheel", "door"]}'
BITS = '{"name": "bits", "kind": "multilabel", "from": "bits/{class}/{key}.png", "classes": ["wheel"], "form": "bits"}'
FIELDS = (
    DEPTH,
    MILLIMETRES,
    COARSE,
    PARTS,
    BITS,
    "instance=ids:inst/{key}.png",
    "second=picture:second/{key}.png",
    '{"name": "gray", "kind": "picture", "from": "gray/{key}.png", "bands": "gray"}',
)
OPTIONS = ("--classes", "4", "--shard-size", "200KB", *(text for field in FIELDS for text in ("--field", field)))
BANDS = ("--bands", "all", "--image", "tiles/{key}.tif", "--label", "masks/{key}.png")
KEYS = [f"a{number}" for number in range(8)]


def make_kinds(folder: Path) -> Path:
    """Write a folder with files for fields of every kind."""
    rng = np.random.default_rng(0)
    for number, key in enumerate(KEYS):
        image, label = scene(number, 24, 36)
        row = {"images": image, "masks": label, "coarse": label, "second": image[::-1]}
        row["depth"] = rng.integers(0, 9000, (24, 36), np.uint16) * rng.integers(0, 2, (24, 36), np.uint16)
        row |= dict.fromkeys(("millimetres", "gray"), row["depth"])
        row["inst"] = rng.integers(0, 1 << 16, (24, 36), np.uint16)
        row |= {f"parts/{part}": rng.integers(0, 2, (24, 36), np.uint8) * np.uint8(255) for part in ("wheel", "door")}
        row["bits/wheel"] = row["parts/wheel"][::-1]
        for name, pixels in row.items():
            (folder / name).mkdir(parents=True, exist_ok=True)
            write_png(folder / name / f"{key}.png", pixels)
        (folder / "tiles").mkdir(exist_ok=True)
        (folder / f"tiles/{key}.tif").write_bytes(blocks_tiff(rng.integers(0, 10_000, (24, 36, 12), np.uint16)))
    return folder


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_kinds(tmp_path_factory.mktemp("kinds") / "raw")


@pytest.fixture(scope="module")
def source(raw: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack of all kinds of fields. Some rows have no label, others no depth."""
    folder = tmp_path_factory.mktemp("lacking")
    shutil.copytree(raw, folder / "raw")
    for lacking in ("masks/a1.png", "masks/a5.png", "depth/a2.png", "inst/a2.png"):
        (folder / "raw" / lacking).unlink()
    return pack(folder / "raw", folder / "in", *OPTIONS, *BANDS, "--missing", "keep")


def sums_of(out: Path) -> Sums:
    """The checksum of each field of each row."""
    found: Sums = {}
    for path in receipt_paths(out, Manifest.load(out)):
        receipt = Receipt.load(path)
        for key, sums in zip(receipt.keys, receipt.row_checksums, strict=True):
            found[receipt.split, key] = dict(zip(receipt.fields, sums, strict=True))
    return found


def convert(source: Path, out: Path, *options: object) -> Path:
    good("build", "--quiet", "--workers", "1", *options, "--from", source, out)
    return out


def check_equal(before: Path, after: Path) -> None:
    """Check that two packs have the same fields, statistics and parts, and rows of equal bytes."""
    first, second = Manifest.load(before), Manifest.load(after)
    assert second.fields == first.fields
    assert second.statistics == first.statistics
    assert [[(part.fields, part.rows) for part in split.parts] for split in second.splits] == [
        [(part.fields, part.rows) for part in split.parts] for split in first.splits
    ]
    assert sums_of(after) == sums_of(before)
    assert run("verify", "--deep", after).exit_code == 0


def is_next(case: dict[str, Any]) -> bool:
    """8 of the 32 cases: each format is read and written, with rows of one size and of many, and to itself."""
    step = STORAGES.index(case["to"]) - STORAGES.index(case["storage"])
    return step % len(STORAGES) == int(case["varied"])


@pytest.mark.long(short=is_next)
@pytest.mark.parametrize("varied", [False, True])
@pytest.mark.parametrize("to", STORAGES)
@pytest.mark.parametrize("storage", STORAGES)
def test_fields_of_every_kind_and_type_become_equal_rows_of_any_format(
    tmp_path: Path, storage: str, to: str, varied: bool
) -> None:
    write_any_pack(tmp_path / "in", storage, varied)
    converted(PackSource.at(tmp_path / "in"), tmp_path / "out", to, labels="index", size="native" if varied else None)
    check_equal(tmp_path / "in", tmp_path / "out")
    notes = [note for path in (tmp_path / "out/shards").glob("*.receipt.json") for note in Receipt.load(path).notes]
    assert [note.text for note in notes] == ["2 polygons cover no pixel"]


@pytest.mark.parametrize("to", STORAGES)
def test_what_is_not_named_stays_as_it_is(source: Path, tmp_path: Path, to: str) -> None:
    check_equal(source, convert(source, tmp_path / "out", "--format", to))
    again = json_of("build", "--json", "--format", to, "--from", source, tmp_path / "out")
    assert again["reused_rows"] == len(KEYS)
    assert run("diff", source, tmp_path / "out").exit_code == 0


FITS = ("stretch", "letterbox", "crop-or-pad", "shorter-side", "tile")
SIZES = ("12x18", "11x40", "40x30")
CHOICES = (BANDS, ("--bands", "rgb"), ("--bands", "3,1"), ())


@pytest.fixture(scope="module", params=CHOICES)
def chosen(
    raw: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> tuple[Path, tuple[str, ...]]:
    """A pack of the folder with these bands."""
    options = tuple(request.param)
    return pack(raw, tmp_path_factory.mktemp("chosen") / "in", *OPTIONS, *options), options


@pytest.mark.long(every=7)
@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("size", SIZES)
def test_another_size_is_that_of_the_same_files(
    raw: Path, tmp_path: Path, chosen: tuple[Path, tuple[str, ...]], fit: str, size: str
) -> None:
    before, options = chosen
    changed = "--size", size, "--fit", fit, "--labels", "index"
    expected = pack(raw, tmp_path / "expected", *OPTIONS, *options, *changed)
    check_equal(expected, convert(before, tmp_path / "out", *changed))


def test_a_pack_without_a_label_is_converted(raw: Path, tmp_path: Path) -> None:
    named: list[FieldOptions] = [PictureField(files="images/{key}.png"), PictureField("second", "second/{key}.png")]
    before = tmp_path / "in"
    assert build_pack(raw, before, fields=named).rows == len(KEYS)
    check_equal(before, convert(before, tmp_path / "out", "--format", "arrow", "--labels", "index"))
    small = open_dataset(convert(before, tmp_path / "small", "--size", "6x9", "--image-dtype", "float32"))
    assert [(field.name, field.dtype) for field in small.fields] == [("image", "<f4"), ("second", "|u1")]


def test_after_a_label_arrived_the_pack_is_that_of_a_fresh_build(tmp_path: Path) -> None:
    raw = make_kinds(tmp_path / "raw")
    (raw / "masks/a1.png").rename(tmp_path / "a1.png")
    options = *OPTIONS, *BANDS, "--missing", "keep"
    before = pack(raw, tmp_path / "in", *options)
    out = convert(before, tmp_path / "out", "--shard-size", "40KB")
    (tmp_path / "a1.png").rename(raw / "masks/a1.png")
    (raw / "depth/a3.png").unlink()
    pack(raw, before, *options)
    difference = json_of("diff", "--json", before, out)["changed_fields"]
    assert difference == {"all/a1": ["label"], "all/a3": ["depth"]}
    convert(before, out, "--shard-size", "40KB")
    assert same(out, convert(before, tmp_path / "fresh", "--shard-size", "40KB"))
    check_equal(before, out)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_field_is_named(tmp_path: Path, name: str) -> None:
    rows = write_any_pack(tmp_path / "in", "npy")
    path = next((tmp_path / "in/shards").glob(f"val-*.{name}.npy"))
    data = bytearray(path.read_bytes())
    data[-1] ^= 0xFF
    path.write_bytes(data)
    summary = converted(PackSource.at(tmp_path / "in"), tmp_path / "out", skip=True, labels="index")
    ((split, key, reason),) = summary.rejects
    assert reason == f"{split}/{key}: its {name} does not have its checksum"
    assert summary.rows == len(rows) - 1


@pytest.mark.parametrize("field", ["half", "single", "label", "onehot", "parts", "planes", "depth"])
def test_impossible_numbers_are_refused_although_the_checksum_is_right(tmp_path: Path, field: str) -> None:
    write_any_pack(tmp_path / "in", "npy")
    for path in (tmp_path / "in/shards").glob(f"val-*.{field}.npy"):
        stored: Any = np.load(path)
        stored[...] = np.inf if stored.dtype.kind == "f" else 200
        data = path.read_bytes()[: -stored.nbytes] + stored.tobytes()
        path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("packer.sources.pack.crc32", lambda data: _Any())
        summary = converted(PackSource.at(tmp_path / "in"), tmp_path / "out", skip=True, labels="index")
    assert {split for split, _, _ in summary.rejects} == {"val"}
    assert len(summary.rejects) == 6


class _Any:
    """Is equal to every number."""

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--bands", "all"), "--bands: says how files are read, but"),
        (("--field", "depth=values:depth/{key}.png"), "--field: says how files are read, but"),
        (("--missing", "keep"), "--missing: pairs the files of a folder"),
        (("--image-dtype", "float32"), "--image-dtype float32: this pack has images of uint16 as they"),
    ],
)
def test_wrong_usage_says_what_to_do(source: Path, tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    assert message in errors_of(2, "build", "--quiet", *options, "--from", source, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_plan_knows_the_fields_and_bytes(source: Path, tmp_path: Path) -> None:
    plan = make_plan(request_of(PackSource.at(source), tmp_path / "out"))
    assert [field.name for field in plan.recipe.fields] == [field.name for field in Manifest.load(source).fields]
    assert plan.recipe.fields[0].kind == PICTURE
    assert plan.unlabelled == 2
