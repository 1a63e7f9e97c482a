"""The recipes of docs/recipes: each is run as a user would run it, and its output is checked."""

from __future__ import annotations

import ast
import json
import math
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import COLOURS, REPO, pack, write_png, write_table

from packer.view.scores import read_scores
from readers import open_dataset
from readers.pack import Pack

RECIPES = REPO / "docs" / "recipes"
REQUIRE = "SEGPACK_REQUIRE_RECIPES"
NEEDS = {
    "accelerate_loop": "accelerate",
    "albumentations_transform": "albumentations",
    "compile_amp": "torch",
    "dali": "nvidia.dali",
    "ddp": "torch",
    "evaluate_miou": "torch",
    "hf_trainer": "transformers",
    "jax_numpy": "jax",
    "kornia_augment": "kornia",
    "label_errors": "cleanlab",
    "label_shifts": "cv2",
    "lightning_data": "lightning",
    "metrics": "torch",
    "nnunet": "nnunetv2",
    "stateful_dataloader": "torchdata",
    "tv_tensors": "torchvision",
}
"""The package that each recipe needs in addition to our own."""
LINES = 40
MORE_LINES = {"metrics": 55, "nnunet": 100}
"""Metrics, and an evaluation that uses them. Two steps of nnU-Net: the files that it preprocesses, and the data set
that reads them."""


REQUIRE_TRAINERS = "SEGPACK_REQUIRE_TRAINERS"
OF_TRAINERS = {"datasets", "fastai", "keras", "mlflow", "mmseg", "monai", "nnunetv2", "torchgeo", "wandb", "xarray"}
"""The packages of the extra trainers, which `make recipes` installs, and CI does not."""


NOT_RELEASED = {"detectron2"}
"""Who has these has built them: they are tested where they are."""
CPU_TORCHVISION = REPO / "tests" / "cpu_torchvision"
"""The folder with which PyPI's torchvision can be imported without CUDA, for PYTHONPATH."""


def absent(need: str) -> None:
    """Skip the test, or fail it if the package is required."""
    if need in NOT_RELEASED:
        pytest.skip(f"{need} has no release, and is not built here")
    require = REQUIRE_TRAINERS if need in OF_TRAINERS else REQUIRE
    if os.environ.get(require):
        pytest.fail(f"{need} is missing, and {require} is set")
    pytest.skip(f"needs {need}; make recipes runs it" if need in OF_TRAINERS else f"needs {need}")


ABORTED_AT_EXIT = "terminate called without an active exception"
"""Said when a process with gloo of PyTorch ends while a thread of gloo still runs: seen on a loaded machine, in a
rank that had done its work."""


def called(command: list[str], cwd: Path) -> str:
    """Return what a command prints in the environment of the recipes."""
    quiet = {"HF_HUB_OFFLINE": "1", "NO_ALBUMENTATIONS_UPDATE": "1", "OMP_NUM_THREADS": "1"}
    quiet["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # else it starts processes that import PyTorch
    path = os.pathsep.join(map(str, (REPO, RECIPES, REPO / "tests" / "cpu_torchvision")))
    environment = {**os.environ, **quiet, "PYTHONPATH": path}
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0 or ABORTED_AT_EXIT in done.stderr, done.stdout[-2000:] + done.stderr[-6000:]
    return done.stdout


def run(name: str, *arguments: object, cwd: Path, processes: int = 0) -> str:
    """Run a recipe, in several processes if `processes` is given, and return what it prints."""
    package = NEEDS[name].partition(".")[0]
    if find_spec(package) is None:
        absent(NEEDS[name])
    launch = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"] if processes else []
    return called([sys.executable, *launch, str(RECIPES / f"{name}.py"), *map(str, arguments)], cwd)


def losses(printed: str) -> list[float]:
    """Return all printed losses in order, after checking that each is a number."""
    found = [float(loss) for loss in re.findall(r"\bloss ([\d.naif]+)", printed)]
    assert found
    assert all(map(math.isfinite, found))
    return found


@pytest.fixture(scope="module")
def streets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample scenes, small: 18 rows to train with, 6 to evaluate."""
    out = tmp_path_factory.mktemp("recipes") / "streets"
    return pack(REPO / "data_samples" / "raw", out, "--labels", "index", "--ignore", "void", "--size", "64x96")


@pytest.fixture(scope="module")
def painted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures in which every pixel has the colour of its class."""
    raw = tmp_path_factory.mktemp("recipes") / "painted"
    for number in range(11):
        coarse = np.random.default_rng(number).integers(0, len(COLOURS), (4, 6), dtype=np.uint8)
        pixels = COLOURS[coarse.repeat(16, 0).repeat(16, 1)]
        for folder in ("images", "masks"):
            write_png(raw / "train" / folder / f"{number}.png", pixels)
    write_table(raw / "class_dict.csv")
    return pack(raw, raw.parent / "packed", "--labels", "index")


def pixels_in(out: Path, split: str) -> list[int]:
    """Return the number of pixels of each class, and last of ignored pixels."""
    data = open_dataset(out, split, label="index")
    counts: Any = sum(torch.bincount(label.flatten(), minlength=256) for _, label in data)
    return [int(count) for count in counts if count]


def test_every_recipe_is_listed_tested_and_short() -> None:
    listed = re.findall(r"\]\((\w+)\.py\)", (RECIPES / "README.md").read_text())
    assert sorted(listed) == sorted(NEEDS) == sorted(path.stem for path in RECIPES.glob("*.py"))
    for name in NEEDS:
        text = (RECIPES / f"{name}.py").read_text()
        assert f"docs/recipes/{name}.py PACK" in (ast.get_docstring(ast.parse(text)) or "")
        words = re.compile(r'^ *""".*?"""$|^(import|from) .*?$|^ *#.*?$', re.MULTILINE | re.DOTALL)
        lines = [line for line in words.sub("", text).splitlines() if line.strip()]
        assert len(lines) < MORE_LINES.get(name, LINES), f"{name}: {len(lines)} lines of code"


def opened_splits(tree: ast.AST) -> dict[str, str]:
    """Return the split that each name of a program is opened with."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and "open_dataset" in ast.unparse(node.value):
            targets = [target for given in node.targets for target in getattr(given, "elts", [given])]
            known = re.findall(r"'(train|val)'", ast.unparse(node.value))
            found.update(zip((ast.unparse(target).rpartition(".")[2] for target in targets), known, strict=False))
    return found


@pytest.mark.parametrize("name", NEEDS)
def test_a_recipe_normalises_by_the_training_split(name: str) -> None:
    tree = ast.parse((RECIPES / f"{name}.py").read_text())
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    taken = [
        ast.unparse(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in ("mean", "std") and id(node) not in called
    ]
    opened = opened_splits(tree)
    assert [opened.get(data.rpartition(".")[2]) for data in taken] == ["train"] * len(taken), taken


@pytest.mark.long
@pytest.mark.parametrize("name", ["albumentations_transform", "dali", "jax_numpy", "kornia_augment", "tv_tensors"])
def test_a_model_learns(name: str, streets: Path, tmp_path: Path) -> None:
    found = losses(run(name, streets, cwd=tmp_path))
    assert len(found) == 4
    assert found[-1] < found[0]


@pytest.mark.long
@pytest.mark.parametrize("name", ["albumentations_transform", "dali", "kornia_augment", "tv_tensors"])
def test_images_and_labels_move_together_and_in_the_same_way_again(name: str, painted: Path, tmp_path: Path) -> None:
    """Pixels follow from seed, epoch and batch, also when an epoch is resumed; labels are never mixed."""
    if find_spec(NEEDS[name].partition(".")[0]) is None:
        absent(NEEDS[name])
    found = json.loads(called([sys.executable, str(REPO / "tests" / "recipe_checks.py"), name, str(painted)], tmp_path))
    assert (found["batches"], found["again"], found["other"], found["resumed"]) == (4, True, False, True)
    assert set(found["values"]) <= {0, 1, 2, 3, 255}
    assert found["contrast"] > 0.45


@pytest.mark.long
@pytest.mark.parametrize("name", ["accelerate_loop", "stateful_dataloader"])
def test_a_run_is_resumed_exactly(name: str, streets: Path, tmp_path: Path) -> None:
    whole = run(name, streets, "saved", cwd=tmp_path)
    assert len(losses(whole)) == 18
    assert losses(whole)[-1] < losses(whole)[0]
    assert run(name, streets, "saved", cwd=tmp_path).splitlines() == whole.splitlines()[8:]


@pytest.mark.long
def test_the_trainer_is_resumed_exactly(streets: Path, tmp_path: Path) -> None:
    whole = run("hf_trainer", streets, "out", cwd=tmp_path).splitlines()[-1]
    numbers = list(map(float, whole.split()[1:]))
    assert len(numbers) == 18
    assert numbers[-1] < numbers[0]
    assert run("hf_trainer", streets, "again", "out/checkpoint-8", cwd=tmp_path).splitlines()[-1] == whole


@pytest.mark.long
def test_lightning_is_resumed_exactly(streets: Path, tmp_path: Path) -> None:
    def lines(*arguments: object) -> list[str]:
        printed = run("lightning_data", streets, *arguments, cwd=tmp_path).splitlines()
        return [line for line in printed if re.match(r"rank|val_loss", line)]

    whole = lines()
    assert len(losses("\n".join(whole))) == 18
    assert whole[-1].startswith("val_loss")
    for saved in (8, 12):  # in the middle of an epoch, and between two
        assert lines(1, f"checkpoints/step={saved}.ckpt") == whole[saved:]


@pytest.mark.long
def test_lightning_distributes_the_rows_to_devices(streets: Path, tmp_path: Path) -> None:
    steps = re.findall(r"rank (\d) step (\d+)", run("lightning_data", streets, 2, cwd=tmp_path))
    assert sorted(steps) == sorted((str(rank), str(step)) for rank in range(2) for step in range(9))


@pytest.mark.long
def test_ranks_train_on_each_row_once_if_their_number_changes(streets: Path, tmp_path: Path) -> None:
    def pixels_seen(printed: str) -> list[int]:
        assert "padding 0" in printed
        losses(printed)
        return [int(number) for number in re.findall(r"\d+", printed.partition("seen")[2])]

    begun = pixels_seen(run("ddp", streets, "saved.pt", 2, cwd=tmp_path, processes=2))
    rest = pixels_seen(run("ddp", streets, "saved.pt", cwd=tmp_path, processes=3))
    assert [first + second for first, second in zip(begun, rest, strict=True)] == pixels_in(streets, "train")


@pytest.mark.long
def test_evaluation_counts_every_row_once_on_any_number_of_ranks(streets: Path, tmp_path: Path) -> None:
    alone = run("evaluate_miou", streets, cwd=tmp_path)
    assert alone == run("evaluate_miou", streets, cwd=tmp_path, processes=2)
    assert json.loads(alone.partition("class ")[2]) == pixels_in(streets, "val")[:-1]
    assert 0 < float(alone.split()[1]) < 1


@pytest.mark.long
def test_sliding_windows_give_the_same_scores_on_any_number_of_ranks(streets: Path, tmp_path: Path) -> None:
    alone = run("metrics", streets, cwd=tmp_path)
    assert alone == run("metrics", streets, cwd=tmp_path, processes=2)
    scores = [float(score) for score in re.findall(r"\d\.\d{4}", alone)]
    assert len(scores) == 3
    assert all(0 < score < 1 for score in scores)


def naive_scores(pairs: list[tuple[Any, Any]], classes: int, width: int) -> dict[str, float]:
    """Return the scores of pictures, from sets of pixels, as they are defined."""

    def mask(numbers: Any, number: int, known: Any) -> set[tuple[int, int]]:
        return {place for place in np.ndindex(numbers.shape) if numbers[place] == number and known[place]}

    def edge(numbers: Any, number: int, known: Any) -> set[tuple[int, int]]:
        wide = np.pad(numbers.astype(int), width, constant_values=-1)
        around = 2 * width + 1
        return {
            (row, column)
            for row, column in mask(numbers, number, known)
            if (wide[row : row + around, column : column + around] != number).any()
        }

    ratios: dict[str, list[float]] = {"mIoU": [], "Dice": [], "boundary IoU": []}
    for number in range(classes):
        sums = np.zeros(5, int)
        for predicted, labels in pairs:
            known = labels < classes
            true, other = mask(labels, number, known), mask(predicted, number, known)
            near, others = edge(labels, number, known), edge(predicted, number, known)
            sums[:3] += [len(true & other), len(true | other), len(true) + len(other)]
            sums[3:] += [len(near & others), len(near | others)]
        for name, part, whole in (
            ("mIoU", sums[0], sums[1]),
            ("Dice", 2 * sums[0], sums[2]),
            ("boundary IoU", sums[3], sums[4]),
        ):
            ratios[name] += [part / whole] if whole else []
    return {name: float(np.mean(parts)) for name, parts in ratios.items()}


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_metrics_are_those_of_sets_of_pixels(width: int, seed: int) -> None:
    """Ignored pixels are in no set, and a class that never occurs has no score."""
    dice, classes = np.random.default_rng(seed), 5
    metrics = run_path(str(RECIPES / "metrics.py"))["Metrics"](classes, width)
    pairs = []
    for height, across in ((17, 12), (9, 20)):
        coarse = dice.integers(0, classes - 1, (height // 3 + 1, across // 3 + 1), dtype=np.uint8)
        labels = coarse.repeat(3, 0).repeat(3, 1)[:height, :across].copy()
        predicted = np.where(dice.random(labels.shape) < 0.1, dice.integers(0, classes - 1, labels.shape), labels)
        labels[dice.random(labels.shape) < 0.1] = 255
        pairs.append((np.roll(predicted, 1, 1), labels))
        metrics.add(torch.from_numpy(pairs[-1][0].astype(np.int64)), torch.from_numpy(labels))
    assert metrics.scores() == pytest.approx(naive_scores(pairs, classes, width), rel=1e-6)
    assert metrics.scores() == metrics.scores()


@pytest.mark.long
def test_exchanged_labels_have_the_lowest_scores(painted: Path, tmp_path: Path) -> None:
    """The scores are those of cleanlab's formula over the pixels that are not ignored, and `packer view` reads them."""
    raw = Path(shutil.copytree(painted.with_name("painted"), tmp_path / "raw"))
    masks = [raw / "train" / "masks" / f"{number}.png" for number in (3, 8)]
    first, second = (mask.read_bytes() for mask in masks)
    masks[0].write_bytes(second)
    masks[1].write_bytes(first)
    out = pack(raw, tmp_path / "out", "--labels", "index", "--ignore", "person")
    run("label_errors", out, 20, cwd=tmp_path)
    scores = read_scores(Pack.open(out), tmp_path / "out-predictions" / "scores.csv")
    data = open_dataset(out, label="index")
    assert {data.key(int(row)) for row in np.argsort(scores)[:2]} == {"3", "8"}
    chances = np.load(tmp_path / "out-predictions" / "chances.npy", mmap_mode="r")
    for row, (_, label) in enumerate(data):
        seen = np.asarray(label)[::2, ::2]
        known = seen < len(data.classes)
        given = np.take_along_axis(chances[row], np.where(known, seen, 0)[None], 0)[0][known].astype(np.float64)
        weights = np.exp((1 - given) / 0.3)
        assert scores[row] == pytest.approx((given * weights).sum() / weights.sum(), rel=1e-3)


@pytest.mark.long
def test_a_compiled_model_learns_in_bfloat16(streets: Path, tmp_path: Path) -> None:
    if not any(map(shutil.which, (os.environ.get("CXX", "g++"), "clang++"))):
        absent("a C++ compiler")
    found = list(map(float, run("compile_amp", streets, cwd=tmp_path).split()[1:]))
    assert len(found) == 6
    assert all(map(math.isfinite, found))
    assert found[-1] < found[0]
