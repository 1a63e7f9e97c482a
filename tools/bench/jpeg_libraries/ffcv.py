"""FFCV: a .beton file with JPEG pictures and labels as arrays, read by compiled threads into reused memory.

Its decoders that crop draw a window for themselves, so a label could not follow. Here whole rows are decoded, and then
a step of our own takes the same window of both, drawn from the number of the row. Its own decoders also decode the
whole row before they crop. Its writer stores half of the colours (4:2:0), so the same with all of them is there, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import simplejpeg
from ffcv.fields import NDArrayField, RGBImageField
from ffcv.fields.decoders import NDArrayDecoder, SimpleRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.pipeline.allocation_query import AllocationQuery
from ffcv.pipeline.compiler import Compiler
from ffcv.pipeline.operation import Operation
from ffcv.transforms import ToTensor
from ffcv.writer import DatasetWriter
from scenes.mosaics import SIZE, Mosaics

from bench.jpeg_libraries import CROP, QUALITY
from bench.libraries import BATCH, WORKERS, Loaders

ENCODER = "ffcv.fields.rgb_image.encode_jpeg"


def write(rows: Mosaics, out: Path) -> None:
    out.mkdir(parents=True)
    _write(rows, out / "4:2:0")
    with patch(ENCODER, _all_colours):
        _write(rows, out / "4:4:4")


def _write(rows: Mosaics, file: Path) -> None:
    fields = {
        "image": RGBImageField(write_mode="jpg", jpeg_quality=QUALITY),
        "label": NDArrayField(dtype=np.dtype(np.uint8), shape=SIZE),
    }
    DatasetWriter(str(file), fields, num_workers=1).from_indexed_dataset(rows, chunksize=10)


def _all_colours(image: Any, quality: int) -> Any:
    return np.frombuffer(simplejpeg.encode_jpeg(np.ascontiguousarray(image), quality, "RGB", "444"), np.uint8)


class Window(Operation):  # type: ignore[misc]
    """The window of each row that follows from the row's number."""

    def declare_state_and_memory(self, previous_state: Any) -> tuple[Any, Any]:
        shape = (CROP, CROP, *previous_state.shape[2:])
        return replace(previous_state, shape=shape), AllocationQuery(shape, previous_state.dtype)

    def generate_code(self) -> Callable[..., Any]:
        steps, tops, lefts = Compiler.get_iterator(), SIZE[0] - CROP + 1, SIZE[1] - CROP + 1

        def cut(rows: Any, out: Any, numbers: Any) -> Any:
            for each in steps(len(numbers)):
                top, left = numbers[each] * 7919 % tops, numbers[each] * 104729 % lefts
                out[each] = rows[each, top : top + CROP, left : left + CROP]
            return out[: len(numbers)]

        cut.is_parallel = cut.with_indices = True  # type: ignore[attr-defined]
        return cut


def loaders(out: Path) -> Loaders:
    found: Loaders = {}
    for file in sorted(out.iterdir()):
        loader = Loader(
            str(file),
            batch_size=BATCH,
            num_workers=WORKERS,
            os_cache=True,
            order=OrderOption.RANDOM,
            drop_last=False,
            pipelines={
                "image": [SimpleRGBImageDecoder(), Window(), ToTensor()],
                "label": [NDArrayDecoder(), Window(), ToTensor()],
            },
        )
        found[f"{file.name}, {WORKERS} threads"] = lambda loader=loader: loader  # type: ignore[misc]
    return found
