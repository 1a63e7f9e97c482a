"""Hugging Face transformers: rows of a pack through an image processor, for Trainer or any DataLoader.

    from readers.bridges.huggingface import ObjectRows, SemanticRows, collate_objects

    train = SemanticRows("out", "train", SegformerImageProcessor(size={"height": 512, "width": 512}))
    config = SegformerConfig(id2label=train.id2label, label2id=train.label2id)  # 255 is ignored by default
    Trainer(SegformerForSemanticSegmentation(config), arguments, train_dataset=train).train()

    train = ObjectRows("out", "train", Mask2FormerImageProcessor(size=…))  # a pack with a field of ids
    Trainer(Mask2FormerForUniversalSegmentation(…), arguments, collate_objects, train_dataset=train).train()

`transform=`, `fold=` and the other options of `open_dataset` work here, too.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from readers.labelled_pictures import IGNORED, ids_field, open_pictures
from readers.objects import Objects, things_of

Row = dict[str, Any]


class SemanticRows(Dataset[Row]):
    """Pictures and class numbers as `processor(images, labels)` returns them: `pixel_values` and `labels`.

    With the processor's `do_reduce_labels` the first class is ignored, and the others count from 0.
    """

    def __init__(self, root: str | os.PathLike[str], split: str | None, processor: Any, /, **options: Any) -> None:
        self.rows = open_pictures(root, split, **options)
        self.processor = processor
        names = self.rows.classes.names[int(bool(processor.do_reduce_labels)) :]
        self.id2label = dict(enumerate(names))
        self.label2id = {name: number for number, name in enumerate(names)}

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Row:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Row]:
        """Return rows that the processor made at once."""
        images, labels = zip(*self.rows.__getitems__(indices), strict=True)
        return _rows(self.processor(list(images), list(labels), input_data_format="channels_first"))


class ObjectRows(Dataset[Row]):
    """Pictures and their objects for models of masks: `pixel_values`, `pixel_mask`, `mask_labels`, `class_labels`.

    The processor makes masks of the rows of a batch from their numbers of objects. `things`: the classes of objects,
    by default all but a background. `stuff`: the pixels of each other class become a mask, too, for panoptic models;
    classes then count as in the pack. `ids`: the field of the numbers, False for a mask of each class.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        split: str | None,
        processor: Any,
        /,
        things: Sequence[str] | None = None,
        stuff: bool = False,
        ids: str | bool | None = None,
        **options: Any,
    ) -> None:
        fields = ["image", "label"]
        self.rows = open_pictures(root, split, fields, **options)
        table = self.rows.classes
        self.things = () if ids is False else things_of(table, things)
        self.every_class = stuff or ids is False
        if ids is not False:
            fields.append(ids_field(os.fspath(root), self.rows.manifest, ids if isinstance(ids, str) else None))
            self.rows = open_pictures(root, split, fields, **options)
        self.processor = processor
        numbers = range(len(table)) if self.every_class else self.things
        self.id2label = {number: table.names[thing] for number, thing in enumerate(numbers)}
        self.label2id = {name: number for number, name in self.id2label.items()}

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Row:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Row]:
        """Return rows that the processor made at once, all as large as the largest."""
        images, maps, classes = zip(*(self._segments(*row) for row in self.rows.__getitems__(indices)), strict=True)
        how = {"ignore_index": 0, "do_reduce_labels": False, "input_data_format": "channels_first"}
        return _rows(self.processor(list(images), list(maps), list(classes), **how))

    def _segments(
        self, image: torch.Tensor, label: torch.Tensor, ids: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor, dict[int, int]]:
        """Return a picture, a number for each pixel, 0 in no mask, and the class of each number."""
        labels = label.numpy()
        place, classes = np.zeros(labels.shape, np.int32), np.zeros(0, np.int64)
        if ids is not None:
            objects = Objects.of(ids.numpy(), labels, self.things)
            place, classes = objects.place, objects.classes
            if self.every_class:
                classes = np.array(self.things, np.int64)[classes]
        if self.every_class:
            rest = (place == 0) & (labels != IGNORED) & ~np.isin(labels, self.things)
            present = np.unique(labels[rest])
            place[rest] = len(classes) + 1 + np.searchsorted(present, labels[rest])
            classes = np.concatenate([classes, present])
        return image, torch.from_numpy(place), dict(enumerate(classes.tolist(), start=1))


def collate_objects(rows: Sequence[Row]) -> Row:
    """Return rows as a batch: pictures as one tensor, masks and classes as lists, for their numbers differ."""
    stacked = {name: torch.stack([row[name] for row in rows]) for name in ("pixel_values", "pixel_mask")}
    return {**stacked, **{name: [row[name] for row in rows] for name in ("mask_labels", "class_labels")}}


def _rows(made: Any) -> list[Row]:
    return [dict(zip(made, row, strict=True)) for row in zip(*made.values(), strict=True)]
