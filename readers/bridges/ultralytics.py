"""Ultralytics: train, validate and plot from a pack, with the library's own transforms, loaders, losses and metrics.

    from readers.bridges.ultralytics import SegmentTrainer, SemanticTrainer, SemanticValidator

    SemanticTrainer(overrides={"model": "yolo26n-sem.yaml", "data": "out/", "epochs": 10}).train()
    YOLO("yolo26n-seg.yaml").train(data="out/", trainer=SegmentTrainer)  # a pack with a field of ids
    YOLO("best.pt").val(data="out/", validator=SemanticValidator)

The folder of the run gets a `pack.yaml`, which `data=` takes, too. Subclasses of the trainers set what `FromPack` has,
such as the splits of a pack that are not called train and val, or a fold:

    class Trainer(SemanticTrainer):
        splits = {"train": "train", "val": "test"}
        options = {"fold": 0}  # of `open_dataset`; the splits of a fold are called train and val
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import cv2
import numpy as np
import yaml
from numpy.typing import NDArray
from ultralytics.data.converter import merge_multi_segment
from ultralytics.data.dataset import SemanticDataset, YOLODataset
from ultralytics.data.utils import get_split_fraction
from ultralytics.models.yolo.detect import DetectionTrainer, DetectionValidator
from ultralytics.models.yolo.segment import SegmentationTrainer, SegmentationValidator
from ultralytics.models.yolo.semantic import SemanticSegmentationTrainer, SemanticSegmentationValidator
from ultralytics.utils import USER_CONFIG_DIR, colorstr
from ultralytics.utils.ops import segments2boxes
from ultralytics.utils.torch_utils import unwrap_model

from readers.by_format import open_dataset
from readers.contract.errors import RequestError
from readers.labelled_pictures import check_pictures, ids_field, open_pictures
from readers.objects import Objects, things_of

Picture = NDArray[np.uint8]
Loaded = tuple[Picture, tuple[int, int], tuple[int, int]]


class YoloRows(YOLODataset):
    """The rows of a split in place of files, for a data set of the library. Its transforms and collate stay."""

    def get_img_files(self, img_path: str) -> list[str]:
        """Open the split, and return a name for each row, as a file would have it."""
        self.pack = self.data["pack"]
        root, split, options = self.pack["root"], self.pack["splits"][img_path], self.pack["options"]
        self.pictures = open_pictures(root, split, ("image",), **options)
        self.truth = open_pictures(root, split, ("label", *self.pack["ids"]), **options)
        rows = len(self.pictures)
        count = self.fraction if isinstance(self.fraction, int) else max(1, round(rows * self.fraction))
        folder = f"{self.pictures.root}/{img_path}"
        names = [f"{folder}/{self.pictures.key(row)}.png" for row in range(min(rows, count))]
        self.rows = {name: row for row, name in enumerate(names)}
        return names

    def get_label_files(self) -> Any:
        self.mask_files = self.label_files = self.im_files
        return self.mask_files

    def get_cache_hash(self) -> str:
        """Return what decides the labels: the generation of the pack, and how it is read."""
        return json.dumps([self.pictures.manifest.identity, len(self.im_files), self.single_cls, self.pack])

    def label_of(self, name: str) -> dict[str, Any]:
        """Return the facts of a row without its pixels: the size, and no objects."""
        row = self.rows[name]
        empty = {"cls": np.zeros((0, 1), np.float32), "bboxes": np.zeros((0, 4), np.float32), "segments": []}
        return {"im_file": name, "shape": self.pictures.size(row), **empty, "normalized": True, "bbox_format": "xywh"}

    def load_image(self, i: int, rect_mode: bool = True, resize_short: bool = False) -> Loaded:
        """Return the picture of a row in BGR, resized as the library does, and its sizes before and after."""
        if self.ims[i] is not None:
            return self.ims[i], self.im_hw0[i], self.im_hw[i]
        planes = self.pictures[self.rows[self.im_files[i]]][0].numpy()
        stored = cv2.merge(list(planes[::-1])) if len(planes) == 3 else np.ascontiguousarray(planes.transpose(1, 2, 0))
        picture = _resized(stored, self.imgsz, rect_mode, resize_short)
        loaded = picture, stored.shape[:2], picture.shape[:2]
        if self.augment and self.cache != "ram":  # mosaics take their other pictures from the buffer
            self.ims[i], self.im_hw0[i], self.im_hw[i] = loaded
            self.buffer.append(i)
            if 1 < len(self.buffer) >= self.max_buffer_length:
                oldest = self.buffer.pop(0)
                self.ims[oldest] = self.im_hw0[oldest] = self.im_hw[oldest] = None
        return loaded


class PackSemanticDataset(YoloRows, SemanticDataset):
    """Pictures and class numbers of a pack; 255 is ignored."""

    def _load_or_scan_cache(self, cache_path: Path, cache_hash: str) -> tuple[dict[str, Any], bool]:
        labels = [{**self.label_of(name), "mask_file": name, "mode": "L"} for name in self.im_files]
        counts = len(labels), 0, 0, 0, len(labels)
        return {"labels": labels, "results": counts, "hash": cache_hash, "version": "", "msgs": []}, False

    def load_image(self, i: int, rect_mode: bool = True, resize_short: bool = True) -> Loaded:
        return super().load_image(i, rect_mode, resize_short and self.augment)

    def load_mask(self, index: int, image_shape: tuple[int, int] | None = None) -> Any:
        return self.truth[self.rows[self.im_files[index]]][0].numpy()


class PackSegmentDataset(YoloRows):
    """Pictures of a pack, and its objects as outlines, which is all that the library's transforms move."""

    def _load_or_scan_cache(self, cache_path: Path, cache_hash: str) -> Any:
        folder = USER_CONFIG_DIR / "packs"
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{self.pictures.manifest.identity[:32]}-{self.pictures.split}.cache"
        return super()._load_or_scan_cache(folder / name, cache_hash)

    def verify_args(self) -> tuple[Any, Sequence[str]]:
        return self.label_of, self.im_files

    def result_to_label(self, result: dict[str, Any]) -> tuple[dict[str, Any], int, int, int, int, str]:
        return result, 0, 1, int(not len(result["cls"])), 0, ""

    def label_of(self, name: str) -> dict[str, Any]:
        """Return the class, outline and box of each object of a row. An outline goes through centres of pixels."""
        label, ids = (part.numpy() for part in self.truth[self.rows[name]])
        objects = Objects.of(ids, label, self.pack["things"])
        size = np.array(ids.shape[::-1], np.float32)
        outlines = [(outline + 0.5) / size for outline in _outlines(objects)]
        facts = super().label_of(name)
        if outlines:
            facts["cls"] = objects.classes[:, None].astype(np.float32)
            facts["bboxes"], facts["segments"] = segments2boxes(outlines).astype(np.float32), outlines
        return facts


class FromPack:
    """Settings of a trainer or a validator that reads a pack."""

    args: Any
    data: Any
    opens: ClassVar[type[YoloRows]]
    splits: ClassVar[Mapping[str, str]] = {"train": "train", "val": "val", "test": "test"}
    """The split of the pack for each name that the library has."""
    options: ClassVar[Mapping[str, Any]] = {}
    """Options of `open_dataset`, such as `{"fold": 0}`."""
    things: ClassVar[Sequence[str] | None] = None
    """The classes that objects have; by default all but a background."""
    ids: ClassVar[str | None] = None
    """The field of ids; by default the only one."""

    def rows(self, mode: str, batch: int | None, rect: bool, stride: int) -> Any:
        """Return the data set of a mode, with the settings that the library gives its own."""
        args, semantic = self.args, self.opens is PackSemanticDataset
        if "pack" not in self.data:
            raise RequestError(f"data={args.data}: this file names no pack; give data= the folder of a pack")
        split = "train" if mode == "train" else args.split or "val"
        return self.opens(
            img_path=split,
            imgsz=args.imgsz,
            batch_size=batch,
            augment=mode == "train",
            hyp=args,
            rect=args.rect or rect,
            cache=None if args.cache == "disk" else args.cache or None,
            single_cls=args.single_cls or False,
            stride=stride,
            pad=0.0 if mode == "train" or semantic else 0.5,
            prefix=colorstr(f"{mode}: "),
            classes=args.classes,
            fraction=get_split_fraction(args.fraction, split),
            data=self.data,
            task=args.task,
        )

    def described(self, folder: Path) -> str:
        """Write the file that describes the pack to the library, unless `data` is one. Return its path."""
        root = str(self.args.data)
        if root.endswith((".yaml", ".yml")):
            return root
        every = open_dataset(root, split="all", **{key: self.options[key] for key in {*self.options} - {"fold"}})
        check_pictures(root, every.manifest)
        semantic = self.opens is PackSemanticDataset
        stored = [split.name for split in every.manifest.splits]
        splits = {name: split for name, split in self.splits.items() if split in stored or "fold" in self.options}
        needed = {self.args.split or "val", *(("train",) if self.args.mode == "train" else ())}
        if missing := needed - {*splits}:
            raise RequestError(
                f"{root}: splits are {', '.join(stored)}, and none is named for {', '.join(sorted(missing))}: use "
                f"a subclass of {type(self).__name__} with splits = {{'train': …, 'val': …}}, or build the pack with "
                "--split train=90,val=10"
            )
        things = range(len(every.classes)) if semantic else things_of(every.classes, self.things)
        if semantic and len(things) < 2:
            raise RequestError(f"{root}: one class is nothing to learn; build the pack with a class for the background")
        facts = {
            "path": str(folder.absolute()),
            **dict.fromkeys(("train", "val", *splits), "."),  # the library asks for these two
            "names": dict(enumerate(every.classes.names[thing] for thing in things)),
            "channels": len(every.manifest.field("image").bands or ()),
            "masks_dir": "label",
            "pack": {
                "root": root if "://" in root else str(Path(root).absolute()),
                "splits": splits,
                "options": dict(self.options),
                "things": list(things),
                "ids": [] if semantic else [ids_field(root, every.manifest, self.ids)],
            },
        }
        path = folder / "pack.yaml"
        path.write_text(yaml.safe_dump(facts, sort_keys=False), encoding="utf-8")
        return str(path)


class PackTrainer(FromPack, DetectionTrainer):
    """A trainer that reads a pack, for training and for validation."""

    def get_dataset(self) -> Any:
        self.args.data = self.described(self.save_dir)
        return super().get_dataset()

    def build_dataset(self, img_path: str, mode: str = "train", batch: int | None = None) -> Any:
        stride = max(int(unwrap_model(self.model).stride.max()), 32)
        return self.rows(mode, batch, mode == "val", stride)


class PackValidator(FromPack, DetectionValidator):
    """A validator that reads a pack."""

    def __call__(self, trainer: Any = None, model: Any = None, **options: Any) -> Any:
        if trainer is None:
            self.args.data = self.described(self.save_dir)
        return super().__call__(trainer, model, **options)

    def build_dataset(self, img_path: str, mode: str = "val", batch: int | None = None) -> Any:
        return self.rows(mode, batch, False, self.stride)


class SemanticTrainer(PackTrainer, SemanticSegmentationTrainer):
    """Trains a model of classes, as `SemanticSegmentationTrainer`."""

    opens = PackSemanticDataset


class SemanticValidator(PackValidator, SemanticSegmentationValidator):
    """Validates a model of classes, as `SemanticSegmentationValidator`."""

    opens = PackSemanticDataset


class SegmentTrainer(PackTrainer, SegmentationTrainer):
    """Trains a model of objects, as `SegmentationTrainer`."""

    opens = PackSegmentDataset


class SegmentValidator(PackValidator, SegmentationValidator):
    """Validates a model of objects, as `SegmentationValidator`."""

    opens = PackSegmentDataset


def _resized(picture: Picture, imgsz: int | Sequence[int], keep_ratio: bool, by_short_side: bool) -> Picture:
    """Scale a picture as the library does: one of its sides becomes `imgsz`, or both without `keep_ratio`."""
    height, width = picture.shape[:2]
    shape = (imgsz, imgsz) if isinstance(imgsz, int) else tuple(imgsz)
    side, longest = (min if by_short_side else max)(height, width), max(shape)
    if keep_ratio:
        sides = [longest if part == side else math.ceil(part * (longest / side)) for part in (height, width)]
        shape = (sides[0], sides[1])
    if shape == (height, width):
        return picture
    resized = cv2.resize(picture, shape[::-1], interpolation=cv2.INTER_LINEAR)
    return resized.reshape(*shape, -1).astype(np.uint8, copy=False)


def _outlines(objects: Objects) -> list[NDArray[np.float32]]:
    """Return the outer outline of each object. Thin lines join its parts, as when the library reads COCO."""
    outlines = []
    for number, (left, top, right, bottom) in enumerate(objects.boxes().tolist(), start=1):
        mask = (objects.place[top:bottom, left:right] == number).astype(np.uint8)
        parts, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE, offset=(left, top))
        parts = [part.reshape(-1, 2) for part in parts]
        outline = parts[0] if len(parts) == 1 else np.concatenate(merge_multi_segment(parts))
        outlines.append(np.resize(outline, (max(len(outline), 3), 2)).astype(np.float32))
    return outlines
