"""Bridges to trainers of other libraries: each program of tools/trainers trains, and finds the same samples."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from conftest import REPO
from test_docs_recipes import absent
from test_readers_receipts import TRACKERS as TESTED_TRACKERS
from trainers.table import programs

NEEDS: dict[str, str] = {
    "detectron2_seg": "detectron2",
    "fastai_unet": "fastai",
    "huggingface_mask2former": "accelerate",  # Trainer needs it, and transformers, which is not there without it
    "huggingface_segformer": "accelerate",
    "keras_fit": "keras",
    "mmseg": "mmseg",
    "monai_pictures": "monai",
    "monai_volumes": "monai",
    "nnunet": "nnunetv2",
    "segmentation_models_pytorch": "segmentation_models_pytorch",
    "torchgeo_map": "torchgeo",
    "torchgeo_tiles": "torchgeo",
    "torchvision_mask_rcnn": "torchvision",
    "ultralytics_segment": "ultralytics",
    "ultralytics_semantic": "ultralytics",
}
"""The package that each program needs in addition to our own."""
TRACKERS = {*TESTED_TRACKERS, "dvc"}
PIXELS_APART: dict[str, float] = {}
"""The largest difference of a value of the images, where the library decodes or resizes in another way."""
SCORES_APART: dict[str, float] = {}
"""The difference of the metric, where the pixels differ."""


def test_every_program_is_tested_and_every_bridge_has_one() -> None:
    """A program of a library has its name, and after that its task."""
    assert programs() == sorted(NEEDS)
    bridges = {path.stem for path in (REPO / "readers" / "bridges").glob("*.py")} - {"__init__", *TRACKERS}
    assert not [bridge for bridge in bridges if not any(name.startswith(bridge) for name in programs())]


@pytest.mark.long
@pytest.mark.parametrize("name", NEEDS)
def test_a_trainer_learns_the_same_from_a_pack(name: str, tmp_path: Path) -> None:
    if find_spec(NEEDS[name]) is None:
        absent(NEEDS[name])
    path = os.pathsep.join(map(str, (REPO, REPO / "tests" / "cpu_torchvision")))
    quiet = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": path, "HOME": str(tmp_path)}
    command = [sys.executable, str(REPO / "tools" / "run"), f"trainers.{name}"]
    done = subprocess.run(
        command, env={**os.environ, **quiet}, capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["samples"] >= 4
    assert found["values"] > 0
    assert found["labels"] > found["ignored"]
    assert found["most_apart"] <= PIXELS_APART.get(name, 0)
    assert found["labels_apart"] == 0
    own, pack = (found["losses"][side] for side in ("own", "pack"))
    assert all(map(math.isfinite, own + pack))
    assert pack[-1] < pack[0]
    assert len(own) == len(pack) >= 2
    assert math.isclose(own[-1], pack[-1], rel_tol=0.02 if name in PIXELS_APART else 1e-4)
    assert abs(found["scores"]["own"] - found["scores"]["pack"]) <= SCORES_APART.get(name, 1e-6)
