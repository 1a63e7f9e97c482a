"""Keras 3: a pack as a PyDataset for `fit`, `evaluate` and `predict`, with any backend.

    from readers import open_dataset
    from readers.bridges.keras import PackSequence

    train, val = (open_dataset("out", split=split, label="index") for split in ("train", "val"))
    batches = PackSequence(train, 16, shuffle=True, seed=7, crop=(512, 512), flip=True)  # options of `train.loader`
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=train.classes.ignore_index)
    model.fit(batches, epochs=20, validation_data=PackSequence(val, 16))

Channels are last, or first if `keras.config.image_data_format()` says so. Pixels are the stored numbers, mostly bytes:
start the model with `keras.layers.Rescaling(1 / 255)`, or ask for `normalize=True, dtype=torch.float16`. The threads of
the loader read ahead, so Keras needs no workers. The loader draws the order, whatever `fit(shuffle=…)` says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import finalize

import keras
import numpy as np
from numpy.typing import NDArray

from readers.contract.errors import RequestError
from readers.dataset import SegDataset


class PackSequence(keras.utils.PyDataset):
    """The batches of a loader, an epoch after the other: (images, labels), or up to three fields in their order."""

    def __init__(self, data: SegDataset, batch_size: int, **options: Any) -> None:
        super().__init__(workers=1, use_multiprocessing=False)
        fixed = {"output", "partners", "windows"} & options.keys()
        if fixed or len(data.fields) > 3:
            raise RequestError(
                f"PackSequence: {', '.join(fixed) or f'{len(data.fields)} fields'}: Keras takes (images, labels) or "
                "(images, labels, weights); open the data set with fields=(…), and leave such options out"
            )
        self.loader = data.loader(batch_size, output="numpy", **options)
        self._sides = [len(field.sides) for field in data.fields]
        self._first = keras.config.image_data_format() == "channels_first"
        self._passes: list[Iterator[Any]] = []
        self._asked: set[int] = set()
        finalize(self, self._passes.clear)  # Keras leaves a pass half read, and the interpreter ends before it does

    def __len__(self) -> int:
        return len(self.loader)

    def __getitem__(self, index: int) -> tuple[NDArray[Any], ...]:
        """Return the next batch. An index that comes again begins a new pass: Keras looks at the first batch before."""
        if not self._passes or index in self._asked:
            self._passes[:], self._asked = [iter(self.loader)], set()
        self._asked.add(index)
        batch = next(self._passes[0])
        if len(self._asked) == len(self):
            next(self._passes[0], None)  # ends the pass, so that the next one is of the next epoch
        return tuple(map(self._laid, batch, self._sides))

    def _laid(self, array: NDArray[Any], sides: int) -> NDArray[Any]:
        """Return an array with its channels where Keras wants them, without copying it."""
        has_channels = array.ndim > sides + 1
        return np.moveaxis(array, array.ndim - sides - 1, -1) if has_channels and not self._first else array
