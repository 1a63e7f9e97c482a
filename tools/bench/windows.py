"""Windows of 512x512 of a large picture, of each encoding, next to copies of the same bytes out of an array in memory.

    tools/run bench.windows [--side 8192] [--rounds 7] [--format npy] [--encoding tiles:256]

The picture is SIDE pixels high and wide, soft as a photograph, warm in memory. One thread reads batches of 16 windows
in random places into the same memory, in turns with the copy.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from program import parser
from tables import aligned

from packer import build_pack
from readers import open_dataset
from readers.contract.manifest import STORAGES, Manifest
from readers.dataset import SegDataset
from readers.windows import BatchWindows

CROP, BATCH, BATCHES = 512, 16, 8
ENCODINGS = "raw", "tiles:256", "tiles:512", "tiles-zstd:256", "tiles-jpeg:256"
Starts = list[list[list[int]]]


def main() -> None:
    asked = parser(__doc__)
    asked.add_argument("--side", type=int, default=8192)
    asked.add_argument("--rounds", type=int, default=7)
    asked.add_argument("--format", choices=STORAGES, action="append")
    asked.add_argument("--encoding", choices=ENCODINGS, action="append")
    options = asked.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        _make(root / "raw", options.side)
        for storage in options.format or STORAGES:
            for line in aligned(_table(root, storage, options.encoding or ENCODINGS, options.side, options.rounds)):
                print(line, flush=True)


def _make(raw: Path, side: int) -> None:
    for name in ("images", "labels"):
        (raw / name).mkdir(parents=True)
    dice = np.random.default_rng(0)
    small = dice.integers(0, 256, (side // 16, side // 16, 3), np.uint8)
    soft = cv2.resize(small, (side, side), interpolation=cv2.INTER_CUBIC)
    cv2.imwrite(str(raw / "images/a.png"), soft, [cv2.IMWRITE_PNG_COMPRESSION, 1])
    cv2.imwrite(str(raw / "labels/a.png"), np.zeros((side, side), np.uint8))


def _table(root: Path, storage: str, encodings: Sequence[str], side: int, rounds: int) -> list[tuple[str, ...]]:
    """Return the windows per second of each encoding, and the ratio to those that are copied."""
    dice = np.random.default_rng(1)
    starts = [dice.integers(0, side - CROP, (BATCH, 2)).tolist() for _ in range(BATCHES)]
    out = np.empty((BATCH, 3, CROP, CROP), np.uint8)
    lines: list[tuple[str, ...]] = [(storage, "bytes a pixel", "windows/s", "of the copy")]
    picture: NDArray[np.uint8] | None = None
    for encoding in encodings:
        pack = root / f"{storage}-{encoding}".replace(":", "-")
        options: Any = {"classes": "1", "size": "native", "labels": "index", "max_pixels": 1 << 30}
        build_pack(root / "raw", pack, format=storage, encode=[f"image={encoding}", "label=tiles-zstd:256"], **options)
        data = open_dataset(pack, "all", fields=("image",))
        if picture is None:
            picture = data[0][0].numpy()
        _rate(_read, data, starts, out)  # warms up
        rates = [(_rate(_copy, picture, starts, out), _rate(_read, data, starts, out)) for _ in range(rounds)]
        ratios = [ours / bare for bare, ours in rates]
        spread = f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        size = Manifest.load(pack).bytes / side**2
        lines.append((encoding, f"{size:.2f}", f"{median(ours for _, ours in rates):,.0f}", spread))
    return lines


def _rate(read: Callable[..., None], source: Any, starts: Starts, out: NDArray[np.uint8]) -> float:
    started = time.perf_counter()
    for windows in starts:
        read(source, windows, out)
    return BATCH * len(starts) / (time.perf_counter() - started)


def _copy(picture: NDArray[np.uint8], windows: list[list[int]], out: NDArray[np.uint8]) -> None:
    for target, (top, left) in zip(out, windows, strict=True):
        np.copyto(target, picture[:, top : top + CROP, left : left + CROP])


def _read(data: SegDataset, windows: list[list[int]], out: NDArray[np.uint8]) -> None:
    cut = BatchWindows((CROP, CROP), 0, windows, [False] * BATCH)
    data._reader.read([0] * BATCH, lambda shape, dtype: out, cut)
