"""Calls of the same kernel in several threads, with the same input, which one more thread may change."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
SHAPE = (120, 160, 3)
THREADS = 4
POOL = ThreadPoolExecutor(THREADS)
CALLS: dict[str, tuple[tuple[int, ...], Callable[[Bytes, Bytes], tuple[Any, ...]]]] = {
    "readers.contract.onehot_kernel.expand": ((5, 120, 480), lambda pixels, out: (pixels.reshape(120, -1), out)),
    "readers.formats.gather_kernel.gather": (
        (9, 5000),
        lambda pixels, out: ([(pixels.reshape(-1), [5001 * n for n in range(9)], list(range(9)))], out),
    ),
    "readers.window_kernel.copy": (SHAPE, lambda pixels, out: (pixels, out, True)),
    "readers.formats.planes_kernel.split": ((3, *SHAPE[:2]), lambda pixels, out: (pixels, out)),
    "packer.pixels.area_kernel.area_mean": ((3, 50, 77), lambda pixels, out: (pixels, out)),
    "packer.decoding.unfilter_kernel.unfilter": ((100, 575), lambda pixels, out: (pixels.reshape(-1), out, 8, 1)),
    "packer.pixels.distinct_kernel.numbers": ((256,), lambda pixels, out: (pixels.reshape(120, -1), out)),
    "packer.pixels.distinct_kernel.colours": (
        (120, 160),
        lambda pixels, out: (pixels.reshape(120, -1), out, np.empty(768, np.uint8)),
    ),
    "packer.pixels.sample_kernel.sample": (
        (50, 99),
        lambda pixels, out: (
            pixels.reshape(120, -1),
            np.arange(256, dtype=np.uint8),
            np.arange(50) * 2,
            np.arange(99) * 3,
            out,
            np.empty(256, np.int64),
        ),
    ),
}
"""The shape of what each function writes, and its arguments."""


def function(name: str) -> Callable[..., object]:
    """Return a function of a kernel that has been imported."""
    module, _, attribute = name.rpartition(".")
    found: Callable[..., object] = getattr(sys.modules[module], attribute)
    return found


def case(dice: np.random.Generator) -> int:
    """Without changes each thread must get the same; with changes a kernel must stay within its arrays."""
    memory = bytearray(dice.bytes(int(np.prod(SHAPE))))
    pixels = np.frombuffer(memory, np.uint8).reshape(SHAPE)
    pixels.reshape(100, -1)[:, 0] %= 5  # filters that exist
    name = list(CALLS)[dice.integers(len(CALLS))]
    expected, is_changed = _result(name, pixels), bool(dice.integers(2))
    running = [POOL.submit(_result, name, pixels) for _ in range(THREADS)]
    while is_changed and not all(each.done() for each in running):
        pixels[dice.integers(len(pixels))] = dice.integers(256)
        time.sleep(0)  # else the threads would wait for the interpreter
        try:
            memory.append(0)
        except BufferError:  # it keeps its place as long as someone reads it
            continue
        raise AssertionError(f"{name}: its input could move")
    results = [each.result() for each in running]
    assert is_changed or results == [expected] * THREADS, name
    return 1


def _result(name: str, pixels: Bytes) -> tuple[bytes, object]:
    shape, arguments = CALLS[name]
    out = np.zeros(shape, np.uint8)
    returned = function(name)(*arguments(pixels, out))
    return out.tobytes(), returned
