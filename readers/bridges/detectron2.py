"""Detectron2: a pack as a registered data set, which its own mappers, loaders and evaluators read.

    from readers.bridges.detectron2 import register_pack

    register_pack("street_train", "out", "train")
    register_pack("street_val", "out", "val")
    cfg.DATASETS.TRAIN, cfg.DATASETS.TEST = ("street_train",), ("street_val",)
    cfg.MODEL.SEM_SEG_HEAD.NUM_CLASSES = len(MetadataCatalog.get("street_train").stuff_classes)
    cfg.MODEL.SEM_SEG_HEAD.IGNORE_VALUE = MetadataCatalog.get("street_train").ignore_label

`register_pack(…, objects="instance")` adds annotations: the box, the class and the mask as RLE of each object of that
field of ids, for `cfg.INPUT.MASK_FORMAT = "bitmask"` and COCOEvaluator. It reads the ids of all rows once.

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


def register_pack(name: str, root: str | os.PathLike[str], split: str, objects: str | None = None) -> None:
    """Register a split, with its classes. `objects`: the field of ids whose objects are annotations."""
    folder = str(Path(root).absolute())
    data, classes = (rows_of(folder, split, field) for field in (IMAGE, LABEL))
    (picture,) = data.fields
    if picture.dtype != "|u1" or picture.planes != (3,) or len(picture.sides) == 3 or len(classes.classes) > 255:
        raise RequestError(
            f"{root}: Detectron2 reads pictures of three bands of bytes with at most 255 classes; pack them so, "
            "such as with --image-range"
        )
    DatasetCatalog.register(name, partial(_dicts, folder, split, objects))
    names, colours = [*classes.classes.names], classes.classes.palette.lookup[: len(classes.classes)].tolist()
    facts = {"stuff_classes": names, "stuff_colors": colours, "ignore_label": classes.classes.ignore_index}
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
