"""Random windows with another tone, scaled and turned, by the kernels and by NumPy; then calls that must be refused."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

WRONG = (-1, 0, 7, 200_000, 2**31, 2**62, 2**63 - 1, -(2**63))


def tones(dice: np.random.Generator) -> int:
    """Read the windows of a batch with tones, scaled or not, then change a number or an array of the call."""
    from readers import scaled, tone
    from readers.windows import BatchWindows, HowToCopy

    kernels = tone.KERNEL, scaled.KERNEL
    assert None not in kernels
    count, channels = int(dice.integers(1, 4)), int(dice.choice([1, 2, 3, 3]))
    size = int(dice.integers(1, 9)), int(dice.integers(1, 110))
    made = _tones(dice, count, channels)
    out = np.zeros((count, channels, *size), made.tone.dtype)
    expected, windows, is_scaled = out.copy(), list[tuple[Any, tuple[int, ...]]](), bool(dice.integers(2))
    for target in dice.permutation(count).tolist():
        sides = [int(dice.integers(2, 20)), int(dice.integers(2, 140))]
        if not is_scaled:
            sides = [side + more for side, more in zip(size, dice.integers(0, 5, 2).tolist(), strict=True)]
        to = [side + int(dice.integers(0, 30)) for side in size] if is_scaled else sides
        start, flip = [int(dice.integers(0, a - b + 1)) for a, b in zip(to, size, strict=True)], int(dice.integers(4))
        pixels = dice.integers(0, 256, (channels, *sides)).astype(np.uint8)
        numbers = (0, *sides, target, *start, flip, *(to if is_scaled else ()))
        windows.append((pixels.reshape(-1).copy(), numbers))
        cut = BatchWindows(size, 0, {target: start}, {target: flip}, {target: to} if is_scaled else None)  # type: ignore[arg-type]
        how = HowToCopy(is_linear=True, tone=made.of_row(target))
        tone.KERNEL = scaled.KERNEL = None
        cut.copy(target, tuple(sides), lambda part, pixels=pixels: pixels[(slice(None), *part)], expected[target], how)  # type: ignore[misc]
        tone.KERNEL, scaled.KERNEL = kernels
    assert made.copy_all(windows, out)
    assert out.tobytes() == expected.tobytes()
    data, numbers = windows[0]
    wrong = list(numbers)
    wrong[int(dice.integers(len(wrong)))] = int(dice.choice(WRONG))
    with suppress(ValueError, OverflowError):
        made.copy_all([(data, tuple(wrong))], out)
    lines, weights = np.zeros(dice.integers(0, 5, 2), np.float32), np.zeros(dice.integers(0, 9, 2), np.int16)
    for call in (kernels[0].tone_all, lambda *given: kernels[1].scale_all(*given[:2], False, *given[2:])):  # type: ignore[union-attr]
        with suppress(ValueError, OverflowError):
            call(windows, out, weights if dice.integers(2) else None, lines, int(dice.integers(-1, 6)))
    return 1


def turns(dice: np.random.Generator) -> int:
    """Write lines as columns, then ask for another shape."""
    from readers import windows

    kernel = windows.SWAP_KERNEL
    assert kernel is not None
    shape = (int(dice.integers(1, 4)), int(dice.integers(1, 40)), int(dice.integers(1, 40)))
    pixels: NDArray[Any] = dice.integers(0, 256, shape).astype(str(dice.choice(["u1", "u2"])))
    flip, out = int(dice.integers(8)), np.empty((shape[0], *shape[:0:-1]), pixels.dtype)
    windows.swap(pixels, out, flip)
    assert np.array_equal(out, windows.flipped(pixels.swapaxes(-1, -2), flip))
    with suppress(ValueError):
        kernel.swap(pixels, out[:, :-1] if dice.integers(2) else pixels, flip)
    return 1


def _tones(dice: np.random.Generator, count: int, channels: int) -> Any:
    """Return random tones of a batch."""
    from readers.colour import Colour
    from readers.contract.fields import picture_field
    from readers.tone import BatchTones, Tone

    name: Any = (None, "float32", "float16", "bfloat16")[int(dice.integers(4))]
    mean_std = None
    if name is not None and dice.integers(2):
        mean_std = tuple(dice.random(channels)), tuple(dice.random(channels) + 0.001)
    mixes = 0.3 if channels == 3 and dice.integers(2) else 0
    colour = Colour(0.5, 0.5, mixes, channels=0.2, gray=mixes) if dice.integers(2) or mixes else None
    weights = None if colour is None else colour.drawn(dice.random((4 + channels, count)), channels)
    return BatchTones(Tone(picture_field("image", "|u1", None, ("band",) * channels), colour, mean_std, name), weights)
