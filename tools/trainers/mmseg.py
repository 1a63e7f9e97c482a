"""Train an FCN of MMSegmentation with MMEngine's Runner: with BaseSegDataset over PNG files, and with a pack.

tools/run trainers.mmseg [--folder FOLDER]
"""

from __future__ import annotations

import logging
import sys
import types
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from scenes.numbered import IGNORED, NAMES, pack_numbered, write_numbered

from trainers.comparison import Comparison, Epoch, both_alone_and_with_workers, compared, report


def declare_absent() -> None:
    """Let mmcv-lite do for mmcv, and no ftfy for ftfy: only models that we do not use need what is in them."""
    for name, part in {"mmcv.ops": "mmcv._ext", "ftfy": "ftfy"}.items():
        if find_spec(part) is None:
            module = types.ModuleType(name)
            module.__getattr__ = _declared  # type: ignore[method-assign]
            sys.modules[name] = module


def _declared(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return type(name, (), {})


declare_absent()

import mmseg  # noqa: E402
import mmseg.models  # noqa: E402
from mmengine.config import ConfigDict  # noqa: E402
from mmengine.hooks import Hook  # noqa: E402
from mmengine.runner import Runner  # noqa: E402
from mmseg.datasets import BaseSegDataset  # noqa: E402
from mmseg.utils import register_all_modules  # noqa: E402

from readers.bridges.mmseg import PackDataset  # noqa: E402

EPOCHS = 3
SIZE = (48, 48)
FILES = [{"type": "LoadImageFromFile"}, {"type": "LoadAnnotations"}]
ROWS = [{"type": "LoadFromPack"}]
DRAWN: list[dict[str, Any]] = [
    {"type": "RandomResize", "scale": (96, 64), "ratio_range": (0.5, 2.0), "keep_ratio": True},
    {"type": "RandomCrop", "crop_size": SIZE, "cat_max_ratio": 0.75},
    {"type": "RandomFlip", "prob": 0.5},
    {"type": "PhotoMetricDistortion"},
]
LAST = [{"type": "PackSegInputs"}]


class Losses(Hook):
    """Keeps the loss of each step."""

    def __init__(self) -> None:
        self.steps: list[float] = []

    def after_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:
        self.steps.append(float(outputs["loss"].detach()))


def prepare(folder: Path) -> tuple[Path, Path]:
    """Write the pictures, and pack them."""
    raw, pack = folder / "raw", folder / "pack"
    write_numbered(raw)
    pack_numbered(raw, pack)
    return raw, pack


def datasets(folder: Path, raw: Path, pack: Path, split: str, steps: list[Any]) -> dict[str, dict[str, Any]]:
    """Return the settings of both data sets, with the same steps after loading."""
    prefix = {"img_path": f"{split}/images", "seg_map_path": f"{split}/labels"}
    own = {"type": "BaseSegDataset", "data_root": str(raw), "data_prefix": prefix, "img_suffix": ".png"}
    return {
        "own": {**own, "metainfo": {"classes": NAMES}, "pipeline": [*FILES, *steps]},
        "pack": {"type": "PackDataset", "data_root": str(pack), "split": split, "pipeline": [*ROWS, *steps]},
    }


def loader(dataset: dict[str, Any], *, training: bool, workers: int = 0) -> dict[str, Any]:
    """Return the settings of a loader, as configurations of MMSegmentation have them."""
    sampler = {"type": "DefaultSampler", "shuffle": training}
    return {"batch_size": 2 if training else 1, "num_workers": workers, "sampler": sampler, "dataset": dataset}


def model() -> dict[str, Any]:
    """Return the smallest FCN."""
    norm = {"type": "BN"}
    before = {
        "type": "SegDataPreProcessor",
        "mean": [123.7, 116.3, 103.5],
        "std": [58.4, 57.1, 57.4],
        "bgr_to_rgb": True,
    }
    body = {"type": "ResNetV1c", "depth": 18, "base_channels": 8, "stem_channels": 8, "norm_cfg": norm}
    head = {"type": "FCNHead", "in_channels": 64, "in_index": 3, "channels": 16, "num_convs": 1, "norm_cfg": norm}
    return {
        "type": "EncoderDecoder",
        "data_preprocessor": {**before, "size": SIZE, "seg_pad_val": IGNORED},
        "backbone": body,
        "decode_head": {**head, "num_classes": len(NAMES), "dropout_ratio": 0.0},
        "test_cfg": {"mode": "whole"},
    }


def learn(folder: Path, train: dict[str, Any], val: dict[str, Any]) -> tuple[list[float], float]:
    """Return the loss of each epoch, and the mean IoU of MMSegmentation in per cent."""
    losses = Losses()
    runner = Runner(
        ConfigDict(model()),
        str(folder / "runs"),
        train_dataloader=loader(train, training=True),
        val_dataloader=loader(val, training=False),
        train_cfg={"by_epoch": True, "max_epochs": EPOCHS, "val_interval": EPOCHS},
        val_cfg={"type": "ValLoop"},
        val_evaluator={"type": "IoUMetric", "iou_metrics": ["mIoU"]},
        optim_wrapper={"optimizer": {"type": "Adam", "lr": 0.01}},
        custom_hooks=[losses],
        default_hooks={"checkpoint": None},
        default_scope="mmseg",
        experiment_name=train["type"],
        randomness={"seed": 0},
        log_level="ERROR",
    )
    runner.train()
    score = runner.message_hub.get_scalar("val/mIoU").current()
    return np.reshape(losses.steps, (EPOCHS, -1)).mean(1).tolist(), float(score)


def compare(folder: Path) -> Comparison:
    """Compare all pictures as they are packed for the model, and train from both with random scales and crops."""
    register_all_modules()
    raw, pack = prepare(folder)
    plain = datasets(folder, raw, pack, "train", LAST)
    own = BaseSegDataset(**{name: plain["own"][name] for name in plain["own"] if name != "type"})
    packed = PackDataset(**{name: plain["pack"][name] for name in plain["pack"] if name != "type"})
    pairs = [*zip(own, packed, strict=True)]
    logging.getLogger("mmengine").setLevel(logging.ERROR)
    train = datasets(folder, raw, pack, "train", [*DRAWN, *LAST])
    val = datasets(folder, raw, pack, "val", LAST)
    trained = {side: learn(folder, train[side], val[side]) for side in train}
    return compared(
        "MMSegmentation",
        mmseg.__version__,
        samples=len(pairs),
        images=[(mine["inputs"], packed["inputs"]) for mine, packed in pairs],
        labels=[tuple(side["data_samples"].gt_sem_seg.data for side in pair) for pair in pairs],
        runs=trained,
        metric="mIoU of IoUMetric",
        ignored=IGNORED,
        note="with the augmentation of a usual configuration; both draw the same numbers",
    )


def loaders(folder: Path) -> dict[str, Epoch]:
    """Return an epoch of each data set with the augmentation of a usual configuration."""
    register_all_modules()
    raw, pack = prepare(folder)
    train = datasets(folder, raw, pack, "train", [*DRAWN, *LAST])

    def epoch(side: str, workers: int) -> Epoch:
        return lambda: Runner.build_dataloader(loader(train[side], training=True, workers=workers), seed=0)

    return both_alone_and_with_workers(epoch)


def enlarge(side: int = 512) -> None:
    """Take windows of the usual size, for `trainers.speed`."""
    DRAWN[0]["scale"], DRAWN[1]["crop_size"] = (960, 720), (side, side)


def main() -> None:
    report(compare, __doc__)


if __name__ == "__main__":
    main()
