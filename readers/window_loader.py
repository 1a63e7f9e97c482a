"""`window_loader`: a loader of all windows of a data set's rows, in order, with their keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.batch_memory import BatchMemory
from readers.batches import Batches, ReadAhead
from readers.contract.errors import RequestError
from readers.loader import Facts, Loader, Output
from readers.permutation import Numbers
from readers.sliding_windows import SlidingWindows
from readers.window_batches import WindowBatches
from readers.window_order import WindowOrder


def window_loader(
    batches: Batches,
    windows: SlidingWindows,
    others: Mapping[str, Any],
    rank: int,
    world_size: int,
    ahead: ReadAhead,
    output: Output,
    pin_memory: bool | None,
    memory: BatchMemory,
    facts: Facts,
) -> Loader:
    """Return a loader of windows of the rows of `batches`. `others`: further options by name, which it refuses if they
    are set."""
    unfit = [name for name, option in others.items() if option]
    if unfit:
        raise RequestError(f"windows= delivers all windows of all rows in order: leave out {', '.join(unfit)}")
    reader, rows = batches.reader, batches.rows

    def sizes(indices: Numbers) -> NDArray[np.int64]:
        return reader.sizes(rows.at(indices).tolist())

    order = WindowOrder(len(rows), sizes, windows, rank, world_size)
    reading = WindowBatches(
        reader, rows, batches.size, batches.crop, batches.tone, False, batches.training, windows=windows
    )
    return Loader(reading, order, ahead, output, pin_memory, memory, facts)
