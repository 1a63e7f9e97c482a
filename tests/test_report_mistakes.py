"""Wrong labels that are planted in a pack are found: by edges in the sample scenes, by a model in real data."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from runpy import run_path

import numpy as np
import pytest
from conftest import REPO, pack
from drills.mistakes import PIXELS, RECIPES, exchanged, plant, shifted, split_rows, swapped
from program import command

from packer.report.page import html
from packer.report.report import make_report
from readers import SegDataset, open_dataset

pytestmark = pytest.mark.usefixtures("in_process")
CAR, PERSON = 5, 6


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("mistakes") / "city"
    return pack(REPO / "data_samples" / "raw", out, "--labels", "index", "--ignore", "void", "--size", "128x192")


@pytest.fixture(scope="module")
def data(city: Path) -> SegDataset:
    return open_dataset(city, split="all", label="index")


def drill(*options: object) -> list[list[str]]:
    """Run the drill as a user would, and return the cells of its table."""
    done = subprocess.run(command("drills.mistakes", *options), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line.split() for line in done.stdout.splitlines()[1:]]


def test_mistakes_are_planted_in_the_rows_that_are_named(data: SegDataset, tmp_path: Path) -> None:
    right = [np.asarray(data[row].label) for row in range(len(data))]
    dice = np.random.default_rng(0)
    for kind in (swapped, shifted, exchanged):
        planted = kind(data, dice, (CAR, PERSON))
        plant(data, planted, tmp_path / kind.__name__)
        wrong = open_dataset(tmp_path / kind.__name__, split="all", label="index")
        assert wrong.classes.names == data.classes.names
        assert wrong.classes.palette.hex == data.classes.palette.hex
        assert [data.key(row) for row in range(len(data))] == [wrong.key(row) for row in range(len(data))]
        for row, label in enumerate(right):
            found = np.asarray(wrong[row].label)
            assert (found == label).all() == (row not in planted)
            if row in planted and kind is swapped:
                assert ((found == CAR) == (label == PERSON)).all()
            if row in planted and kind is shifted:
                assert (found[PIXELS:, PIXELS:] == label[:-PIXELS, :-PIXELS]).all()
        if kind is swapped:
            assert list(planted) == list(split_rows(data)["val"])


def test_the_report_shows_classes_that_are_swapped_in_a_split(data: SegDataset, city: Path, tmp_path: Path) -> None:
    """The two classes come first in the table of splits, and their maps of the splits are side by side."""
    plant(data, swapped(data, np.random.default_rng(0), (CAR, PERSON)), tmp_path / "out")
    for out, both in ((city, False), (tmp_path / "out", True)):
        text = html(make_report(out))
        table = text.partition("Classes by split")[2].partition("</table>")[0]
        first = [line.partition("</td>")[0] for line in table.split('<td class="name">')[1:3]]
        assert (sorted(first) == ["car", "person"]) == both
        assert 'alt="where car lies in train"' in text
        assert 'alt="where car lies in val"' in text


def test_edges_name_the_shift_of_a_label(data: SegDataset) -> None:
    recipe = run_path(str(RECIPES / "label_shifts.py"))
    planted = shifted(data, np.random.default_rng(0), ())
    for row in range(len(data)):
        label = planted[row](row) if row in planted else np.asarray(data[row].label)
        fit, down, right = recipe["shift"](np.asarray(data[row].image), label)
        assert (fit > 0.8) == (row not in planted)
        assert row not in planted or abs(down - PIXELS) + abs(right - PIXELS) <= 2
    assert recipe["shift"](np.asarray(data[0].image), np.zeros((128, 192), np.uint8)) == (1.0, 0, 0)


@pytest.mark.long
def test_shifted_labels_are_found_by_edges(city: Path, tmp_path: Path) -> None:
    ((*_, planted, _, _, last),) = drill(city, tmp_path, "--only", "shifted", "--by", "edges")
    assert planted == last == "10"


@pytest.mark.shared
@pytest.mark.skipif(not os.environ.get("SEGPACK_REQUIRE_TRAINERS"), reason="trains for minutes; make recipes runs it")
@pytest.mark.long
def test_exchanged_labels_are_found_by_a_model(shared_data: Path, tmp_path: Path) -> None:
    raw = shared_data / "unet_membrane/data/membrane/train"
    for name in range(30):
        for folder in ("image", "label"):
            link = tmp_path / "raw" / folder / f"{name}.png"
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(raw / folder / link.name)
    pairs = ("--preset", "binary-medical", "--image", "image/{key}", "--label", "label/{key}")
    pack(tmp_path / "raw", tmp_path / "tiles", *pairs, "--labels", "index", "--size", "128x128", "--fit", "tile")
    (cells,) = drill(tmp_path / "tiles", tmp_path, "--only", "exchanged", "--by", "model")
    assert cells[3] == cells[4]
