"""Compare our scaled, turned and coloured windows with the functions of OpenCV and torchvision, on random pictures.

    pip install torchvision
    tools/run checks.augmentation [--cases 20000]

The references count in float, so they round nothing. Of a label, whose pixels are their own line or column, the
difference counts source pixels; INTER_NEAREST may be half a step further. torchvision cuts off after each change of
colours, so pixels that it cuts off are left out; its middle, the mean of the picture, is ours here. Exits 1 if a
difference is larger than it may be. For a PyTorch without CUDA, put tests/cpu_torchvision on PYTHONPATH.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from program import parser
from tables import aligned

from packer.pixels.nearest_lines import nearest_source
from readers import Colour
from readers.colour import GRAY
from readers.contract.fields import picture_field
from readers.tone import BatchTones, Tone
from readers.windows import FLIPS, BatchWindows, HowToCopy

Pixels = NDArray[np.uint8]
Part = tuple[slice, ...]
Found = Iterator[tuple[str, float]]
LIMITS = {
    "scaled: OpenCV, INTER_LINEAR": 2.0,
    "scaled: torchvision, resize(antialias=False)": 2.0,
    "label: the packer's nearest pixel": 0,
    "label: OpenCV, INTER_NEAREST_EXACT": 1,
    "label: OpenCV, INTER_NEAREST, beyond half a step": 1,
    "label: torchvision, NEAREST_EXACT": 1,
    "turned: torchvision, hflip and vflip": 0,
    "turned: torch.rot90": 0,
    "colours: exact sums": 1.5,
    "colours: torchvision, adjust_brightness, _contrast, _saturation": 1.5,
}
"""The largest difference that each may have, in steps of a byte or in source pixels of a label."""
TURNS = [(False, 0), (True, FLIPS[-2]), (False, FLIPS[-1] | FLIPS[-2]), (True, FLIPS[-1])]
"""For 0 to 3 quarter turns: whether lines and columns change places, and the flip after that."""


@cache
def torchvision() -> Any:
    """Return its functions, or None if it is not installed."""
    try:
        return import_module("torchvision.transforms.v2.functional")
    except (ImportError, RuntimeError):  # RuntimeError: it is for another build of PyTorch
        return None


def window(pixels: Pixels, cut: BatchWindows, is_linear: bool) -> Pixels:
    """Return the window of a picture (C, H, W) as a loader copies it."""
    assert cut.size is not None, "windows have a size"
    out = np.empty((len(pixels), *cut.size), np.uint8)
    how = HowToCopy(fill=None, is_linear=is_linear)
    sides = pixels.shape[1:]
    cut.copy(0, (sides[0], sides[1]), lambda part: pixels[(slice(None), *part)], out, how)
    return out


def largest(ours: Any, theirs: Any) -> float:
    """Return the largest difference of two arrays."""
    return float(np.abs(np.asarray(ours, np.float64) - np.asarray(theirs, np.float64)).max(initial=0))


def scaling(dice: np.random.Generator) -> Found:
    """Compare a window of a scaled picture with that part of the picture scaled as a whole."""
    pixels = picture(dice)
    (lines, columns), part, cut = scaled_window(dice, pixels.shape[1:])
    ours = window(pixels, cut, is_linear=True)
    planes = np.ascontiguousarray(pixels.transpose(1, 2, 0), np.float32)
    theirs = cv2.resize(planes, (columns, lines), interpolation=cv2.INTER_LINEAR)
    yield "scaled: OpenCV, INTER_LINEAR", largest(ours, theirs.transpose(2, 0, 1)[part])
    if functions := torchvision():
        numbers = functions.resize(torch.from_numpy(pixels).float(), [lines, columns], antialias=False)
        yield "scaled: torchvision, resize(antialias=False)", largest(ours, numbers[part])


def labels(dice: np.random.Generator) -> Found:
    """Compare the lines and columns that a window of a label is made of."""
    height, width = picture(dice).shape[1:]
    pixels = np.indices((height, width)).astype(np.uint8)
    (lines, columns), part, cut = scaled_window(dice, (height, width))
    ours = window(pixels, cut, is_linear=False).astype(int)
    chosen = np.stack(np.meshgrid(nearest_source(height, lines), nearest_source(width, columns), indexing="ij"))
    yield "label: the packer's nearest pixel", largest(ours, chosen[part])
    planes = np.ascontiguousarray(pixels.transpose(1, 2, 0))
    exact, plain = (
        cv2.resize(planes, (columns, lines), interpolation=way).transpose(2, 0, 1)[part]
        for way in (cv2.INTER_NEAREST_EXACT, cv2.INTER_NEAREST)
    )
    yield "label: OpenCV, INTER_NEAREST_EXACT", largest(ours, exact)
    beyond = np.abs(ours - plain) - np.array([height / lines, width / columns])[:, None, None] / 2
    yield "label: OpenCV, INTER_NEAREST, beyond half a step", float(beyond.max().clip(0))
    if functions := torchvision():
        mode = import_module("torchvision.transforms.v2").InterpolationMode.NEAREST_EXACT
        theirs = functions.resize(torch.from_numpy(pixels), [lines, columns], mode)
        yield "label: torchvision, NEAREST_EXACT", largest(ours, theirs[part])


def turning(dice: np.random.Generator) -> Found:
    """Compare a square that is flipped, and one that is turned."""
    side = int(dice.integers(1, 70))
    pixels = dice.integers(0, 256, (3, side, side)).astype(np.uint8)
    flip, turns = int(dice.integers(4)), int(dice.integers(4))
    if functions := torchvision():
        theirs = torch.from_numpy(pixels)
        theirs = functions.hflip(theirs) if flip & FLIPS[-1] else theirs
        theirs = functions.vflip(theirs) if flip & FLIPS[-2] else theirs
        ours = window(pixels, BatchWindows((side, side), 0, [[0, 0]], [flip]), False)
        yield "turned: torchvision, hflip and vflip", largest(ours, theirs)
    swaps, turned = TURNS[turns]
    ours = window(pixels, BatchWindows((side, side), 0, [[0, 0]], [turned], None, [swaps]), False)
    yield "turned: torch.rot90", largest(ours, torch.rot90(torch.from_numpy(pixels), turns, (1, 2)))


def colouring(dice: np.random.Generator) -> Found:
    """Compare a picture whose colours are changed with exact sums, and with torchvision where it cuts nothing off."""
    pixels, drawn = picture(dice), dice.random((4 + len(GRAY), 1))
    brightness, contrast, saturation = (0.7 + 0.6 * number for number in drawn[:3, 0])
    steps = [pixels / 255 * brightness]
    middle = float(gray_of(steps[0].clip(0, 1)).mean())
    steps.append(contrast * steps[0] + (1 - contrast) * middle)
    steps.append(saturation * steps[1] + (1 - saturation) * gray_of(steps[1]))
    ours, colour = np.empty_like(pixels), Colour(0.3, 0.3, 0.3, middle=middle)
    field = picture_field("image", "|u1", None, ("red", "green", "blue"))
    BatchTones(Tone(field, colour), colour.drawn(drawn, len(GRAY))).of_row(0)(ours, pixels)
    yield "colours: exact sums", largest(ours, 255 * steps[2].clip(0, 1))
    if functions := torchvision():
        theirs = functions.adjust_brightness(torch.from_numpy(pixels).double() / 255, brightness)
        theirs = functions.adjust_saturation(functions.adjust_contrast(theirs, contrast), saturation)
        inside = np.all([(step >= 0) & (step <= 1) for step in steps[:2]], axis=(0, 1))
        found = largest(ours[:, inside], 255 * theirs.numpy()[:, inside])
        yield "colours: torchvision, adjust_brightness, _contrast, _saturation", found


def gray_of(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    gray: NDArray[np.float64] = np.tensordot(np.array(GRAY), numbers, 1)
    return gray


def picture(dice: np.random.Generator) -> Pixels:
    """Return a picture (C, H, W) of noise, or of few colours with edges between them."""
    shape = (3, int(dice.integers(2, 70)), int(dice.integers(2, 70)))
    values = 256 if dice.integers(2) else [0, 1, 128, 254, 255]
    return dice.choice(values, shape).astype(np.uint8)


def scaled_window(dice: np.random.Generator, sides: tuple[int, ...]) -> tuple[list[int], Part, BatchWindows]:
    """Return the sides that a picture is scaled to, and a window inside of it, also as an index."""
    scaled = [max(1, round(side * dice.uniform(0.3, 3))) for side in sides]
    starts = [int(dice.integers(0, side)) for side in scaled]
    height, width = (int(dice.integers(1, side - start + 1)) for side, start in zip(scaled, starts, strict=True))
    (top, left), cut = starts, BatchWindows((height, width), 0, [starts], [0], [scaled])
    return scaled, (slice(None), slice(top, top + height), slice(left, left + width)), cut


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--cases", type=int, default=20_000)
    cases = options.parse_args().cases
    found: dict[str, list[float]] = {name: [] for name in LIMITS}
    for seed in range(cases):
        dice = np.random.default_rng(seed)
        for compare in (scaling, labels, turning, colouring):
            for name, difference in compare(dice):
                found[name].append(difference)
    lines = [
        (name, str(len(each)), f"{max(each):.3f}" if each else "not installed", f"{LIMITS[name]:g}")
        for name, each in found.items()
    ]
    print("\n".join(aligned([("", "cases", "largest difference", "may be"), *lines])))
    sys.exit(any(max(each, default=0) > LIMITS[name] for name, each in found.items()))
