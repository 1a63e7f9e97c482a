"""Random windows of large rows that are stored as JPEG, out of our packs and out of other libraries' files.

    ENV/bin/python tools/run bench.jpeg_peers PHOTOGRAPHS [--rows 192] [--rounds 5] [--keep FOLDER] [--prove]

PHOTOGRAPHS has `images` and `labels` (class numbers) of the same names. Rows of 1024x2048 are mosaics of them. Each way
delivers shuffled batches of 16 windows of 512x512 with their labels, page cache warm; all take turns in one process.
ENV is that of bench.reading_peers. With --prove, each way first proves its work: all rows come, and the last window is
found in a row, as is that of the label at the same place. That takes some time: give it few rows.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from itertools import chain
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
import cv2
import numpy as np
from program import parser
from scenes.mosaics import Mosaics
from scenes.street import Pixels
from tables import aligned, spread

from bench.jpeg_libraries import CROP, MODULES
from bench.libraries import Tensors
from bench.machine import machine, versions
from bench.rounds import Pace, measured

Ways = dict[str, Callable[[], Iterable[Tensors]]]
SECONDS = 1.5
LEAST_PSNR = 30
"""Half of the colours (4:2:0) cost much where squares meet."""


def main() -> None:
    asked = parser(__doc__)
    asked.add_argument("photographs", type=Path)
    asked.add_argument("--rows", type=int, default=192)
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--keep", type=Path, help="a folder for all files, which are kept there")
    asked.add_argument("--only", choices=MODULES, action="append")
    asked.add_argument("--prove", action="store_true")
    options = asked.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as temporary:
        root = (options.keep or Path(temporary)).resolve()
        rows = Mosaics(root / "raw", options.rows)
        rows.make(options.photographs)
        print(machine(), versions(["torch", "numpy", "simplejpeg", *MODULES]), sep="\n")
        ways = dict(_ways(root, rows, options.only or MODULES))
        for name, way in ways.items() if options.prove else ():
            print(f"  {name:40}{_proof(rows, way)}", file=sys.stderr, flush=True)
        paces = _turns(ways, options.rounds)
        print("", *aligned(list(_table(paces))), sep="\n")


def _ways(root: Path, rows: Mosaics, modules: Iterable[str]) -> Iterator[tuple[str, Callable[[], Iterable[Tensors]]]]:
    """Yield the ways of all libraries, ours first. Files that an earlier run made are used again."""
    for module in MODULES:
        if module in ("segpack", *modules):
            library, out = import_module(f"bench.jpeg_libraries.{module}"), root / module
            done = root / f"{module}.done"
            if not done.is_file():
                library.write(rows, out)
                done.touch()
            for setting, way in library.loaders(out).items():
                yield f"{module}, {setting}", way


def _proof(rows: Mosaics, way: Callable[[], Iterable[Tensors]]) -> str:
    """Check a pass, and describe what was found. Raise SystemExit if it is not what was asked for."""
    count, batch = 0, None
    for batch in way():
        count += len(batch[0])
    assert batch is not None
    image, label = (part[-1].numpy() for part in batch)
    image = image.transpose(1, 2, 0) if image.shape[0] == 3 else image
    row, top, left = max(_places(rows, image))[1]
    pixels, numbers = (part[top : top + CROP, left : left + CROP] for part in rows[row])
    psnr = cv2.PSNR(np.ascontiguousarray(pixels), np.ascontiguousarray(image))
    if count != len(rows) or psnr < LEAST_PSNR or not np.array_equal(numbers, label):
        raise SystemExit(f"{count} of {len(rows)} rows; row {row} at {top}, {left}: {psnr:.1f} dB, or another label")
    return f"{count} rows, row {row} at {top}, {left}: {psnr:.1f} dB"


def _places(rows: Mosaics, image: Pixels) -> Iterator[tuple[float, tuple[int, int, int]]]:
    """Yield how like each row is to a window, at the place where it is most like it."""
    for row in range(len(rows)):
        likeness = cv2.matchTemplate(rows[row][0][..., 1], image[..., 1].copy(), cv2.TM_CCOEFF_NORMED)
        _, best, _, (left, top) = cv2.minMaxLoc(likeness)
        yield best, (row, top, left)


def _turns(ways: Ways, rounds: int) -> dict[str, list[Pace]]:
    """Return the pace of each way in each round, in an order that changes. The first pass of each warms up."""
    paces: dict[str, list[Pace]] = {name: [] for name in ways}
    turns = {name: _lasting(way) for name, way in ways.items()}
    for number in range(rounds):
        for name in list(ways)[number % len(ways) :] + list(ways)[: number % len(ways)]:
            paces[name].append(measured(turns[name]))
    return paces


def _lasting(way: Callable[[], Iterable[Tensors]]) -> Callable[[], Iterable[Tensors]]:
    """Return so many passes in a row that they last about SECONDS."""
    started = time.perf_counter()
    for _ in chain(way(), way()):
        pass
    passes = max(1, round(2 * SECONDS / (time.perf_counter() - started)))
    return lambda: chain.from_iterable(way() for _ in range(passes))


def _table(paces: dict[str, list[Pace]]) -> Iterator[tuple[str, ...]]:
    references = [name for name in paces if name.startswith("segpack")][1:]
    yield "", "rows/s", "CPU ms/row", *(f"of {name.partition(', ')[2]}" for name in references)
    for name, mine in paces.items():
        cpu = statistics.median(pace.cpu for pace in mine)
        ratios = ([one.rate / other.rate for one, other in zip(mine, paces[each], strict=True)] for each in references)
        yield name, spread([pace.rate for pace in mine]), f"{cpu:.1f}", *(spread(each, ".2f") for each in ratios)


if __name__ == "__main__":
    main()
