"""Presets: each has the classes of its data set, and packs a folder of the layout in the header of its file."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import errors_of, good, json_of, pack, run
from handmade import encoded_as
from numpy.typing import NDArray
from test_house_shared import expected, histogram

from packer.classes.documents import parse_toml
from packer.config.preset import Preset, find_preset, preset_classes, presets
from packer.pairs.template import SPLIT, Template
from readers import open_dataset
from readers.contract.classes import ClassTable

pytestmark = pytest.mark.usefixtures("in_process")

CLASSES = {
    "ade20k": 150,
    "ade20k-full": 3688,
    "bdd100k": 19,
    "binary-medical": 2,
    "camvid": 32,
    "camvid-11": 11,
    "cityscapes": 19,
    "cocostuff": 171,
    "deepglobe": 7,
    "isaid": 16,
    "kitti": 19,
    "loveda": 7,
    "mapillary": 65,
    "mapillary-v2": 123,
    "potsdam": 6,
    "suim": 8,
    "voc": 21,
}
"""The known number of classes of each data set, counted apart from our files."""

every_preset = pytest.mark.parametrize("preset", presets(), ids=lambda preset: preset.name)


def classes_of(preset: Preset) -> ClassTable:
    table = preset_classes(preset.settings())
    assert table is not None
    return table


def test_the_list_of_presets() -> None:
    assert [preset.name for preset in presets()] == sorted(CLASSES)


@every_preset
def test_a_preset_has_the_classes_of_its_data_set_and_each_source_once(preset: Preset) -> None:
    table = classes_of(preset)
    assert len(table) == len(set(table.names)) == CLASSES[preset.name]
    values = [value for entry in table.classes for value in entry.values] + list(table.ignored_values)
    colours = [colour for entry in table.classes for colour in entry.colours] + list(table.ignored_colours)
    assert len(values) == len(set(values))
    assert len(colours) == len(set(colours))
    assert all(entry.values or entry.colours for entry in table.classes)


@every_preset
def test_a_preset_sets_only_pairs_and_labels(preset: Preset) -> None:
    keys = {"image", "label", "label-codec", "unknown", "classes", "class", "ignore"}
    document = parse_toml(preset.path, preset.text)
    allowed = keys | ({"labels"} if preset.name == "ade20k-full" else set())
    assert set(document) <= allowed
    if "image" in document:
        assert Template(document["image"]).captures == Template(document["label"]).captures
    assert len(f"{preset.name:<16}{CLASSES[preset.name]:>5}  {preset.about}") <= 120


def drawn_paths(preset: Preset) -> list[str]:
    """Return the paths of the tree in the header, with braces expanded and with `<key>` and the like unchanged."""
    lines = [line.removeprefix("#     ") for line in preset.text.splitlines() if line.startswith("#     ")]
    return [path for line in lines for path in _expanded(line)]


def _expanded(line: str) -> Iterator[str]:
    parts = re.split(r"\{([^}]*)\}", line)
    choices = [part.split(",") if index % 2 else [part] for index, part in enumerate(parts)]
    yield from ("".join(chosen) for chosen in itertools.product(*choices))


def write_picture(path: Path, pixels: NDArray[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encoded_as(path.suffix, pixels))


def sources_of(preset: Preset, table: ClassTable) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return label pixels as the data set stores them, with every class (up to 500), and their class indices."""
    codec = parse_toml(preset.path, preset.text)["label-codec"]
    known: list[tuple[Any, int]]
    if codec == "colour":
        known = [(colour, n) for n, entry in enumerate(table.classes) for colour in entry.colours]
        known += [(colour, table.ignore_index) for colour in table.ignored_colours]
    elif codec == "binary":
        known = [(0, 0), (255, 1)]
    else:
        known = [(value, n) for n, entry in enumerate(table.classes[:500]) for value in entry.values]
        known += [(value, table.ignore_index) for value in table.ignored_values]
    shuffled = np.random.default_rng(3).integers(0, len(known), (24, 32))
    shuffled.reshape(-1)[: len(known)] = np.arange(len(known))
    pixels = np.array([source for source, _ in known], np.uint16)[shuffled]
    index = np.array([number for _, number in known])[shuffled]
    if codec == "ade20k":
        red, green, blue = pixels // 256 * 10 + pixels % 7, pixels % 256, pixels % 5
        return np.stack([red, green, blue], -1).astype(np.uint8), index
    assert pixels.max() < 256
    return pixels.astype(np.uint8), index


@every_preset
def test_a_preset_packs_a_folder_of_the_layout_in_its_header(preset: Preset, tmp_path: Path) -> None:
    table = classes_of(preset)
    label, index = sources_of(preset, table)
    raw, splits, rows = tmp_path / "raw", set(), 0
    image_count = len([path for path in drawn_paths(preset) if not path.endswith(".txt")]) // 2
    template = parse_toml(preset.path, preset.text).get("image")
    for number, drawn in enumerate(drawn_paths(preset)):
        for key in ("one_1", "two_2"):
            path = re.sub(r"<[^>]*>", lambda found, key=key: "a/bay" if " " in found[0] else key, drawn)  # type: ignore[misc]
            if path.endswith(".txt"):
                (raw / path).parent.mkdir(parents=True, exist_ok=True)
                (raw / path).write_text("" if "val.txt" in path else "one_1\ntwo_2\n")
            elif number < image_count:
                write_picture(raw / path, np.full((24, 32, 3), len(path), np.uint8))
                rows += 1
                found = Template(template).match(path) if template else None
                splits.add((found.groupdict() if found else {}).get(SPLIT, "train" if preset.name == "voc" else "all"))
            else:
                write_picture(raw / path, label)
    out = pack(raw, tmp_path / "out", "--preset", preset.name, "--labels", "index")
    info = json_of("info", "--json", out)
    assert {split["name"] for split in info["splits"] if split["rows"]} == splits
    dataset = open_dataset(out, split="all", label="index")
    assert len(dataset) == rows > 0
    assert dataset.classes.names == table.names
    for _, found in dataset:
        assert np.array_equal(found.numpy(), index)


def test_presets_are_listed_and_shown_unchanged() -> None:
    listed = good("presets")
    assert [line.split()[:2] for line in listed.stdout.splitlines()] == [
        [n, str(c)] for n, c in sorted(CLASSES.items())
    ]
    for preset in presets():
        assert run("presets", "show", preset.name).stdout == preset.path.read_text()


def test_an_unknown_preset_is_wrong_usage_with_the_nearest_name() -> None:
    for arguments in (("presets", "show", "cityscape"), ("build", "--preset", "cityscape", "raw", "out")):
        assert "did you mean cityscapes?" in errors_of(2, *arguments)
    assert find_preset("voc").name == "voc"


def test_a_shown_preset_is_a_configuration_with_the_same_effect(tmp_path: Path) -> None:
    for preset in presets():
        (tmp_path / "copy.toml").write_text(run("presets", "show", preset.name).stdout)
        copied = good("build", "--config", tmp_path / "copy.toml", "--print-config")
        assert copied.stdout == run("build", "--preset", preset.name, "--print-config").stdout


DATUMARO, TORCHGEO = "datumaro_layouts/tests/assets", "torchgeo_layouts/tests/data"
SAMPLES: dict[str, tuple[str, tuple[str, ...], int]] = {
    "ade20k-full": (f"{DATUMARO}/ade20k2017_dataset/dataset", (), 2),
    "camvid": (f"{DATUMARO}/camvid_dataset", ("--label", "{split:train|val|test}annot/{key}.png"), 4),
    "cityscapes": (
        f"{DATUMARO}/cityscapes_dataset/dataset",
        ("--label", "gtFine/{split:train|val}/{city}/{key}_gtFine_instanceIds.png", "--label-codec", "instance"),
        2,
    ),
    "kitti": (
        f"{DATUMARO}/kitti_dataset/kitti_segmentation",
        ("--label", "training/instance/{key}.png", "--label-codec", "instance", "--divisor", "256"),
        2,
    ),
    "loveda": (f"{TORCHGEO}/loveda", (), 4),
    "deepglobe": (
        f"{TORCHGEO}/deepglobelandcover/data/training_data",
        ("--image", "images/{key}_sat.jpg", "--label", "masks/{key}_mask.png"),
        3,
    ),
}


@pytest.mark.shared
@pytest.mark.parametrize("name", SAMPLES)
def test_samples_of_the_layouts_are_packed(shared_data: Path, tmp_path: Path, name: str) -> None:
    raw, options, rows = SAMPLES[name]
    out = pack(shared_data / raw, tmp_path / "out", "--preset", name, "--labels", "index", *options)
    assert len(open_dataset(out, split="all")) == rows


@pytest.mark.shared
def test_camvid_11_counts_what_others_counted(shared_data: Path, tmp_path: Path) -> None:
    raw = shared_data / "camvid_keras_example/test/example_dataset"
    templates = ("--image", "images_prepped_{split}/{key}.png", "--label", "annotations_prepped_{split}/{key}.png")
    out = pack(raw, tmp_path / "out", "--preset", "camvid-11", *templates)
    for split in ("train", "test"):
        wanted = expected(shared_data, f"camvid_keras {split}")
        wanted[255] = wanted.pop(11)
        assert histogram(open_dataset(out, split=split, label="index")) == wanted


@pytest.mark.shared
def test_ade20k_counts_what_others_counted(shared_data: Path, tmp_path: Path) -> None:
    raw = shared_data / "ade20k_sample/sampleData"
    templates = ("--image", "images/{key}.jpg", "--label", "annotations/{key}.png")
    options = ("--size", "512x683", "--fit", "crop-or-pad", "--labels", "index")
    out = pack(raw, tmp_path / "out", "--preset", "ade20k", *templates, *options)
    wanted = expected(shared_data, "ade20k")
    wanted[255] = wanted.pop(0) + 3 * 512 * 683 - sum(expected(shared_data, "ade20k").values())
    assert histogram(open_dataset(out)) == wanted


@pytest.mark.shared
def test_voc_counts_what_others_counted(shared_data: Path, tmp_path: Path) -> None:
    raw = shared_data / "labelme_voc/examples/semantic_segmentation/data_dataset_voc"
    options = ("--size", "375x500", "--fit", "crop-or-pad", "--labels", "index")
    dataset = open_dataset(pack(raw, tmp_path / "out", "--preset", "voc", *options))
    wanted = expected(shared_data, "labelme sem")
    wanted[255] += 3 * 375 * 500 - sum(wanted.values())
    assert histogram(dataset) == wanted


@pytest.mark.shared
def test_binary_medical_counts_what_others_counted(shared_data: Path, tmp_path: Path) -> None:
    raw = shared_data / "unet_membrane/data/membrane/train"
    templates = ("--image", "image/{key}.png", "--label", "label/{key}.png")
    out = pack(raw, tmp_path / "out", "--preset", "binary-medical", *templates)
    wanted = expected(shared_data, "unet_membrane")
    assert histogram(open_dataset(out, label="index")) == {0: wanted[0], 1: wanted[255]}
