"""Train nnU-Net: with its own files of preprocessed cases, and with the pack of the recipe docs/recipes/nnunet.py.

tools/run trainers.nnunet [--folder FOLDER]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from importlib.metadata import version
from multiprocessing.pool import ThreadPool
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from program import REPO

from trainers.comparison import Comparison, Epoch, both_alone_and_with_workers, compared, report

CASES = 5
SIDES = (24, 32, 32)
NAME = "Dataset001_Balls"
LABELS = {"background": 0, "cell": 1, "core": 2}
PLANS = "nnUNetPlans"
RECIPE = REPO / "docs" / "recipes" / "nnunet.py"
EPOCHS, STEPS = 3, 3


def write_cases(raw: Path) -> None:
    """Write balls with a core, and an empty corner that nnU-Net marks as outside."""
    sitk: Any = import_module("SimpleITK")
    for number in range(CASES):
        rng = np.random.default_rng(number)
        centre = rng.integers(10, 16, 3)[:, None, None, None]
        distance = ((np.indices(SIDES) - centre) ** 2).sum(0)
        label = (distance < 49).astype(np.uint8) + (distance < 16)
        image = (label * 50 + rng.normal(100, 10, SIDES)).astype(np.float32)
        image[:9, :9, :9] = 0
        for name, array in {f"imagesTr/case_{number}_0000": image, f"labelsTr/case_{number}": label}.items():
            (raw / name).parent.mkdir(parents=True, exist_ok=True)
            sitk.WriteImage(sitk.GetImageFromArray(array), str(raw / f"{name}.nii.gz"))
    facts = {"channel_names": {"0": "CT"}, "numTraining": CASES, "file_ending": ".nii.gz", "labels": LABELS}
    (raw / "dataset.json").write_text(json.dumps(facts))


def prepare(folder: Path) -> tuple[Path, Path]:
    """Write cases, let nnU-Net plan and preprocess them, and pack them by the recipe. Return both folders."""
    for name in ("raw", "preprocessed", "results"):
        (folder / name).mkdir(parents=True)
        os.environ[f"nnUNet_{name}"] = str(folder / name)
    os.environ |= {"nnUNet_n_proc_DA": "0", "nnUNet_def_n_proc": "1", "nnUNet_compile": "false"}
    write_cases(folder / "raw" / NAME)
    plan()
    pack = folder / "preprocessed" / NAME / f"{PLANS}_3d_fullres"
    subprocess.run([sys.executable, str(RECIPE), str(pack), "1"], check=True, stdout=subprocess.DEVNULL)
    sys.path.append(str(RECIPE.parent))
    cases, own = import_module("nnunet").Cases(pack), folder / "own"
    own.mkdir()
    for case, files in cases.files.items():
        preprocessor = cases.settings.preprocessor_class(verbose=False)
        given = files["images"], files["label"], cases.plans, cases.settings, cases.dataset
        preprocessor.run_case_save(str(own / case), *given)
    return own, pack


def plan() -> None:
    """Let nnU-Net plan, in threads of this process; then make its network small."""
    planning: Any = import_module("nnunetv2.experiment_planning.plan_and_preprocess_api")
    threads = patch("multiprocessing.get_context", lambda _: SimpleNamespace(Pool=ThreadPool))
    with threads, patch.dict(os.environ, {"nnUNet_n_proc_DA": "1"}):
        planning.extract_fingerprints([1], num_processes=1, verbose=False, show_progress_bar=False)
        planning.plan_experiments([1])
    path = planned()
    plans = json.loads(path.read_text())
    network = plans["configurations"]["3d_fullres"]["architecture"]["arch_kwargs"]
    network["features_per_stage"] = [4 * (stage + 1) for stage in range(network["n_stages"])]
    path.write_text(json.dumps(plans))


def planned() -> Path:
    """Return the plans, next to the pack."""
    return Path(str(import_module("nnunetv2.paths").nnUNet_preprocessed), NAME, f"{PLANS}.json")


def trainer(folder: Path, packed: bool) -> Any:
    """Return a trainer of nnU-Net over a folder of its own, or over a pack."""
    torch.manual_seed(0)
    np.random.seed(0)
    plans, dataset = (json.loads(path.read_text()) for path in (planned(), planned().with_name("dataset.json")))
    kind: Any = import_module("nnunetv2.training.nnUNetTrainer.nnUNetTrainer").nnUNetTrainer
    made = (import_module("nnunet").PackTrainer if packed else kind)(
        {**plans, "continue_training": False}, "3d_fullres", 0, dataset, torch.device("cpu")
    )
    made.preprocessed_dataset_folder = str(folder)
    made.num_epochs, made.num_iterations_per_epoch, made.num_val_iterations_per_epoch = EPOCHS, STEPS, 1
    made.disable_checkpointing = True
    made.initialize()
    return made


def learn(made: Any) -> tuple[list[float], float]:
    """Return the loss of each epoch, and nnU-Net's pseudo Dice of the last one."""
    made.run_training()
    kept = made.logger.local_logger.my_fantastic_logging
    return [float(loss) for loss in kept["train_losses"]], float(kept["mean_fg_dice"][-1])


def compare(folder: Path) -> Comparison:
    """Compare all voxels of all cases, and train from both with nnU-Net's augmentation."""
    folders = dict(zip(("own", "pack"), prepare(folder), strict=True))
    trainers = {side: trainer(path, side == "pack") for side, path in folders.items()}
    cases = sorted(trainers["own"].dataset_class.get_identifiers(str(folders["own"])))
    loaded = {side: made.dataset_class(str(folders[side]), cases) for side, made in trainers.items()}
    pairs = [
        (np.array(loaded["own"].load_case(case)[field][:]), np.array(loaded["pack"].load_case(case)[field][:]))
        for field in (0, 1)
        for case in cases
    ]
    trained = {side: learn(trainer(path, side == "pack")) for side, path in folders.items()}
    return compared(
        "nnU-Net",
        version("nnunetv2"),
        samples=len(cases),
        images=pairs[: len(cases)],
        labels=pairs[len(cases) :],
        runs=trained,
        metric="mean pseudo Dice of the foreground",
        ignored=-1,
        note="Both draw the same windows and augmentation. -1 marks voxels outside, as ignored ones here.",
    )


def loaders(folder: Path) -> dict[str, Epoch]:
    """Return an epoch of nnU-Net's loader over both, with its augmentation."""

    def epoch(path: Path, packed: bool, workers: int) -> Iterator[object]:
        os.environ |= {"nnUNet_n_proc_DA": str(workers)}
        made = trainer(path, packed)
        batches = made.get_dataloaders()[0]
        yield from (next(batches) for _ in range(STEPS))

    folders = dict(zip(("own", "pack"), prepare(folder), strict=True))
    return both_alone_and_with_workers(lambda side, workers: partial(epoch, folders[side], side == "pack", workers))


def enlarge(side: int = 160) -> None:
    """Take cases of the usual size, for `trainers.speed`."""
    globals().update(SIDES=(64, side, side), STEPS=30)


def main() -> None:
    report(compare, __doc__)


if __name__ == "__main__":
    main()
