"""Random inputs of each kernel, and the check of its results. `drills.kernels` starts it under the sanitizers.

tools/run drills.kernel_cases KERNEL FIRST COUNT
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import lru_cache
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from program import parser

from drills import label_cases
from drills.arrays import UNTOUCHED, Dice, array, target

FOLDER = "DRILL_KERNELS"
"""The variable with the folder of the compiled kernels."""


def main() -> None:
    options = parser(__doc__)
    options.add_argument("kernel", choices=tuple(CASES))
    options.add_argument("first", type=int)
    options.add_argument("count", type=int)
    chosen = options.parse_args()
    load_kernels(Path(os.environ[FOLDER]))
    dice = np.random.default_rng(chosen.first)
    for number in range(chosen.count):
        try:
            CASES[chosen.kernel](dice)
        except AssertionError:
            raise SystemExit(f"{chosen.kernel}: case {number} from {chosen.first} differs from its stand-in") from None


def load_kernels(folder: Path) -> None:
    """Import the kernels of this folder under their names, before anything else imports those of the package."""
    for path in folder.rglob("*_kernel*.so"):
        name = ".".join((*path.relative_to(folder).parent.parts, path.name.partition(".")[0]))
        spec = spec_from_file_location(name, path, loader=ExtensionFileLoader(name, str(path)))
        assert spec is not None
        sys.modules[name] = module_from_spec(spec)
        assert spec.loader is not None
        spec.loader.exec_module(sys.modules[name])


def onehot(dice: Dice) -> None:
    from readers.contract import onehot

    height, width = dice.integers(0, (5, 110)).tolist()
    dtype = str(dice.choice(["uint8", "uint16"]))
    classes = int(dice.integers(1, 255 if dtype == "uint8" and dice.random() < 0.1 else 9))
    index = array(dice, (height, width), dtype)
    out, gaps = target(dice, (classes, height, width))
    onehot.KERNEL.expand(index, out)  # type: ignore[union-attr]
    assert np.array_equal(out, index[None] == np.arange(classes)[:, None, None])
    assert (gaps == UNTOUCHED).all()


def gather(dice: Dice) -> None:
    from readers.formats import shard

    large = dice.random() < 0.02
    size = int(dice.integers(1 << 19, (1 << 19) + 70_000) if large else dice.integers(1, 400))
    whole = np.full((int(dice.integers(2, 7)), size), UNTOUCHED, "uint8")
    targets = np.sort(dice.permutation(len(whole))[: dice.integers(1, len(whole))])
    pieces = []
    expected = whole.copy()
    for part in np.array_split(targets, dice.integers(1, 4)):
        data = np.resize(dice.integers(0, 256, 4096, dtype="uint8"), size + int(dice.integers(0, 99)))
        starts = dice.integers(0, len(data) - size + 1, len(part))
        pieces.append((data, starts.tolist(), part.tolist()))
        for row, start in zip(part, starts, strict=True):
            expected[row] = data[start : start + size]
    shard.KERNEL.gather(pieces, whole)  # type: ignore[union-attr]
    assert np.array_equal(whole, expected)
    data, starts, targets = pieces[0]
    wrong = int(dice.choice([-1, len(data) - size + 1, 2**63 - 1, -(2**63)]))
    starts[int(dice.integers(len(starts)))] = wrong
    try:
        shard.KERNEL.gather(pieces, whole)  # type: ignore[union-attr]
    except ValueError:
        return
    raise AssertionError


def window(dice: Dice) -> None:
    from readers import windows

    large = dice.random() < 0.02
    shape = (3, 200, int(dice.integers(219, 300))) if large else tuple(dice.integers(0, (4, 7, 150)).tolist())
    dtype = str(dice.choice(["uint8", "uint16"]))
    top, left = dice.integers(0, 4, 2).tolist()
    pixels = array(dice, (shape[0], shape[1] + top, shape[2] + left), dtype)[:, top:, left:]
    out, gaps = target(dice, shape, dtype)
    flip = bool(dice.integers(2))
    windows.KERNEL.copy(pixels, out, flip)  # type: ignore[union-attr]
    assert np.array_equal(out, pixels[..., ::-1] if flip else pixels)
    assert (gaps == UNTOUCHED).all()


def area(dice: Dice) -> None:
    from packer.pixels.area import KERNEL

    sides = [dice.integers(1, 40, 2).tolist(), dice.integers(1, 9, 2).tolist()][dice.integers(2)]
    if dice.random() < 0.03:
        sides[dice.integers(2)] = int(dice.integers(40, 1500))
    height, width = sides
    tall, wide = (int(dice.integers(1, side + 1)) if dice.random() < 0.8 else side for side in sides)
    channels = int(dice.choice([3, 3, 3, 3, 1, 2, 4]))
    lines = array(dice, (height, width * channels))
    lines //= np.uint8(dice.choice([1, 1, 1, 64, 255]))
    if dice.random() < 0.2:
        lines[...] = 255
    pixels = np.lib.stride_tricks.as_strided(lines, (height, width, channels), (lines.strides[0], channels, 1))
    out, gaps = target(dice, (channels, tall, wide))
    KERNEL.area_mean(pixels, out)  # type: ignore[union-attr]
    sums = units(height, tall) @ pixels.reshape(height, -1).astype(np.float64)  # whole numbers, so exact
    sums = units(width, wide) @ sums.reshape(tall, width, channels)
    assert np.array_equal(out, np.rint(sums / (height * width)).astype(np.uint8).transpose(2, 0, 1))
    assert (gaps == UNTOUCHED).all()


@lru_cache(maxsize=2000)
def units(source: int, target: int) -> NDArray[np.float64]:
    """Return the overlap of each target pixel with each source pixel, in units of 1 / target."""
    begin, first = np.arange(target)[:, None] * source, np.arange(source) * target
    shared = np.minimum(begin + source, first + target) - np.maximum(begin, first)
    return np.asarray(np.maximum(shared, 0), np.float64)


CASES: dict[str, Callable[[Dice], None]] = {
    "onehot": onehot,
    "gather": gather,
    "window": window,
    "area": area,
    "unfilter": label_cases.unfilter,
    "png": label_cases.png,
    "distinct": label_cases.distinct,
    "sample": label_cases.sample,
}

if __name__ == "__main__":
    main()
