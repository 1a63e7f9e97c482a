"""Train Detectron2's SemanticSegmentor: with data sets of PNG files, and with a pack. Compare its objects, too.

tools/run trainers.detectron2_seg [--folder FOLDER]
"""

from __future__ import annotations

import logging
from itertools import chain, islice
from pathlib import Path
from typing import Any

import cv2
import detectron2
import numpy as np
import torch
from detectron2.config import get_cfg
from detectron2.data import DatasetCatalog, DatasetMapper, MetadataCatalog
from detectron2.data import build_detection_test_loader as test_loader
from detectron2.data import build_detection_train_loader as train_loader
from detectron2.data.samplers import TrainingSampler
from detectron2.engine import SimpleTrainer
from detectron2.evaluation import SemSegEvaluator, inference_on_dataset
from detectron2.modeling import build_model
from detectron2.structures import BoxMode
from detectron2.utils.env import seed_all_rng
from detectron2.utils.events import EventStorage
from PIL import Image
from pycocotools import mask as rle
from scenes.numbered import IGNORED, NAMES, write_numbered
from scenes.pictures import write_picture

from packer import IdsField, build_pack
from readers.bridges.detectron2 import register_pack
from trainers.comparison import Comparison, Epoch, both_alone_and_with_workers, compared, report

EPOCHS, STEPS, BATCH = 3, 6, 2


def list_files(raw: Path, split: str) -> list[dict[str, Any]]:
    """Return pictures, labels and objects of files, as a user of Detectron2 lists them."""
    dicts = []
    for number, label in enumerate(sorted((raw / split / "labels").iterdir())):
        ids = np.array(Image.open(raw / split / "objects" / label.name))
        facts = {"file_name": str(raw / split / "images" / label.name), "sem_seg_file_name": str(label)}
        size = {"height": ids.shape[0], "width": ids.shape[1]}
        objects = [car((ids == number).astype(np.uint8)) for number in range(1, ids.max() + 1)]
        dicts.append({**facts, **size, "image_id": number, "annotations": objects})
    return dicts


def car(mask: Any) -> dict[str, Any]:
    """Return the annotation of an object."""
    shape = {"bbox": [*map(float, cv2.boundingRect(mask))], "bbox_mode": BoxMode.XYWH_ABS}
    return {**shape, "category_id": NAMES.index("car"), "segmentation": rle.encode(np.asfortranarray(mask))}


def prepare(folder: Path) -> None:
    """Write pictures, labels and objects, pack them, and register "own_train", "pack_train" and so on."""
    raw, pack = folder / "raw", folder / "pack"
    write_numbered(raw)
    for label in raw.glob("*/labels/*.png"):
        cars = (np.array(Image.open(label)) == NAMES.index("car")).astype(np.uint8)
        write_picture(label.parent.parent / "objects" / label.name, cv2.connectedComponents(cars)[1].astype(np.uint8))
    objects = IdsField("instance", "{split}/objects/{key}.png")
    templates: dict[str, Any] = {"image": "{split}/images/{key}.png", "label": "{split}/labels/{key}.png"}
    options: dict[str, Any] = {"labels": "index", "classes": NAMES, "ignore": [str(IGNORED)], "size": "native"}
    build_pack(raw, pack, fields=[objects], workers=1, **templates, **options)
    for split in ("train", "val"):
        DatasetCatalog.register(f"own_{split}", lambda split=split: list_files(raw, split))
        MetadataCatalog.get(f"own_{split}").set(stuff_classes=[*NAMES], ignore_label=IGNORED)
        register_pack(f"pack_{split}", pack, split, ids="instance")


def settings(side: str) -> Any:
    """Return the configuration of the smallest SemanticSegmentor, with its usual augmentation."""
    cfg = get_cfg()
    cfg.DATASETS.TRAIN, cfg.DATASETS.TEST = (f"{side}_train",), (f"{side}_val",)
    cfg.MODEL.DEVICE, cfg.MODEL.WEIGHTS, cfg.MODEL.META_ARCHITECTURE = "cpu", "", "SemanticSegmentor"
    cfg.MODEL.BACKBONE.NAME, cfg.MODEL.BACKBONE.FREEZE_AT = "build_resnet_fpn_backbone", 0
    cfg.MODEL.RESNETS.OUT_FEATURES, cfg.MODEL.FPN.IN_FEATURES = [["res2", "res3", "res4", "res5"] for _ in range(2)]
    cfg.MODEL.RESNETS.DEPTH, cfg.MODEL.RESNETS.RES2_OUT_CHANNELS, cfg.MODEL.RESNETS.NORM = 18, 64, "BN"
    cfg.MODEL.FPN.OUT_CHANNELS, cfg.MODEL.SEM_SEG_HEAD.CONVS_DIM = 16, 16
    cfg.MODEL.SEM_SEG_HEAD.NUM_CLASSES, cfg.MODEL.SEM_SEG_HEAD.IGNORE_VALUE = len(NAMES), IGNORED
    cfg.INPUT.MIN_SIZE_TRAIN, cfg.INPUT.MIN_SIZE_TEST, cfg.INPUT.MASK_FORMAT = (48, 64, 80), 64, "bitmask"
    cfg.MODEL.SEM_SEG_HEAD.NORM, cfg.DATALOADER.FILTER_EMPTY_ANNOTATIONS = "BN", False
    cfg.SOLVER.IMS_PER_BATCH, cfg.DATALOADER.NUM_WORKERS = BATCH, 0
    return cfg


def batches(side: str, workers: int = 0) -> Any:
    """Return Detectron2's loader of training batches, which has no end."""
    cfg = settings(side)
    cfg.DATALOADER.NUM_WORKERS = workers
    rows = len(DatasetCatalog.get(f"{side}_train"))
    return train_loader(cfg, mapper=DatasetMapper(cfg, True), sampler=TrainingSampler(rows, seed=0))


class Trainer(SimpleTrainer):
    """Detectron2's trainer, which also keeps the loss of each step."""

    def _write_metrics(self, loss_dict: dict[str, Any], *_: Any, **__: Any) -> None:
        self.kept = [*getattr(self, "kept", []), float(sum(loss_dict.values()).detach())]

    def after_train(self) -> None:
        """Skip the writing of metrics that were not kept."""


def learn(side: str) -> tuple[list[float], float]:
    """Return the loss of each epoch, and the mean IoU of SemSegEvaluator in per cent."""
    seed_all_rng(0)
    cfg = settings(side)
    model = build_model(cfg)
    trainer = Trainer(model, batches(side), torch.optim.Adam(model.parameters(), 0.002))
    trainer.train(0, EPOCHS * STEPS)
    with EventStorage():
        evaluator = SemSegEvaluator(f"{side}_val", distributed=False)
        found = inference_on_dataset(model, test_loader(cfg, f"{side}_val"), evaluator)
    return np.reshape(trainer.kept, (EPOCHS, STEPS)).mean(1).tolist(), float(found["sem_seg"]["mIoU"])


def objects_of(row: dict[str, Any]) -> list[Any]:
    """Return the numbers of the objects of a sample: classes, boxes and masks; none of a sample without objects."""
    found = row["instances"]
    return [found.gt_classes, found.gt_boxes.tensor, found.gt_masks.tensor] if len(found) else []


def compare(folder: Path) -> Comparison:
    """Compare augmented batches with their objects, and train from both."""
    logging.getLogger("detectron2").setLevel(logging.ERROR)
    prepare(folder)
    drawn = {}
    for side in ("own", "pack"):
        seed_all_rng(0)
        cfg = settings(side)
        cfg.MODEL.MASK_ON = True
        mapper = DatasetMapper(cfg, True)
        drawn[side] = [mapper(facts) for facts in DatasetCatalog.get(f"{side}_train")]
    pairs = [*zip(drawn["own"], drawn["pack"], strict=True)]
    trained = {side: learn(side) for side in drawn}
    return compared(
        "Detectron2",
        detectron2.__version__,
        samples=len(pairs),
        images=[(mine["image"], packed["image"]) for mine, packed in pairs],
        labels=[
            *((mine["sem_seg"], packed["sem_seg"]) for mine, packed in pairs),
            *zip(*(chain.from_iterable(map(objects_of, side)) for side in zip(*pairs, strict=True)), strict=True),
        ],
        runs=trained,
        metric="mIoU of SemSegEvaluator",
        ignored=IGNORED,
        note="with Detectron2's augmentation; labels are those of pixels, and classes, boxes and masks of objects",
    )


def loaders(folder: Path) -> dict[str, Epoch]:
    """Return an epoch of each, with Detectron2's augmentation."""
    prepare(folder)

    def epoch(side: str, workers: int) -> Epoch:
        return lambda: islice(batches(side, workers), STEPS)

    return both_alone_and_with_workers(epoch)


def main() -> None:
    report(compare, __doc__)


if __name__ == "__main__":
    main()
