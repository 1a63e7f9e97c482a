"""The short form of the training on raw files and on a pack: the same batches, the same losses bit for bit."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import REPO, make_raw, write_png
from conftest import pack as packed_by_command
from program import command
from train_demo.__main__ import main as train_demo_main
from train_demo.augmented import evaluate, gap, ours, train
from train_demo.comparison import Comparison
from train_demo.packed import Packed, pack
from train_demo.pipelines import Setup, raw_files, same_batches
from train_demo.pipelines import pack as packed_rows
from train_demo.raw_pairs import RawPairs
from train_demo.step_times import Step, StepTimer
from train_demo.training import Epoch

from readers import open_dataset, to_device

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are watched in /proc")
SHORT = ("--size", "32x48", "--batch", "4", "--device", "cpu", "--pictures", "8")


def demo(*options: object) -> subprocess.CompletedProcess[str]:
    """Run it as a user would."""
    argv = command("train_demo", *options)
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("train_demo")


@pytest.mark.long
def test_both_trainings_have_the_same_losses_bit_for_bit(out: Path) -> None:
    widths, workers = (2, 3), (0, 1)
    done = demo("--out", out, *SHORT, "--epochs", 2, "--width", *widths, "--workers", *workers, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["decoding_ms"]["same"] == 1
    assert [entry["width"] for entry in document["duels"]] == list(widths)
    for entry in document["duels"]:
        raw, packed = ([epoch["losses"] for epoch in entry[name]["epochs"]] for name in ("raw", "pack"))
        assert [len(losses) for losses in raw] == [2, 2]
        assert raw == packed
        assert raw[0] != raw[1]
        assert set(entry["tried"]) == set(map(str, workers))
        assert entry["difference"] == 0
        for name in ("raw", "pack"):
            for epoch in entry[name]["epochs"]:
                assert 0 < epoch["waiting"] + epoch["finishing"] + epoch["computing"] <= epoch["seconds"]
    if find_spec("matplotlib"):
        assert (out / "train_demo.png").stat().st_size > 10_000
    else:
        assert "no picture: pip install matplotlib" in done.stderr


@pytest.mark.long
def test_the_table_has_a_row_for_each_pipeline_and_any_format_works(out: Path) -> None:
    options = ("--out", out / "lmdb", *SHORT, "--epochs", 1, "--width", 2, "--workers", 0)
    done = demo(out / "raw", *options, "--", "--format", "lmdb")
    assert done.returncode == 0, done.stderr
    for row in (r"raw files, 0 workers", r"pack"):
        assert re.search(rf"^\| width 2, \S+ M weights +\| {row} +\| \d+\.\d+ \(", done.stdout, re.MULTILINE), (
            done.stdout
        )
    assert "largest difference between losses in 2 steps: 0\n" in done.stdout
    assert re.search(r"a pair in one thread: [\d.]+ ms, [\d.]+ ms with plain OpenCV \(100% ", done.stdout)


def test_a_size_that_the_model_cannot_halve_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["train_demo", "--out", str(tmp_path), "--size", "100x100"])
    with pytest.raises(SystemExit) as ended:
        train_demo_main()
    assert ended.value.code == 2
    assert "'100x100': expected HEIGHTxWIDTH, both divisible by 16" in capsys.readouterr().err


@pytest.fixture(scope="module")
def colours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_raw(tmp_path_factory.mktemp("colours") / "raw", {"train": 5, "val": 9}, 40, 60).path


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = make_raw(tmp_path_factory.mktemp("numbers") / "raw", {"train": 6}, 40, 60)
    for (split, key), index in made.labels.items():
        write_png(made.path / split / "masks" / f"{key}.png", index)
    (made.path / "class_dict.csv").unlink()
    return made.path


WAYS = [(), ("--fit", "letterbox"), ("--fit", "tile")]


@pytest.mark.long(every=2)
@pytest.mark.parametrize("options", WAYS, ids=lambda options: options[-1] if options else "stretch")
@pytest.mark.parametrize("kind", ["colours", "numbers"])
def test_raw_files_are_loaded_as_they_are_packed(
    kind: str, options: tuple[str, ...], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    classes = ("--classes", "4", "--ignore", "2") if kind == "numbers" else ()
    packed = pack(request.getfixturevalue(kind), tmp_path / "out", "16x32", (*options, *classes), None)
    assert packed.dataset.split == ("val" if kind == "colours" else "train")
    loaded = RawPairs(packed)
    assert len(loaded) == len(packed.dataset) >= 6
    for row in range(len(loaded)):
        assert all(mine.equal(theirs) for mine, theirs in zip(loaded[row], packed.dataset[row], strict=True))


def test_batches_that_differ_are_found(colours: Path, tmp_path: Path) -> None:
    packed = pack(colours, tmp_path / "out", "16x32", (), "train")
    setup = Setup(packed, torch.device("cpu"), 2, 1)
    assert same_batches([raw_files(setup, 0), packed_rows(setup)]) == 2
    first, second, *rest = packed.pieces
    swapped = Packed(packed.raw, packed.recipe, (second, first, *rest), packed.dataset, None)
    with pytest.raises(SystemExit, match="the images differ"):
        same_batches([raw_files(Setup(swapped, setup.device, 2, 1), 0), packed_rows(setup)])
    with pytest.raises(SystemExit, match="choose a smaller --batch"):
        same_batches([packed_rows(Setup(packed, setup.device, 6, 1))])


@pytest.mark.parametrize(("loss", "difference"), [(1.0, 0), (1.5, 0.5), (math.nan, math.inf)])
def test_the_largest_difference_of_losses_is_reported(loss: float, difference: float) -> None:
    step = Step(0, 0, 1)
    first, second = (Epoch(losses, 1, 1, (step, step)) for losses in ((1.0, 1.0), (1.0, loss)))
    assert Comparison(8, 1, {0: 1}, (first,), (second,)).difference == difference


def test_waiting_finishing_and_computing_are_measured_separately() -> None:
    def slow() -> Iterator[Any]:
        for _ in range(3):
            time.sleep(0.03)
            yield torch.zeros(1, 3, 4, 4), torch.zeros(1, 4, 4)

    def augment(images: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        time.sleep(0.02)
        return images, labels

    timer = StepTimer(to_device(slow(), "cpu", augment=augment), torch.device("cpu"))
    started = time.perf_counter()
    for _ in timer:
        time.sleep(0.01)
    seconds = time.perf_counter() - started
    steps = timer.steps()
    assert len(steps) == 3
    for part, least in (("waiting", 0.09), ("finishing", 0.06), ("computing", 0.03)):
        assert sum(getattr(step, part) for step in steps) >= least
    assert sum(step.waiting + step.finishing + step.computing for step in steps) <= seconds


def test_a_network_learns_from_our_augmentation(tmp_path: Path) -> None:
    """The sample scenes, scaled, cut, flipped, coloured and normalised: the loss falls, here and on whole pictures."""
    options = ("--labels", "index", "--ignore", "void", "--size", "128x192")
    out = packed_by_command(REPO / "data_samples" / "raw", tmp_path / "out", *options)
    rows, whole = open_dataset(out, "train", "index"), open_dataset(out, "val", "index")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # on a busy machine more would wait for each other
    torch.manual_seed(1)
    network, losses = train(ours(rows, (64, 64), seed=1), rows, 60)
    score = evaluate(network, whole, (rows.mean, rows.std))
    torch.set_num_threads(threads)
    assert len(losses) == 60
    assert sum(losses[-10:]) < 0.85 * sum(losses[:10])
    assert score.loss < 0.85 * math.log(len(rows.classes))
    assert 1 / len(rows.classes) < score.miou < 1


def test_scores_are_those_of_all_known_pixels(tmp_path: Path) -> None:
    """A network that always says class 0."""
    options = ("--labels", "index", "--ignore", "void", "--size", "32x48")
    rows = open_dataset(packed_by_command(REPO / "data_samples" / "raw", tmp_path / "out", *options), "val", "index")
    seen = torch.stack([torch.as_tensor(label) for _, label in rows])
    known, classes = seen[seen != rows.classes.ignore_index], len(rows.classes)

    class First(torch.nn.Module):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            scores = torch.zeros(len(images), classes, *images.shape[2:])
            scores[:, 0] = 30
            return scores

    score = evaluate(First(), rows, (rows.mean, rows.std))  # type: ignore[arg-type]
    share = float((known == 0).double().mean())
    assert score.miou == pytest.approx(share / len(set(known.tolist())), rel=1e-5)
    assert score.loss == pytest.approx(30 * (1 - share), rel=1e-4)


def test_a_gap_counts_in_deviations_of_the_seeds() -> None:
    assert gap([1.0, 3.0], [1.0, 3.0]) == 0
    assert gap([4.0, 6.0], [1.0, 3.0]) == pytest.approx(3 / math.sqrt(2))
