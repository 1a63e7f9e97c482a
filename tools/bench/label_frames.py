"""Labels as Zstandard at several levels: the time to compress and to unpack one, next to the copy of a raw one.

    tools/run bench.label_frames PACK [--rows 64] [--rounds 15] [--level 1 --level 12]

PACK has raw labels of one size. One thread unpacks frames into memory that the caches of a core do not hold, as a
loader does, and into the same memory again and again. The copy is that of a loader, past the caches.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray
from program import parser
from tables import aligned, spread

from readers.contract.fields import LABEL, ZSTD
from readers.formats.shard import gather
from readers.formats.unpack import unpack_bytes
from readers.pack import Pack

LEVELS = 1, 3, 7, 12, 19
PAST_CACHES = 256 << 20
"""Bytes of the memory that rows are written to in turn."""


def main() -> None:
    asked = parser(__doc__)
    asked.add_argument("pack", type=Path)
    asked.add_argument("--rows", type=int, default=64)
    asked.add_argument("--rounds", type=int, default=15)
    asked.add_argument("--level", type=int, action="append")
    options = asked.parse_args()
    pack = Pack.open(options.pack)
    (field,) = pack.select([LABEL])
    if field.is_encoded or field.size is None:
        raise SystemExit(f"{options.pack}: needs raw labels of one size")
    shard, rows = pack.shard(0), list(range(min(options.rows, pack.table.rows(0))))
    labels = [np.ascontiguousarray(shard.pixels(field, row)) for row in rows]
    places = np.zeros((PAST_CACHES // labels[0].nbytes, *labels[0].shape), labels[0].dtype)

    ways: dict[str, Callable[[], object]] = {}
    facts: dict[str, tuple[str, str]] = {"copy of raw": (str(labels[0].nbytes), "")}
    ways["copy of raw"] = lambda: gather(LABEL, [(shard, rows, rows)], places[: len(rows)])
    for level in options.level or LEVELS:
        frames, spent = _compressed(labels, level)
        facts[f"level {level}"] = f"{sum(map(len, frames)) / len(frames):.0f}", f"{spent:.2f}"
        ways[f"level {level}"] = lambda frames=frames: _unpack(frames, places)  # type: ignore[misc]
        ways[f"level {level}, same memory"] = lambda frames=frames: _unpack(frames, places[:1])  # type: ignore[misc]
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, way in ways.items():
            started = time.perf_counter()
            way()
            found[name].append((time.perf_counter() - started) / len(rows) * 1000)
    table = [("", "bytes a label", "ms to compress", "ms to read", "of the copy")]
    for name, each in found.items():
        times = median(mine / copy for mine, copy in zip(each, found["copy of raw"], strict=True))
        table.append((name, *facts.get(name, ("", "")), spread(each, ".3f"), f"{times:.1f}"))
    print(*aligned(table), sep="\n")


def _compressed(labels: list[NDArray[Any]], level: int) -> tuple[list[NDArray[np.uint8]], float]:
    """Return the frames of labels at a level, and the milliseconds that each took."""
    writer = zstandard.ZstdCompressor(level=level)
    started = time.perf_counter()
    frames = [np.frombuffer(writer.compress(label.tobytes()), np.uint8) for label in labels]
    return frames, (time.perf_counter() - started) / len(labels) * 1000


def _unpack(frames: list[NDArray[np.uint8]], places: NDArray[Any]) -> None:
    """Unpack frames into the places in turn."""
    for number, frame in enumerate(frames):
        assert unpack_bytes(ZSTD, frame, places[number % len(places)])


if __name__ == "__main__":
    main()
