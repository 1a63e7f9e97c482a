"""Random labels whose cells are counted by the kernel and by NumPy; then calls that must be refused."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

WRONG = (-1, 0, 3, 70_000, 2**31, 2**62, 2**63 - 1, -(2**63))


def cells(dice: np.random.Generator) -> int:
    """Count the cells of a label with the kernel and without it, find its largest class, then spoil a call."""
    from readers.contract import count_cells

    kernel = count_cells.KERNEL
    assert kernel is not None
    sides = dice.integers(1, 150, 2).tolist() if dice.integers(2) else dice.integers(1, 40, 3).tolist()
    classes, dtype = int(dice.integers(1, 300)), str(dice.choice(["u1", "u2"]))
    numbers = dice.integers(0, classes + 3, [-(-side // 7) for side in sides]).astype(dtype)
    for axis, side in enumerate(sides):
        numbers = numbers.repeat(7, axis).take(range(side), axis)
    index = np.ascontiguousarray(numbers)
    ours = count_cells.count_cells(index, classes)
    count_cells.KERNEL = None
    theirs = count_cells.count_cells(index, classes)
    count_cells.KERNEL = kernel
    for name in ours._fields:
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), (sides, classes, dtype, name)
    picture = index.reshape(-1, index.shape[-1])
    out = np.zeros((*(-(-side // 64) for side in picture.shape), classes), np.uint16)
    lengths = [64, 64]
    lengths[int(dice.integers(2))] = int(dice.choice(WRONG))
    with suppress(ValueError, OverflowError):
        kernel.count(picture, out if dice.integers(2) else out[..., :-1], *lengths)
    ends = np.sort(dice.integers(0, len(ours.cells) + 1, 4)).astype("<i8")
    if dice.integers(2):
        ends[int(dice.integers(4))] = int(dice.choice(WRONG))
    weights = dice.integers(0, 1 << 24, int(dice.integers(0, 6))).astype(np.uint32)
    with suppress(ValueError):
        largest, total = kernel.largest(ours.cells, ours.pixels, ends, weights, int(dice.integers(0, 3)))
        assert largest <= total
    return 1
