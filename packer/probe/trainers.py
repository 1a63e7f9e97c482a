"""Trainers whose folder it is: the lines with which they read the pack of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from packer.classes.yaml_names import has_names
from readers.contract.regular_files import open_raw

if TYPE_CHECKING:
    from packer.probe.probe import ProbeResult

OBJECTS = "--field instance=ids"
"""The option with which a build keeps the objects of annotations."""
MOST_BYTES = 1 << 16


@dataclass(frozen=True)
class Trainer:
    """A trainer that reads such folders, why we think so, and what reads the pack."""

    name: str
    evidence: str
    lines: tuple[str, ...]
    build: str = ""
    """The options that a build needs for it, besides the proposed ones."""


def trainers_of(raw: Path, result: ProbeResult) -> tuple[Trainer, ...]:
    """Return the trainers of a folder that was probed."""
    return tuple(_trainers(raw, result)) if raw.is_dir() else ()


def _trainers(raw: Path, result: ProbeResult) -> Iterator[Trainer]:
    annotations = result.annotated.layout.partition(" ")[0] if result.annotated is not None else ""
    if (settings := _data_yaml(raw)) is not None:
        yield _ultralytics(settings, bool(annotations))
    if annotations in ("coco", "panoptic"):
        yield from _detectors(annotations)
    if result.survey is not None and result.survey.has_volumes:
        yield _monai()
    if _is_nnunet(raw):
        yield Trainer(
            "nnU-Net",
            "dataset.json",
            ("python docs/recipes/nnunet.py $nnUNet_preprocessed/Dataset001_NAME/nnUNetPlans_3d_fullres",),
        )
    if (metadata := _metadata(raw)) is not None:
        yield _hugging_face(metadata)
    if result.pairing is not None and result.pairing.layout == "VOC":
        yield _mmseg()


def _ultralytics(settings: Path, has_outlines: bool) -> Trainer:
    kind, model = ("SegmentTrainer", "yolo26n-seg.yaml") if has_outlines else ("SemanticTrainer", "yolo26n-sem.yaml")
    lines = (
        f"from readers.bridges.ultralytics import {kind}",
        f'{kind}(overrides={{"model": "{model}", "data": "out/", "epochs": 10}}).train()',
    )
    return Trainer("Ultralytics", settings.name, lines, OBJECTS if has_outlines else "")


def _detectors(annotations: str) -> Iterator[Trainer]:
    torchvision = (
        "from readers.bridges.torchvision import DetectionRows, collate",
        'train = DetectionRows("out", "train")',
    )
    yield Trainer("torchvision Mask R-CNN", annotations, torchvision, OBJECTS)
    hugging_face = (
        "from readers.bridges.huggingface import ObjectRows, collate_objects",
        'train = ObjectRows("out", "train", processor)',
    )
    yield Trainer("Mask2Former of Hugging Face", annotations, hugging_face, OBJECTS)
    detectron = (
        "from readers.bridges.detectron2 import register_pack",
        'register_pack("own_train", "out", "train", ids="instance")',
    )
    yield Trainer("Detectron2", annotations, detectron, OBJECTS)


def _monai() -> Trainer:
    lines = ("from readers.bridges.monai import PackList", 'rows = PackList("out", split="train")')
    return Trainer("MONAI", "volumes", lines)


def _hugging_face(metadata: Path) -> Trainer:
    lines = (
        "from readers.bridges.huggingface import SemanticRows",
        'train = SemanticRows("out", "train", SegformerImageProcessor())',
    )
    return Trainer("Hugging Face transformers", metadata.name, lines)


def _mmseg() -> Trainer:
    lines = (
        'custom_imports = dict(imports=["readers.bridges.mmseg"])',
        'dataset = dict(type="PackDataset", data_root="out", split="train", pipeline=train_pipeline)',
    )
    return Trainer("MMSegmentation", "VOC", lines)


def _data_yaml(raw: Path) -> Path | None:
    """Return the settings of a data set of Ultralytics."""
    for path in sorted(raw.glob("*.y*ml")):
        head = _head(path)
        if has_names(head) and b"train" in head:
            return path
    return None


def _is_nnunet(raw: Path) -> bool:
    head = _head(raw / "dataset.json")
    try:
        document = json.loads(head) if len(head) < MOST_BYTES else None
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and {"channel_names", "labels", "file_ending"} <= set(document)


def _metadata(raw: Path) -> Path | None:
    """Return a table of a Hugging Face imagefolder that names masks."""
    paths = [
        path for name in ("metadata.jsonl", "metadata.csv") for path in (raw / name, *sorted(raw.glob(f"*/{name}")))
    ]
    for path in paths:
        first = _head(path).partition(b"\n")[0]
        if b"file_name" in first.replace(b"_file_name", b"") and b"_file_name" in first:
            return path
    return None


def _head(path: Path) -> bytes:
    """Return the beginning of a file; nothing if it is missing, or not a regular file."""
    try:
        with open_raw(path) as file:
            return file.read(MOST_BYTES)
    except OSError:
        return b""
