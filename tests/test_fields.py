"""Builds of named fields from a folder: bands, further files, missing fields, and packs without a label."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from conftest import REPO, errors_of, good, json_of, pack, run, scene, write_png
from drills.band_files import blocks_tiff
from handmade import png
from numpy.typing import NDArray

from packer import (
    ClassesField,
    IdsField,
    InputError,
    MultilabelField,
    PictureField,
    Rows,
    UsageError,
    ValuesField,
    build_pack,
)
from packer.bench.cached_share import cached_share
from packer.config.field_tables import format_field, parse_field
from packer.pixels.field_options import FieldOptions
from readers import open_dataset
from readers.contract.manifest import STORAGES, Manifest
from readers.pack import Pack

pytestmark = pytest.mark.usefixtures("in_process")

Fields = dict[str, dict[str, NDArray[Any]]]
KEYS = [f"a{number}" for number in range(6)]
PARTS = ("wheel", "door")
DEPTH = '{"name": "depth", "kind": "values", "from": "depth/{key}.png", "invalid": 0, "scale": 0.001}'
WHEELS = '{"name": "parts", "kind": "multilabel", "from": "parts/{class}/{key}.png", "classes": ["wheel", "door"]}'
SATELLITE = ("--image", "tiles/{key}.tif", "--label", "masks/{key}.png", "--classes", "4")


@pytest.fixture
def raw(tmp_path: Path) -> tuple[Path, Fields]:
    """Return a folder of rows with all kinds of files, and their pixels by key and field."""
    rng, fields, folder = np.random.default_rng(0), dict[str, dict[str, NDArray[Any]]](), tmp_path / "raw"
    for number, key in enumerate(KEYS):
        image, label = scene(number, 24, 36)
        row = {
            "images": image,
            "masks": label,
            "depth": rng.integers(0, 9000, (24, 36), np.uint16),
            "inst": rng.integers(0, 1 << 16, (24, 36), np.uint16),
            **{f"parts/{part}": rng.integers(0, 2, (24, 36), np.uint8) * np.uint8(255) for part in PARTS},
        }
        for name, pixels in row.items():
            (folder / name).mkdir(parents=True, exist_ok=True)
            write_png(folder / name / f"{key}.png", pixels)
        row["tiles"] = rng.integers(0, 10_000, (24, 36, 12), np.uint16)
        (folder / "tiles").mkdir(exist_ok=True)
        (folder / "tiles" / f"{key}.tif").write_bytes(blocks_tiff(row["tiles"]))
        fields[key] = row
    return folder, fields


def test_a_band_of_another_name_is_bad_before_the_build_and_in_it(tmp_path: Path) -> None:
    for number in range(3):
        for name, shape in (("images", (8, 9, 3) if number else (8, 9)), ("labels", (8, 9))):
            (tmp_path / "in" / name).mkdir(parents=True, exist_ok=True)
            write_png(tmp_path / "in" / name / f"{number}.png", np.zeros(shape, np.uint8))
    options = "--classes", 1, "--bands", "1", "--size", "8x9", "--on-bad", "skip"
    plan = json_of("build", "--dry-run", "--json", *options, tmp_path / "in", tmp_path / "out")
    assert (plan["rows"], len(plan["rejects"])) == (2, 1)
    built = run("build", *options, tmp_path / "in", tmp_path / "out")
    assert "images/0.png: has the bands gray, and other files have red\n" in built.stderr
    assert len(open_dataset(tmp_path / "out")) == 2


@pytest.mark.parametrize("options", [("--bands", "all"), ("--bands", "gray", "--image-range", "0,15")])
def test_pictures_of_other_few_bits_are_bad_by_name(options: tuple[str, ...], tmp_path: Path) -> None:
    """15 is white in 4 bits and nearly black in 8."""
    numbers = np.arange(64, dtype=np.uint8).reshape(8, 8)
    for key, bits in {"a": 8, "b": 8, "c": 4}.items():
        picture = tmp_path / "raw" / "images" / f"{key}.png"
        write_png(picture, numbers)
        if bits == 4:
            picture.write_bytes(png(numbers[:, :4], 4, 0))
        write_png(tmp_path / "raw" / "labels" / f"{key}.png", numbers % 2)
    refused = run("build", "--classes", "2", *options, tmp_path / "raw", tmp_path / "out")
    assert "images/c.png: has 1 band of 4 bits, while most files have 1 band" in refused.stderr


@pytest.mark.parametrize("storage", STORAGES)
def test_bands_are_stored_as_they_are(raw: tuple[Path, Fields], tmp_path: Path, storage: str) -> None:
    folder, fields = raw
    out = pack(folder, tmp_path / "out", *SATELLITE, "--bands", "all", "--format", storage)
    train = open_dataset(out)
    for row, key in enumerate(KEYS):
        assert np.array_equal(train[row][0], fields[key]["tiles"].transpose(2, 0, 1))
    assert np.allclose(train.mean, np.mean([fields[key]["tiles"] for key in KEYS], (0, 1, 2)))
    some = open_dataset(pack(folder, tmp_path / "some", *SATELLITE, "--bands", "4,3,2", "--format", storage))
    assert np.array_equal(some[0][0], fields["a0"]["tiles"][..., [3, 2, 1]].transpose(2, 0, 1))
    assert run("verify", "--deep", out).exit_code == 0


def test_gray_is_one_plane_and_a_range_makes_numbers_from_0_to_1(raw: tuple[Path, Fields], tmp_path: Path) -> None:
    folder, fields = raw
    options = ("--image", "depth/{key}.png", "--label", "masks/{key}.png", "--classes", "4", "--bands", "gray")
    gray = open_dataset(pack(folder, tmp_path / "gray", *options))
    assert np.array_equal(gray[0][0][0], fields["a0"]["depth"])
    ranged = pack(folder, tmp_path / "ranged", *options, "--image-range", "0,9000", "--image-dtype", "float32")
    assert np.allclose(open_dataset(ranged)[0][0][0], fields["a0"]["depth"] / np.float32(9000))
    errors = errors_of(2, "build", *options, "--image-dtype", "float32", folder, tmp_path / "refused")
    assert "hold uint16; leave it out, or give --image-range" in errors


def test_a_picture_of_other_bands_is_bad_by_name(raw: tuple[Path, Fields], tmp_path: Path) -> None:
    folder, fields = raw
    (folder / "tiles" / "a0.tif").write_bytes(blocks_tiff(fields["a0"]["tiles"][..., :5]))
    (folder / "tiles" / "a4.tif").write_bytes(blocks_tiff(fields["a4"]["tiles"].astype(np.float32)))
    refused = run("build", *SATELLITE, "--bands", "all", folder, tmp_path / "out")
    assert "tiles/a0.tif: has 5 bands of uint16, while most files have 12 bands of uint16" in refused.stderr
    assert "tiles/a4.tif: has 12 bands of float32, while most files have 12 bands of uint16" in refused.stderr
    pack(folder, tmp_path / "out", *SATELLITE, "--bands", "all", "--on-bad", "skip")
    assert len(open_dataset(tmp_path / "out")) == len(KEYS) - 2


@pytest.mark.parametrize("storage", STORAGES)
def test_further_fields_are_exact(raw: tuple[Path, Fields], tmp_path: Path, storage: str) -> None:
    folder, fields = raw
    options = ("--classes", "4", "--field", DEPTH, "--field", "instance=ids:inst/{key}.png", "--field", WHEELS)
    out = pack(folder, tmp_path / "out", *options, "--format", storage)
    train = open_dataset(out, fields=("image", "label", "depth", "instance", "parts"), label="index")
    for row, key in enumerate(KEYS):
        image, label, depth, instance, parts = (field.numpy() for field in train[row])
        expected = fields[key]
        measured = np.where(expected["depth"] == 0, np.nan, expected["depth"] * 0.001).astype(np.float32)
        assert np.array_equal(image, expected["images"].transpose(2, 0, 1))
        assert np.array_equal(label, expected["masks"])
        assert np.array_equal(depth, measured, equal_nan=True)
        assert np.array_equal(instance, expected["inst"])
        assert np.array_equal(parts, np.stack([expected[f"parts/{part}"] > 0 for part in PARTS]))
    assert run("verify", "--deep", out).exit_code == 0
    again = json_of("build", "--json", *options, "--format", storage, folder, out)
    assert again["reused_rows"] == len(KEYS)


def test_python_options_and_a_configuration_make_the_same_pack(raw: tuple[Path, Fields], tmp_path: Path) -> None:
    folder, _ = raw
    options = ("--classes", "4", "--field", DEPTH, "--field", "instance=ids:inst/{key}.png", "--field", WHEELS)
    command = pack(folder, tmp_path / "command", *options)
    named: list[FieldOptions] = [
        ValuesField("depth", "depth/{key}.png", invalid=0, scale=0.001),
        IdsField("instance", "inst/{key}.png"),
        MultilabelField("parts", "parts/{class}/{key}.png", classes=PARTS),
    ]
    summary = build_pack(folder, tmp_path / "python", classes=4, fields=named)
    configured = pack(folder, tmp_path / "configured", "--config", command / "packer.toml")
    tables = {Manifest.load(out).table for out in (command, configured)} | {summary.manifest.table}
    assert len(tables) == 1
    assert run("diff", folder, command).exit_code == 0


def test_a_row_may_lack_a_further_field(raw: tuple[Path, Fields], tmp_path: Path) -> None:
    folder, fields = raw
    (folder / "depth" / "a2.png").unlink()
    options = ("--classes", "4", "--field", "depth=values:depth/{key}.png")
    (folder / "depth" / "b2.png").write_bytes((folder / "depth" / "a1.png").read_bytes())
    errors = errors_of(1, "build", *options, folder, tmp_path / "out")
    assert "images/a2.png: has no depth" in errors
    assert "--missing keep packs rows that lack a field" in errors
    plan = run("build", "--dry-run", "--missing", "skip", *options, folder, tmp_path / "out").stdout
    assert "1 file of depth without an image: depth/b2.png" in plan
    assert len(open_dataset(pack(folder, tmp_path / "skipped", *options, "--missing", "skip"))) == len(KEYS) - 1
    kept = open_dataset(pack(folder, tmp_path / "kept", *options, "--missing", "keep"), fields=("image", "depth"))
    depths = {kept.key(row): kept[row][1].numpy() for row in range(len(kept))}
    assert not depths["a2"].any()
    assert all(np.array_equal(depths[key], fields[key]["depth"]) for key in KEYS if key != "a2")
    write_png(folder / "depth" / "a2.png", fields["a2"]["depth"])
    summary = json_of("build", "--json", *options, "--missing", "keep", folder, tmp_path / "kept")
    assert Manifest.load(tmp_path / "kept").table == Manifest.load(pack(folder, tmp_path / "fresh", *options)).table
    assert summary["rows"] == len(KEYS)


def test_rows_that_lack_a_field_are_measured(raw: tuple[Path, Fields], tmp_path: Path) -> None:
    (raw[0] / "depth" / "a2.png").unlink()
    options = ("--classes", "4", "--field", "depth=values:depth/{key}.png", "--missing", "keep")
    kept = Pack.open(pack(raw[0], tmp_path / "kept", *options))
    share = cached_share(kept, range(len(KEYS)))
    assert share is None or 0 <= share <= 1


def test_a_field_without_any_file_is_named_with_its_template(raw: tuple[Path, Fields], tmp_path: Path) -> None:
    options = ("--classes", "4", "--field", "depth=values:dpeth/{key}.png")
    for missing in ("error", "skip"):
        errors = errors_of(1, "build", *options, "--missing", missing, raw[0], tmp_path / "out")
        assert "no file fits dpeth/{key}.png of the field depth" in errors
        assert "1 problem in the layout images/ + masks/; no image and label have all further fields" in errors
        assert "describe how their names differ" not in errors
    noted = run("build", *options, "--missing", "keep", raw[0], tmp_path / "out")
    assert "no file fits dpeth/{key}.png of the field depth" in noted.stdout + noted.stderr


def test_a_file_is_an_image_only_if_that_gives_it_the_key_of_its_field(
    raw: tuple[Path, Fields], tmp_path: Path
) -> None:
    folder, fields = raw
    for key in KEYS:
        (folder / "images" / f"{key}.png").rename(folder / f"{key}.png")
    options = ("--image", "{key}.png", "--label", "masks/{key}.png", "--classes", "4", "--field", WHEELS)
    further = ("--field", DEPTH, "--field", "inst=ids:inst/{key}.png", "--field", "same=ids:masks/{key}.png")
    train = open_dataset(pack(folder, tmp_path / "out", *options, *further), fields=("image", "inst", "same"))
    assert len(train) == len(KEYS)
    assert np.array_equal(train[0][1], fields["a0"]["inst"])
    assert np.array_equal(train[0][2], fields["a0"]["masks"])


def test_named_image_and_label_are_the_options_of_the_build(raw: tuple[Path, Fields], tmp_path: Path) -> None:
    folder, _ = raw
    templates: dict[str, Any] = {"image": "tiles/{key}.tif", "label": "masks/{key}.png"}
    options: dict[str, Any] = {"classes": 4, "labels": "index", "bands": [3, 1]}
    general = build_pack(folder, tmp_path / "a", **options, **templates)
    image = PictureField(files=templates["image"], bands=(3, 1))
    label = ClassesField(files=templates["label"], classes="4", form="index")
    named = build_pack(folder, tmp_path / "b", fields=[image, label])
    fields = [PictureField(files=templates["image"]), ClassesField(files=templates["label"])]
    mixed = build_pack(folder, tmp_path / "c", **options, fields=fields)
    assert general.manifest.table == named.manifest.table == mixed.manifest.table
    for option, other in (("bands", "all"), ("classes", 3)):
        with pytest.raises(UsageError, match=r"has another \w+ than --\w+ (all|3); give one of them"):
            build_pack(folder, tmp_path / "d", fields=[image, label], **{option: other})  # type: ignore[arg-type]


def test_reasons_name_the_option_of_the_field(raw: tuple[Path, Fields], tmp_path: Path) -> None:
    options = ("--classes", "4", "--field", "scan=picture:depth/{key}.png")
    refused = run("build", *options, raw[0], tmp_path / "out")
    assert "ive the field scan range = [LOW, HIGH], the numbers that become 0 and 1" in refused.stderr
    table = '{"name": "scan", "kind": "picture", "from": "depth/{key}.png", "bands": "all", "dtype": "float32"}'
    scaled = run("build", "--classes", "4", "--field", table, raw[0], tmp_path / "out")
    assert (
        "--field scan: dtype float32: the files of scan hold uint16; leave it out, or give --field scan: range"
        in scaled.stderr
    )
    drawn = run("build", "--split", "80/20", "--field", "d=ids:inst/{split}/{key}", raw[0], tmp_path / "out")
    assert "but --split draws the splits from the keys" in drawn.stderr


def test_a_pack_may_have_no_label(raw: tuple[Path, Fields], tmp_path: Path) -> None:
    folder, fields = raw
    named: list[FieldOptions] = [PictureField(files="images/{key}.png"), ValuesField("depth", "depth/{key}.png")]
    manifest = build_pack(folder, tmp_path / "out", fields=named).manifest
    assert ([field.name for field in manifest.fields], manifest.unlabelled) == (["image", "depth"], 0)
    train = open_dataset(tmp_path / "out")
    assert np.array_equal(train[1][1], fields["a1"]["depth"])
    with pytest.raises(UsageError, match="needs the template of its files"):
        build_pack(folder, tmp_path / "without", fields=[PictureField()])
    (folder / "masks").rename(folder / "others")
    refused = run("build", "--field", "depth=values:depth/{key}.png", folder, tmp_path / "unknown")
    assert "if there are no labels, name the images: --field 'image=picture:" in refused.stderr


def test_two_files_of_a_key_or_of_an_unknown_class_are_problems(raw: tuple[Path, Fields], tmp_path: Path) -> None:
    folder, fields = raw
    cv2.imwrite(str(folder / "depth" / "a1.tif"), fields["a1"]["depth"])
    (folder / "parts" / "roof").mkdir()
    write_png(folder / "parts" / "roof" / "a0.png", fields["a0"]["masks"])
    options = ("--classes", "4", "--field", "depth=values:depth/{key}", "--field", WHEELS)
    refused = run("build", *options, folder, tmp_path / "out")
    assert "depth/a1.tif: has the same key as depth/a1.png" in refused.stderr
    assert "parts/roof/a0.png: 'roof' is not a class of parts: wheel, door" in refused.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("depth", "expected NAME=KIND:TEMPLATE"),
        ("depth=value:depth/{key}", "did you mean values"),
        ("Depth=values:depth/{key}", "expected up to 32 of a-z"),
        ("depth=values:depth/", "needs {key}"),
        ('{"name": "depth", "kind": "values", "from": "{key}", "scale": 0}', "expected a number over 0"),
        ('{"name": "depth", "kind": "values", "from": "{key}", "invalid": true}', "expected a number"),
        ('{"name": "depth", "kind": "ids", "scale": 2}', "'scale' is not known"),
        ('{"name": "depth", "kind": "ids", "dtype": "float32"}', "expected uint16 or uint32"),
        ('{"name": "a", "kind": "picture", "bands": [0]}', "expected all, gray, rgb, or numbers"),
        ("{name", "is not JSON"),
        ("a=ids:{patient}/{key}", "{patient} is not a part of a key"),
        ("a=ids:{class}/{key}", "only the kind multilabel has a file for each class"),
        ('{"name": "a", "kind": "multilabel", "from": "{class}/{key}"}', "needs classes"),
        ("label=ids:a/{key}", "is always of the kind classes"),
    ],
)
def test_a_field_that_is_not_valid_is_refused(raw: tuple[Path, Fields], tmp_path: Path, text: str, words: str) -> None:
    assert words in errors_of(2, "build", "--classes", "4", "--field", text, raw[0], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_page_about_fields_runs(raw: tuple[Path, Fields], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, fields = raw
    (tmp_path / "satellite").symlink_to(folder)
    for key in KEYS:
        for name, pixels in (("images", fields[key]["depth"]), ("masks", fields[key]["masks"])):
            write_png(tmp_path / "scans" / name / f"{key}.png", pixels)
        write_png(tmp_path / f"scenes/masks/{key}.tif", fields[key]["masks"])
        for channel in ("B02", "B03"):
            write_png(tmp_path / f"scenes/S2/{key}/T32_{channel}.jp2", fields[key]["depth"])
    monkeypatch.chdir(tmp_path)
    page = (REPO / "docs" / "guide" / "fields.md").read_text()
    blocks = re.findall(r"^```(bash|toml|python)\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    commands = "".join(code for kind, code in blocks if kind == "bash")
    Path("packer.toml").write_text("".join(code for kind, code in blocks if kind == "toml"))
    for command in [*commands.splitlines(), "packer build --config packer.toml raw/ packed_parts"]:
        good(*shlex.split(command, comments=True)[1:])
    code = "\n".join(code for kind, code in blocks if kind == "python")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    kept = open_dataset("packed_rows", fields=("image", "depth", "labelled"))
    assert len(kept) == 3


def test_fields_are_read_back_from_their_texts() -> None:
    for text in (DEPTH, WHEELS, "instance=ids:inst/{key}.png"):
        field = parse_field(text)
        assert parse_field(format_field(field)) == parse_field(field) == field


def test_a_function_may_return_any_fields(raw: tuple[Path, Fields], tmp_path: Path) -> None:
    _, fields = raw

    def load(key: str) -> dict[str, Any]:
        row = fields[key]
        depth = {} if key == "a1" else {"depth": row["depth"].astype(np.float32) / 7}
        parts = np.dstack([row[f"parts/{part}"] for part in PARTS]) > 0
        return {"image": row["tiles"], "label": row["masks"], "ids": row["inst"], "parts": parts.astype("u1"), **depth}

    named: list[FieldOptions] = [ValuesField("depth"), IdsField("ids"), MultilabelField("parts", classes=PARTS)]
    rows = Rows(KEYS, load, without={"depth": ["a1"]})
    build_pack(rows, tmp_path / "out", classes=4, labels="index", bands="all", fields=named, format="arrow")
    train = open_dataset(tmp_path / "out", fields=("image", "label", "depth", "ids", "parts"))
    assert sorted(train.key(row) for row in range(len(train))) == KEYS
    for row in range(len(train)):
        image, label, depth, ids, parts = (field.numpy() for field in train[row])
        given = load(train.key(row))
        assert np.array_equal(image, given["image"].transpose(2, 0, 1))
        assert np.array_equal(label, given["label"])
        assert np.array_equal(depth, given.get("depth", np.full((24, 36), np.nan)), equal_nan=True)
        assert np.array_equal(ids, given["ids"])
        assert np.array_equal(parts, given["parts"].transpose(2, 0, 1))
    assert run("verify", "--deep", tmp_path / "out").exit_code == 0
    with pytest.raises(UsageError, match="'image' cannot be missing; a row may lack its label, depth only"):
        build_pack(Rows(KEYS, load, without={"image": []}), tmp_path / "no", classes=4, fields=named[:1])
    with pytest.raises(InputError, match="load\\(\\) returned 'depth', 'parts'"):
        build_pack(Rows(KEYS, load), tmp_path / "no", classes=4, bands="all", fields=[named[1]])
