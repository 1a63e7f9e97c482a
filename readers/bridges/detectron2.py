"""Detectron2: a pack as a registered data set, which its own mappers, loaders and evaluators read.

    from readers.bridges.detectron2 import register_pack

    register_pack("street_train", "out", "train")
    register_pack("street_val", "out", "val")
    cfg.DATASETS.TRAIN, cfg.DATASETS.TEST = ("street_train",), ("street_val",)
    cfg.MODEL.SEM_SEG_HEAD.NUM_CLASSES = len(MetadataCatalog.get("street_train").stuff_classes)
    cfg.MODEL.SEM_SEG_HEAD.IGNORE_VALUE = MetadataCatalog.get("street_train").ignore_label

`register_pack(…, ids="instance")` adds annotations: the box, the class and the mask as RLE of each object of that field
of numbers, for `cfg.INPUT.MASK_FORMAT = "bitmask"` and COCOEvaluator. It reads the ids of all rows once.

A row has a name such as `segpack:///data/out#train/12/image`, and Detectron2's PathManager opens it as plain pixels.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache, partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from detectron2.data import DatasetCatalog, MetadataCatalog
from detectron2.structures import BoxMode
from detectron2.utils.file_io import PathHandler, PathManager
from numpy.typing import NDArray
from pycocotools import mask as rle

from readers.by_format import open_dataset
from readers.contract.errors import RequestError
from readers.contract.fields import IMAGE, LABEL
from readers.dataset import SegDataset
from readers.labelled_pictures import check_pictures, ids_field

PREFIX = "segpack://"


class RowPath(str):
    """The name of a field of a row. A worker that gets one imports this file, and so knows how to open it."""

    __slots__ = ()


@cache
def rows_of(root: str, split: str, field: str) -> SegDataset:
    """Return the rows of a split, of one field; kept, because it is asked for each picture."""
    return open_dataset(root, split, fields=(field,), form={LABEL: "index"} if field == LABEL else None)


def pixels_of(path: str) -> NDArray[Any]:
    """Return the pixels that a name stands for."""
    place, row, field = path.removeprefix(PREFIX).rsplit("/", 2)
    root, split = place.rsplit("#", 1)
    pixels: NDArray[Any] = rows_of(root, split, field)[int(row)][0].numpy()
    return pixels


class PackHandler(PathHandler):
    """Opens the names of rows as pictures without compression, in the form of Netpbm."""

    def _get_supported_prefixes(self) -> list[str]:
        return [PREFIX]

    def _open(self, path: str, mode: str = "r", buffering: int = -1, **_: Any) -> BytesIO:
        pixels = pixels_of(path)
        height, width = pixels.shape[-2:]
        head = f"P{6 if pixels.ndim == 3 else 5} {width} {height} 255\n".encode()
        return BytesIO(head + (pixels.transpose(1, 2, 0) if pixels.ndim == 3 else pixels).tobytes())


PathManager.register_handler(PackHandler(), allow_override=True)


def register_pack(name: str, root: str | os.PathLike[str], split: str, ids: str | bool = False) -> None:
    """Register a split, with its classes. `ids`: the field whose objects are annotations, True for the only one."""
    folder = str(Path(root).absolute())
    manifest = open_dataset(folder, split, fields=None).manifest
    check_pictures(folder, manifest)
    if manifest.field(IMAGE).planes != (3,):
        raise RequestError(f"{folder}: Detectron2 reads pictures of three bands; build the pack with --bands rgb")
    objects = None if ids is False else ids_field(folder, manifest, ids if isinstance(ids, str) else None)
    DatasetCatalog.register(name, partial(_dicts, folder, split, objects))
    classes = manifest.classes
    names, colours = [*classes.names], classes.palette.lookup[: len(classes)].tolist()
    facts = {"stuff_classes": names, "stuff_colors": colours, "ignore_label": classes.ignore_index}
    if objects is not None:
        facts |= {"thing_classes": names, "thing_colors": colours}
    MetadataCatalog.get(name).set(evaluator_type="coco" if objects else "sem_seg", **facts)


def _dicts(root: str, split: str, objects: str | None) -> list[dict[str, Any]]:
    """Return the rows as Detectron2 lists pictures."""
    data, dicts = rows_of(root, split, IMAGE), []
    for row in range(len(data)):
        start, (height, width) = f"{PREFIX}{root}#{split}/{row}", data.size(row)
        facts: dict[str, Any] = {"file_name": RowPath(f"{start}/{IMAGE}"), "height": height, "width": width}
        facts |= {"image_id": row, "sem_seg_file_name": RowPath(f"{start}/{LABEL}"), "key": data.key(row)}
        if objects is not None:
            facts["annotations"] = [*annotations_of(pixels_of(f"{start}/{objects}"), pixels_of(f"{start}/{LABEL}"))]
        dicts.append(facts)
    return dicts


def annotations_of(ids: NDArray[Any], label: NDArray[Any]) -> Iterator[dict[str, Any]]:
    """Yield box, class and mask of each object. Its class is the one at its first pixel; an ignored one is a crowd."""
    numbers, first = np.unique(ids, return_index=True)
    for number, category in zip(numbers.tolist(), label.ravel()[first].tolist(), strict=True):
        if number:
            mask = ids == number
            rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
            box = [columns[0], rows[0], columns[-1] + 1, rows[-1] + 1]
            facts = {"bbox": [float(side) for side in box], "bbox_mode": BoxMode.XYXY_ABS}
            crowd = category == 255
            facts |= {"category_id": 0 if crowd else category, "iscrowd": int(crowd)}
            yield {**facts, "segmentation": rle.encode(np.asfortranarray(mask, np.uint8))}
