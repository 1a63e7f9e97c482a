"""The problems of a raw folder come at once: partners, classes, headers, sizes and a decoded sample, by cause."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import COLOURS, errors_of, good, json_of, make_raw, run, write_png

from packer import build_pack
from packer.errors import InputError, Problem, RejectedError, by_cause
from packer.plan.problems import problem_of
from packer.recipe.row_ref import RowRef

pytestmark = pytest.mark.usefixtures("in_process")

MESSY = 60
PAIR = RowRef("train", "a", ("images/a: 1.png", "labels/a: 1.png"))


@pytest.fixture
def messy(tmp_path: Path) -> Path:
    """Missing partners, 16-bit labels and images, colours in no class, damaged and empty files, two sizes."""
    raw = make_raw(tmp_path / "messy", {"train": MESSY}).path
    images, labels = (sorted((raw / "train" / name).iterdir()) for name in ("images", "masks"))
    for number in range(8):
        labels[number].unlink()
    images[8].unlink()
    for number in range(10, 20):
        write_png(labels[number], np.zeros((24, 36, 3), np.uint16))
    for number in range(20, 26):
        write_png(images[number], np.zeros((24, 36, 3), np.uint16))
    for number in range(26, 40):  # known when they are decoded
        write_png(labels[number], np.full((24, 36, 3), [1, 2, number], np.uint8))
    for number in range(40, 54):  # the checksum of the pixels is wrong
        data = bytearray(images[number].read_bytes())
        data[-100] ^= 1
        images[number].write_bytes(data)
    for number in range(54, 56):
        images[number].write_bytes(b"")
    write_png(images[56], np.zeros((30, 36, 3), np.uint8))
    write_png(labels[56], np.full((30, 36, 3), COLOURS[0], np.uint8))
    write_png(images[57], np.zeros((24, 35, 3), np.uint8))
    return raw


def test_all_problems_come_at_once_grouped_by_cause(messy: Path, tmp_path: Path) -> None:
    errors = errors_of(1, "build", "--quiet", messy, tmp_path / "out")
    lines = errors.splitlines()
    assert "3 kinds of problems:" in lines[0]
    assert "    8 images: no label; first: train/images/street_000.png, " in errors
    assert "    train/masks/street_008.png: has no image" in lines
    assert "    10 labels: 16 bits per colour channel. Labels must have 8, or be gray; first: " in errors
    assert "    6 images: 16 bits per channel, not 8. Give --image-range LOW,HIGH, " in errors
    assert "labels, such as train/masks/street_0" in errors
    assert "colour in no class (#" in errors
    assert "images: damaged: the checksum of its chunk 'IDAT' is wrong; first: train/images/street_04" in errors
    assert "    2 images: empty; all: train/images/street_054.png, train/images/street_055.png" in errors
    assert "is 24x35, its label train/masks/street_057.png is 24x36" in errors
    assert "  the pictures have several sizes" in errors
    assert len(lines) < 20
    assert not (tmp_path / "out").exists()


def test_a_missing_class_table_hides_no_other_problem(messy: Path, tmp_path: Path) -> None:
    (messy / "class_dict.csv").unlink()
    done = run("build", "--quiet", messy, tmp_path / "out")
    for words in ("4 kinds of problems", "no label", "no class table", "several sizes", "16 bits per colour channel"):
        assert words in done.stderr


def test_the_json_names_every_file(messy: Path, tmp_path: Path) -> None:
    done = run("build", "--json", "--quiet", messy, tmp_path / "out")
    answer = json.loads(done.stdout)
    assert answer["exit_code"] == 1
    problems = {problem["cause"]: problem for problem in answer["problems"]}
    assert problems["has no label"]["files"] == [f"train/images/street_{number:03d}.png" for number in range(8)]
    deep = problems["has 16 bits per colour channel"]
    assert (deep["count"], len(deep["files"]), deep["hint"]) == (10, 10, "labels must have 8, or be gray")
    assert any(cause.startswith("the pictures have several sizes") for cause in problems)


def test_a_dry_run_promises_no_rows_that_the_sample_has_shown_to_fail(messy: Path, tmp_path: Path) -> None:
    command = ("build", "--dry-run", "--missing", "skip", "--size", "24x36", messy, tmp_path / "out")
    refused = good(*command)
    assert "refused   a build publishes nothing: " in refused.stdout
    assert "rows\n" not in refused.stdout
    facts = json_of(*command, "--json")
    assert (facts["rows"], facts["sampled"]["pairs"]) == (0, 16)
    assert facts["sampled"]["bad"] > 0
    skipped = json_of(*command, "--json", "--on-bad", "skip")
    assert skipped["refused"] is None
    assert skipped["rows"] == 51 - len(skipped["rejects"])
    text = run(*command, "--on-bad", "skip").stdout
    assert f"rows, because {skipped['sampled']['bad']} of 16 decoded pairs are bad" in text
    assert "at most " in text
    assert "          8 images: no label; first: " in text


def test_rows_of_a_dry_run_leave_out_every_tile_of_a_bad_pair(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 2}).path
    write_png(raw / "train/masks/street_001.png", np.full((24, 36, 3), 7, np.uint8))
    done = run(
        "build", "--dry-run", "--json", "--on-bad", "skip", "--size", "12x12", "--fit", "tile", raw, tmp_path / "o"
    )
    assert json.loads(done.stdout)["rows"] == 6


def test_python_gets_a_line_for_each_problem_and_the_causes(messy: Path, tmp_path: Path) -> None:
    with pytest.raises(RejectedError) as caught:
        build_pack(messy, tmp_path / "out", missing="skip", size=(24, 36))
    assert "train/images/street_054.png: is empty" in caught.value.problems
    empty = next(cause for cause in caught.value.causes if cause.cause == "is empty")
    assert empty.files == ("train/images/street_054.png", "train/images/street_055.png")


def test_a_single_refusal_is_raised_as_it_is(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 3}).path
    (raw / "train/masks/street_001.png").unlink()
    with pytest.raises(InputError, match="1 problem in the layout"):
        build_pack(raw, tmp_path / "out")


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("images/a: 1.png: is empty", ("is empty", "", "image")),
        (
            "labels/a: 1.png: has x (#0a0b0c: 3 pixels; 4: y); add (it); now",
            ("has x (#0a0b0c: 3 pixels; 4: y)", "add (it); now", "label"),
        ),
        (
            "images/a: 1.png is 2x3, its label labels/a: 1.png is 2x4; no",
            ("is 2x3, its label labels/a: 1.png is 2x4", "no", "image"),
        ),
        ("images/a: 1.png or labels/a: 1.png: crashed", ("crashed", "", "pair")),
        ("something else", ("something else", "", "file")),
    ],
)
def test_reasons_are_taken_apart(reason: str, expected: tuple[str, str, str]) -> None:
    problem = problem_of(PAIR, reason)
    assert (problem.cause, problem.hint, problem.noun) == expected


def test_problems_of_one_cause_are_one_line() -> None:
    same = [Problem("is cut short", "copy it again", (f"{name}.png",), "image") for name in "abcde"]
    (group,) = by_cause(same)
    assert str(group) == "5 images: cut short. Copy it again; first: a.png, b.png, c.png, … and 2 more"
    assert str(by_cause(same[:1])[0]) == "a.png: is cut short; copy it again"
    assert str(by_cause(same[:2])[0]) == "2 images: cut short. Copy it again; all: a.png, b.png"
    sizes = [Problem(f"is {n}x{n}", "resize it", (f"{n}.png",), "label", "is x") for n in range(2)]
    assert str(by_cause(sizes)[0]) == "2 labels, such as 0.png: is 0x0; resize it; also 1.png"
    assert len(by_cause([*same, *sizes, Problem("other")])) == 3
