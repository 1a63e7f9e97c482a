"""The pairs of a raw folder, decoded as the packer decodes them, one at a time: the input of all writers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import cv2
import numpy as np
from scenes.camera import image_path, label_path
from scenes.street import CLASSES, Pixels

from packer.classes.load import numbered_classes
from packer.decoding.decode import decode_image
from packer.decoding.rules import ImageRules
from packer.pixels.label_codec import LabelCodec
from packer.pixels.resize import Geometry
from packer.workers.memory import keep_memory
from readers.contract.classes import ClassTable
from readers.contract.regular_files import read_raw

RULES = ImageRules()


@dataclass(frozen=True)
class DecodedPairs:
    """Pairs of an image (side,side,3) and the class of each of its pixels (side,side), both uint8."""

    raw: Path
    count: int
    side: int

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, row: int) -> tuple[Pixels, Pixels]:
        codec, geometry = _codec(), Geometry((self.side, self.side))
        image = decode_image(read_raw(image_path(self.raw, row)), RULES)
        label = codec.decode(read_raw(label_path(self.raw, row)))
        planes = geometry.image(image.astype(np.uint8, copy=False))
        return np.asarray(cv2.merge(list(planes))), geometry.label(label).astype(np.uint8)


@cache
def _codec() -> LabelCodec:
    """Set up each process once like a worker of the packer: one thread, and memory that is kept."""
    cv2.setNumThreads(0)
    keep_memory()
    return LabelCodec(ClassTable(numbered_classes(range(len(CLASSES)))))
