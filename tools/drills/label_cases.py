"""Random inputs of the kernels for PNGs and labels, and the check of their results."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from drills.arrays import UNTOUCHED, Dice, array, target
from drills.png_cases import FILTERS, random_png, unfiltered


def unfilter(dice: Dice) -> None:
    """A stream of random lines; one in ten has a filter that does not exist."""
    from packer.decoding import plain_png

    pixel, depth = int(dice.integers(1, 5)), 8
    if pixel == 1:
        depth = int(dice.choice([1, 2, 4, 8]))
    height, width = dice.integers(0, (4, 24)).tolist()
    size = (width * pixel * depth + 7) // 8
    lines = dice.integers(0, 256, (height, size + 1), dtype="uint8")
    lines[:, 0] = dice.integers(0, FILTERS, height)
    is_right = height == 0 or dice.random() > 0.1
    if not is_right:
        lines[dice.integers(height), 0] = dice.integers(FILTERS, 256)
    out, gaps = target(dice, (height, width * pixel))
    assert plain_png.KERNEL.unfilter(lines.tobytes(), out, depth, pixel) == is_right  # type: ignore[union-attr]
    assert (gaps == UNTOUCHED).all()
    if is_right and out.size:
        expected = np.frombuffer(b"".join(unfiltered(lines.tobytes(), height, size, pixel)), np.uint8)
        bits = np.unpackbits(expected.reshape(height, size, 1), axis=2).reshape(height, -1, depth)[:, : out.shape[1]]
        assert np.array_equal(out, np.packbits(bits, axis=2)[..., 0] >> 8 - depth)


def png(dice: Dice) -> None:
    """A PNG, whole or damaged, is the same picture as without the kernel, or is refused by the same words."""
    from packer.decoding import plain_png

    data, kernel = random_png(dice, 40, bool(dice.integers(2))), plain_png.KERNEL
    ours = _picture(data)
    plain_png.KERNEL = None
    expected = _picture(data)
    plain_png.KERNEL = kernel
    assert ours == expected


def _picture(data: bytes) -> tuple[tuple[int, ...], bytes] | str:
    from packer.decoding.decode import decode_image
    from packer.decoding.rules import ImageRules
    from packer.errors import BadPair

    try:
        pixels = decode_image(data, ImageRules((0.0, 255.0), "drop"))
    except BadPair as bad:
        return str(bad)
    return pixels.shape, pixels.tobytes()


def distinct(dice: Dice) -> None:
    """Numbers and colours in runs, seldom too many."""
    from packer.pixels import class_picture

    height, width = dice.integers(0, (5, 60)).tolist()
    numbers = array(dice, (height, width))
    numbers[...] = _in_runs(dice, height, width)
    occurs = np.full(256, UNTOUCHED, "uint8")
    class_picture.KERNEL.numbers(numbers, occurs)  # type: ignore[union-attr]
    assert np.array_equal(occurs, np.isin(np.arange(256), numbers))
    palette = dice.integers(0, 256, (256, 3), dtype="uint8")
    pixels = array(dice, (height, 3 * width))
    if dice.random() > 0.1:
        pixels[...] = palette[numbers].reshape(pixels.shape)
    out, gaps = target(dice, (height, width))
    colours = np.zeros((256, 3), "uint8")
    count = class_picture.KERNEL.colours(pixels, out, colours.reshape(-1))  # type: ignore[union-attr]
    codes = np.ascontiguousarray(pixels).reshape(-1, 3).astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)
    assert count == (len(np.unique(codes)) if len(np.unique(codes)) <= 256 else -1)
    assert count < 0 or np.array_equal(colours[out].reshape(pixels.shape), pixels)
    assert (gaps == UNTOUCHED).all()


def sample(dice: Dice) -> None:
    """Pixels are taken at random places, each line once or more often."""
    from packer.pixels import stored_label

    height, width = dice.integers(1, (6, 60)).tolist()
    numbers = array(dice, (height, width))
    numbers[...] = _in_runs(dice, height, width)
    table = dice.integers(0, 256, 256, dtype="uint8")
    rows = dice.integers(0, height, dice.integers(0, 6))
    columns = np.sort(dice.integers(0, width, dice.integers(0, 60)))
    out, gaps = target(dice, (len(rows), len(columns)))
    counts = np.zeros(256, np.int64)
    stored_label.KERNEL.sample(numbers, table, rows, columns, out, counts)  # type: ignore[union-attr]
    assert np.array_equal(out, table[numbers[rows][:, columns]])
    assert np.array_equal(counts, np.bincount(out.reshape(-1), minlength=256))
    assert (gaps == UNTOUCHED).all()
    if len(rows):
        rows[dice.integers(len(rows))] = dice.choice([-1, height, 2**63 - 1, -(2**63)])
        try:
            stored_label.KERNEL.sample(numbers, table, rows, columns, out, counts)  # type: ignore[union-attr]
        except ValueError:
            return
        raise AssertionError


def _in_runs(dice: Dice, height: int, width: int) -> NDArray[np.int64]:
    return np.repeat(dice.integers(0, 256, (height, width)), int(dice.integers(1, 20)), axis=1)[:, :width]
