"""The recipe nnunet: cases that nnU-Net preprocesses, in a pack, and nnU-Net's own command that trains on it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from conftest import REPO
from test_docs_recipes import RECIPES, losses

CASES = 6
SIDES = (24, 32, 32)
LABELS = {"background": 0, "cell": 1, "core": 2}
PLAN = "from nnunetv2.experiment_planning.plan_and_preprocess_entrypoints import plan_and_preprocess_entry as main"
TRAIN = "from nnunetv2.run.run_training import run_training_entry as main"
SHORT = """
from nnunet import PackTrainer


class ShortTrainer(PackTrainer):
    def on_train_start(self):
        super().on_train_start()
        self.num_epochs, self.num_iterations_per_epoch, self.num_val_iterations_per_epoch = 2, 4, 1
"""


class Home(NamedTuple):
    """The folders of a data set in nnU-Net's raw and preprocessed data, and the pack in them."""

    raw: Path
    pack: Path

    @property
    def properties(self) -> dict[str, int]:
        """The time when `load` wrote the properties of each case."""
        paths = self.pack.with_name(f"{self.pack.name}-properties").iterdir()
        return {path.stem: path.stat().st_mtime_ns for path in paths}


def write_case(raw: Path, number: int) -> None:
    """Write two channels and the label of a ball with a core, with a corner of zeros and borders to be cropped."""
    sitk = pytest.importorskip("SimpleITK")
    rng, voxels = np.random.default_rng(number), np.indices(SIDES)
    distance = ((voxels - rng.integers(10, 16, 3)[:, None, None, None]) ** 2).sum(0)
    label = (distance < 49).astype(np.uint8) + (distance < 16)
    fields = {f"labelsTr/case_{number}": label}
    for channel in range(2):
        image = (label * 50 * (channel + 1) + rng.normal(100, 10, SIDES)).astype(np.float32)
        image[:, : 2 + number % 3] = image[:9, :9, :9] = 0
        fields[f"imagesTr/case_{number}_{channel:04}"] = image
    for name, array in fields.items():
        (raw / name).parent.mkdir(parents=True, exist_ok=True)
        volume = sitk.GetImageFromArray(array)
        volume.SetSpacing((1.0, 1.0, 1.5 if number % 2 else 1.0))
        sitk.WriteImage(volume, str(raw / f"{name}.nii.gz"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A data set of six small cases, with the plans that nnU-Net makes for it."""
    if find_spec("nnunetv2") is None:
        pytest.skip("needs nnunetv2, which brings its own torchvision: pip install nnunetv2")
    root, name = tmp_path_factory.mktemp("nnunet"), "Dataset001_Balls"
    raw = root / "raw" / name
    for number in range(CASES):
        write_case(raw, number)
    facts = {"channel_names": {"0": "CT", "1": "MR"}, "numTraining": CASES, "file_ending": ".nii.gz"}
    (raw / "dataset.json").write_text(json.dumps({**facts, "labels": LABELS}))
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("raw", "preprocessed", "results"):
            (root / variable).mkdir(exist_ok=True)
            patch.setenv(f"nnUNet_{variable}", str(root / variable))
        patch.setenv("nnUNet_n_proc_DA", "2")
        patch.setenv("nnUNet_def_n_proc", "1")
        program(PLAN, "-d", "1", "--no_pp", "-npfp", "1", cwd=root)
        yield Home(raw, root / "preprocessed" / name / "nnUNetPlans_3d_fullres")


def called(command: list[str], cwd: Path) -> str:
    """Return what a command prints. Its torchvision may be of another build than torch."""
    path = os.pathsep.join(map(str, (REPO, RECIPES, REPO / "tests" / "cpu_torchvision")))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    return done.stdout


def program(line: str, *arguments: str, cwd: Path) -> str:
    """Run a command of nnU-Net by the line that imports it, and return what it prints."""
    return called([sys.executable, "-c", f"{line}; main()", *arguments], cwd)


def packed(home: Home) -> str:
    return called([sys.executable, str(RECIPES / "nnunet.py"), str(home.pack)], home.raw)


@pytest.mark.long
def test_nnunet_trains_on_a_pack_of_what_it_preprocesses(home: Home, tmp_path: Path) -> None:
    """Each voxel, place and property is nnU-Net's; a case that is new, or lost its properties, is the one loaded."""
    assert packed(home) == f"{CASES} cases, 0 as before; none refused\n"
    first = home.properties
    script = [sys.executable, str(REPO / "tests" / "nnunet_checks.py"), str(home.pack), str(tmp_path / "theirs")]
    found = json.loads(called(script, tmp_path).splitlines()[-1])
    assert (found["cases"], found["differ"], found["numbers"]) == (CASES, [], [-1, 0, 1, 2])
    assert found["voxels"] > CASES * 2 * 10_000
    assert "belongs to another build than the pack; pack again" in found["refused"]

    shutil.copy(RECIPES / "nnunet.py", tmp_path)
    (tmp_path / "short.py").write_text(SHORT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("nnUNet_extTrainer", str(tmp_path))
        printed = program(TRAIN, "1", "3d_fullres", "0", "-tr", "ShortTrainer", "-device", "cpu", cwd=tmp_path)
    trained = losses(printed.replace("train_loss", "loss"))
    assert len(trained) == 2
    assert trained[1] < trained[0]
    assert "Mean Validation Dice" in printed

    write_case(home.raw, CASES)
    before = home.properties
    assert packed(home) == f"{CASES + 1} cases, {CASES} as before; none refused\n"
    assert {case for case, time in home.properties.items() if before.get(case) != time} == {f"case_{CASES}"}
    assert {case for case in first if first[case] != before[case]} == {"case_0"}, "the check wrote it again"
    home.pack.with_name(f"{home.pack.name}-properties").joinpath("case_3.npz").unlink()
    before = home.properties
    packed(home)
    assert {case for case, time in home.properties.items() if before.get(case) != time} == {"case_3"}


@pytest.mark.long
def test_other_plans_preprocess_all_cases_again(home: Home, tmp_path: Path) -> None:
    packed(home)
    plans = home.pack.with_name("nnUNetPlans.json")
    facts, before = json.loads(plans.read_text()), home.properties
    facts["configurations"]["3d_fullres"]["spacing"] = [2.0, 1.0, 1.0]
    plans.write_text(json.dumps(facts))
    assert ", 0 as before; none refused" in packed(home)
    assert all(before[case] != time for case, time in home.properties.items())
