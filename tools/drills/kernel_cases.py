"""Random calls of each kernel, and the check of their results. `drills.kernels` starts it under the sanitizers.

tools/run drills.kernel_cases FIRST COUNT SECONDS KERNEL …

Prints how many cases of all these kernels were run, each COUNT or as many as the time allows. Most are made and checked
by the C code in `cases`. Python makes those of batches of windows, of whole PNG
files, and of several threads.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from program import parser

from drills import cell_cases, kernel_threads, tone_cases
from drills.png_cases import random_pngs

FOLDER = "DRILL_KERNELS"
"""The variable with the folder of the compiled kernels."""
FAILS = "DRILL_FAILS"
"""The variable with which one allocation of 997 fails."""
FUNCTIONS = {
    "onehot": "readers.contract.onehot_kernel.expand",
    "gather": "readers.formats.gather_kernel.gather",
    "window": "readers.window_kernel.copy",
    "planes": "readers.formats.planes_kernel.split",
    "area": "packer.pixels.area_kernel.area_mean",
    "unfilter": "packer.decoding.unfilter_kernel.unfilter",
    "numbers": "packer.pixels.distinct_kernel.numbers",
    "colours": "packer.pixels.distinct_kernel.colours",
    "sample": "packer.pixels.sample_kernel.sample",
}
"""The functions whose calls the module `cases` makes."""
FROM_ONE = 25
"""PNGs that are made of the same lines, because damage is cheaper than a picture."""


def main() -> None:
    options = parser(__doc__)
    options.add_argument("first", type=int)
    options.add_argument("count", type=int)
    options.add_argument("seconds", type=float)
    options.add_argument("kernels", nargs="+", choices=CASES)
    chosen = options.parse_args()
    load_kernels(Path(os.environ[FOLDER]))
    print(sum(_run(name, chosen.first, chosen.count, chosen.seconds) for name in chosen.kernels))


def _run(name: str, first: int, count: int, seconds: float) -> int:
    try:
        if name in IN_PYTHON:
            return _repeat(IN_PYTHON[name], first, count, seconds)
        cases = load("cases", Path(os.environ[FOLDER]) / "cases.so")
        function = kernel_threads.function(FUNCTIONS[name])
        os.environ[FAILS] = "1"
        done = int(cases.run(function, FUNCTIONS[name].rpartition(".")[2], first, count, seconds))
        del os.environ[FAILS]
        return done
    except AssertionError as wrong:
        raise SystemExit(f"{name}: {wrong}") from None


def load_kernels(folder: Path) -> None:
    """Import the kernels of this folder under their names, before anything else imports those of the package."""
    for path in folder.rglob("*_kernel*.so"):
        load(".".join((*path.relative_to(folder).parent.parts, path.name.partition(".")[0])), path)


def load(name: str, path: Path) -> ModuleType:
    """Import a compiled module from this file."""
    spec = spec_from_file_location(name, path, loader=ExtensionFileLoader(name, str(path)))
    assert spec is not None
    sys.modules[name] = module_from_spec(spec)
    assert spec.loader is not None
    spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def _repeat(cases: Callable[[np.random.Generator], int], first: int, count: int, seconds: float) -> int:
    dice, done, end = np.random.default_rng(first), 0, time.monotonic() + seconds
    while done < count and time.monotonic() < end:
        try:
            done += cases(dice)
        except AssertionError as wrong:
            raise AssertionError(f"one of the cases {done} to {done + FROM_ONE} from {first}: {wrong}") from None
    return done


def pngs(dice: np.random.Generator) -> int:
    """Compare what the kernel takes of whole and damaged files. Whatever it leaves is OpenCV's, with or without it."""
    from packer.decoding import plain_png, png

    for data in random_pngs(dice, FROM_ONE, 24, damaged=True):
        if plain_png.decode(data, _raster(data)) is None:
            continue
        header = png.read(BytesIO(data))
        ours, kernel = png.decode(data, header), plain_png.KERNEL
        plain_png.KERNEL = None
        expected = png.decode(data, header)
        plain_png.KERNEL = kernel
        assert np.array_equal(ours.numbers, expected.numbers), data.hex()
    return FROM_ONE


def windows(dice: np.random.Generator) -> int:
    """Copy windows of pictures of a batch, then ask for one that lies outside."""
    from readers.windows import KERNEL, flipped

    assert KERNEL is not None
    dtype = str(dice.choice(["uint8", "uint16"]))
    count, planes, lines, columns = dice.integers(1, (5, 4, 5, 70)).tolist()
    out = np.full((count, planes, lines, columns + 9000 * (dice.random() < 0.02)), 77, dtype)
    expected, pictures = out.copy(), []
    for number in dice.permutation(count)[: dice.integers(1, count + 1)].tolist():
        top, left, below, right, before, behind = dice.integers(0, 5, 6).tolist()
        shape = (planes, top + lines + below, left + out.shape[3] + right)
        pixels, flip = dice.integers(0, 256, shape).astype(dtype), int(dice.integers(4))
        data = np.frombuffer(bytes(before) + pixels.tobytes() + bytes(behind), "uint8")
        pictures.append((data, [before, *shape[1:], number, top, left, flip]))
        window = pixels[:, top : top + lines, left : left + out.shape[3]]
        expected[number] = flipped(window, flip)
    KERNEL.copy_all([(data, tuple(numbers)) for data, numbers in pictures], out)
    assert np.array_equal(out, expected)
    numbers = pictures[0][1]
    numbers[int(dice.integers(6))] = int(dice.choice([-1, 200_000, 2**31, 2**62, 2**63 - 1, -(2**63)]))
    try:
        KERNEL.copy_all([(data, tuple(numbers)) for data, numbers in pictures], out)
    except ValueError:
        return 1
    raise AssertionError("a window that lies outside was copied")


def tiles(dice: np.random.Generator) -> int:
    """Copy windows of rows in tiles, then change a number of a call or bytes of a table: a wrong one is refused."""
    from packer.pixels.encode import encode
    from readers.contract.fields import picture_field
    from readers.windows import TILE_KERNEL, flipped

    assert TILE_KERNEL is not None
    dtype, planes = str(dice.choice(["|u1", "<u2"])), int(dice.integers(1, 4))
    count, lines, columns = dice.integers(1, (4, 9, 40)).tolist()
    out = np.full((count, planes, lines, columns), 77, dtype)
    expected, rows = out.copy(), list[tuple[Any, list[int]]]()
    for number in dice.permutation(count)[: dice.integers(1, count + 1)].tolist():
        top, left, below, right, before, behind = dice.integers(0, 20, 6).tolist()
        tile = tuple(dice.integers(1, 30, 2).tolist())
        field = picture_field("image", dtype, None, ("band",) * planes)
        pixels = dice.integers(0, 256, (planes, top + lines + below, left + columns + right)).astype(dtype)
        stored = encode(replace(field, encoding="tiles", tile=tile), None, pixels, b"").stored
        flip = int(dice.integers(4))
        data = np.frombuffer(bytes(before) + stored + bytes(behind), "uint8")
        rows.append((data, [before, len(stored), *pixels.shape[1:], *tile, number, top, left, flip]))
        window = pixels[:, top : top + lines, left : left + columns]
        expected[number] = flipped(window, flip)
    TILE_KERNEL.copy_all([(data, tuple(numbers)) for data, numbers in rows], out)
    assert np.array_equal(out, expected)
    data, numbers = rows[0]
    if dice.random() < 0.5:
        numbers[int(dice.integers(9))] = int(dice.choice([-1, 0, 1, 9, 200_000, 2**31, 2**62, 2**63 - 1, -(2**63)]))
    else:
        changed = data.copy()
        start = numbers[0] + 8 * int(dice.integers(0, 3))
        changed[start : start + 8] = np.frombuffer(dice.bytes(8), "uint8")[: len(changed[start : start + 8])]
        rows[0] = (changed, numbers)
    with suppress(ValueError):
        TILE_KERNEL.copy_all([(data, tuple(numbers)) for data, numbers in rows], out)
    return 1


def scaled(dice: np.random.Generator) -> int:
    """Scale a window with and without the kernel, then ask for pixels that are not there."""
    from readers import scaled as room

    kernel = room.KERNEL
    assert kernel is not None
    linear, flip = bool(dice.integers(2)), int(dice.integers(4))
    dtype = "uint8" if linear or dice.integers(2) else "uint16"
    sides = []
    for _ in range(2):
        source, to = int(dice.integers(2, 60)), int(dice.integers(1, 90))
        start = int(dice.integers(0, to))
        sides.append(room.ScaledSide(source, to, start, int(dice.integers(start + 1, to + 1))))
    down, across = sides
    shape = int(dice.integers(1, 4)), *(side.part.stop - side.part.start for side in sides)
    pixels = dice.integers(0, 256, shape).astype(dtype)
    out = np.zeros((shape[0], down.stop - down.start, across.stop - across.start), dtype)
    expected = out.copy()
    room.scale_window(pixels, sides, out, flip, linear, None)
    room.KERNEL = None
    room.scale_window(pixels, sides, expected, flip, linear, None)
    room.KERNEL = kernel
    assert np.array_equal(out, expected), f"{sides}, linear {linear}"
    call = kernel.linear if linear else kernel.nearest
    numbers = [[*side[:3], side.part.start] for side in sides]
    numbers[int(dice.integers(2))][int(dice.integers(4))] = int(dice.choice([-1, 0, 200, 2**31, 2**62, 2**63 - 1]))
    tone = (None, np.zeros((len(out), 2), np.float32), 0) if linear else ()
    with suppress(ValueError):
        call(pixels, out, tuple(numbers[0]), tuple(numbers[1]), flip, *tone)
    return 1


def outlines(dice: np.random.Generator) -> int:
    """Paint an outline with and without the kernel, then ask for a wrong one. The window lies in memory of its size."""
    from packer.annotations import coco_polygon
    from packer.annotations.paint import window

    kernel = coco_polygon.KERNEL
    assert kernel is not None
    size = (int(dice.integers(1, 60)), int(dice.integers(1, 60)))
    points = dice.uniform(-1, 2, (int(dice.integers(1, 12)), 2)) * size[::-1] * 10 ** dice.uniform(0, 3)
    shape = coco_polygon.CocoPolygon(np.round(points * 10) / 10 if dice.integers(2) else points)
    ours = shape.paint(size)
    coco_polygon.KERNEL = None
    expected = shape.paint(size)
    coco_polygon.KERNEL = kernel
    painted: list[np.ndarray[Any, Any]] = []
    for mask in (ours, expected):
        painted.append(np.zeros(size, np.bool_))
        window(painted[-1], mask)[...] = mask.inside
    assert np.array_equal(painted[0], painted[1]), f"{shape.points.tolist()} in {size}"
    grid, out = np.array(dice.integers(-500, 500, (5, 2))), np.zeros(size, np.uint8)
    wrong = int(dice.choice([-1, -(2**63), 2**31, 2**63 - 1]))
    far = grid.copy()
    far[dice.integers(5), dice.integers(2)] = wrong if wrong != -1 else 2**40
    for outline, *numbers in ((far, 0, 0, 9), (grid, wrong, 0, 9), (grid, 0, wrong, 9), (grid.T[:2], 0, 0, 9)):
        try:
            kernel.paint(outline, out, *numbers, 10**9)
        except ValueError:
            continue
        raise AssertionError(f"a wrong outline was painted: {numbers}")
    kernel.paint(grid, out, *dice.integers(0, 2000, 3).tolist(), 10**9)
    return 1


def even_odd(dice: np.random.Generator) -> int:
    """Paint a polygon with and without the kernel, also one of points that no annotation can have."""
    from packer.annotations import even_odd

    kernel = even_odd.KERNEL
    assert kernel is not None
    size = (int(dice.integers(1, 60)), int(dice.integers(1, 60)))
    rings = [dice.uniform(-1, 2, (int(dice.integers(1, 9)), 2)) * size[::-1] for _ in range(dice.integers(1, 4))]
    shape = even_odd.EvenOddPolygon(tuple(np.round(2 * ring) / 2 if dice.integers(2) else ring for ring in rings))
    ours = shape.paint(size)
    even_odd.KERNEL = None
    expected = shape.paint(size)
    even_odd.KERNEL = kernel
    assert np.array_equal(ours.inside, expected.inside), f"{shape.rings} in {size}"
    edges, out = dice.uniform(-9, 9, (5, 4)), np.zeros(size, np.uint8)
    edges[dice.integers(5), dice.integers(4)] = dice.choice([np.nan, np.inf, -np.inf, 1e308, -1e308])
    kernel.paint(edges.view(np.int64), out, *dice.integers(0, 2000, 2).tolist(), 10**9)
    for numbers in ((-1, 0), (0, 2**31), (2**63 - 1, 0)):
        try:
            kernel.paint(edges.view(np.int64), out, *numbers, 10**9)
        except ValueError:
            continue
        raise AssertionError(f"a polygon was painted in a wrong window: {numbers}")
    return 1


def canvases(dice: np.random.Generator) -> int:
    """Lay a mask on a canvas, see what occurs, and translate it; then ask for what cannot be."""
    from packer.annotations.paint import KERNEL

    assert KERNEL is not None
    size = (int(dice.integers(0, 9)), int(dice.integers(0, 600)))
    inside, wide = dice.integers(0, 3, size, np.uint8), dice.integers(0, 300, size, np.uint16)
    for canvas in (np.repeat(dice.integers(0, 256, size, np.uint8), 9, 1)[:, : size[1]].copy(), wide):
        number = int(dice.integers(0, 1 << 8 * canvas.itemsize))
        expected = np.where(inside, number, canvas)
        assert KERNEL.lay(inside, canvas, number) == np.count_nonzero(inside)
        assert np.array_equal(canvas, expected)
        if canvas.dtype == np.uint8:
            occurs, out = np.zeros(256, np.uint8), np.empty_like(canvas)
            KERNEL.marked(canvas, occurs)
            assert np.array_equal(np.flatnonzero(occurs), np.unique(canvas))
            table = dice.integers(0, 256, 256, np.uint8)
            KERNEL.translate(canvas, table.tobytes(), out)
            assert np.array_equal(out, table[canvas])
    wrong: tuple[Callable[[], object], ...] = (
        lambda: KERNEL.lay(inside, wide, 1 << 16),
        lambda: KERNEL.lay(inside, inside, 1),
        lambda: KERNEL.lay(inside, np.zeros((size[0] + 1, size[1]), np.uint8), 1),
        lambda: KERNEL.marked(inside, np.zeros(255, np.uint8)),
        lambda: KERNEL.translate(inside, bytes(255), np.empty_like(inside)),
        lambda: KERNEL.translate(wide, bytes(256), np.empty_like(inside)),
    )
    for call in wrong[int(not inside.size) * 2 :]:
        try:
            call()
        except ValueError:
            continue
        raise AssertionError("a wrong call was taken")
    return 1


def _raster(data: bytes) -> list[tuple[bytes, int, int]]:
    found, offset = [], 8
    while offset < len(data):
        length, kind = struct.unpack_from(">I4s", data, offset)
        if kind in (b"IHDR", b"IDAT", b"IEND"):
            found.append((kind, offset + 8, offset + 8 + length))
        offset += length + 12
    return found


IN_PYTHON: dict[str, Callable[[np.random.Generator], int]] = {
    "windows": windows,
    "tiles": tiles,
    "scaled": scaled,
    "tones": tone_cases.tones,
    "turns": tone_cases.turns,
    "cells": cell_cases.cells,
    "png": pngs,
    "outlines": outlines,
    "even_odd": even_odd,
    "canvases": canvases,
    "threads": kernel_threads.case,
}
CASES = (*FUNCTIONS, *IN_PYTHON)
