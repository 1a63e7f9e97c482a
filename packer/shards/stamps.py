"""Stamps: size and times of the raw files of a shard when they were read. Unchanged files are not read again.

They are in OUT/stamps, one file per shard: a line of JSON, a record per row, then a line per row with its key, image
and label, so that whole shards are compared at once. A file that is damaged or has another form is ignored. Stamps are
not part of the pack: without them a build only takes longer.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.publish.target import STAMPS
from readers.contract.atomic import partial
from readers.contract.receipt import FINGERPRINT

SUFFIX = ".stamps"
RECORD = np.dtype([("state", "<i8", 6), ("size", "<u4", 2)])
"""The states of both files of a row, and the upright size of its picture, (0, 0) if unknown."""
_ENCODING = ("utf-8", "surrogateescape")
UNKNOWN = (0, -1, -1)
"""The state of a file that could not be read: no file has it."""
MIN_FILE_AGE = 2_000_000_000
"""The time of a file that was changed less than so many nanoseconds before it was read is not trusted: the file could
change again within one tick of the clock, with the same time."""

FileState = tuple[int, int, int]
"""Size, mtime and ctime in nanoseconds. The ctime reveals a file that was given another one's name and mtime."""


@dataclass(frozen=True)
class ShardStamps:
    """The stamps of one shard."""

    stem: str
    recipe: str
    judged: str
    records: NDArray[Any]
    text: str
    """The `row_text` of all rows."""

    @property
    def split(self) -> str:
        return self.stem.rpartition("-")[0]

    @property
    def first_key(self) -> str:
        return self.text.partition("\0")[0]

    @property
    def files(self) -> list[str]:
        """The image and the label of each row, as in `row_text`."""
        return [line.partition("\0")[2] for line in self.text.split("\n")]


def state_of(path: Path | str) -> FileState:
    """Return the state of a file now."""
    try:
        status = os.stat(path)  # noqa: PTH116 - called for every file, and a Path takes twice as long
    except OSError:
        return UNKNOWN
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def state_to_keep(path: Path | str) -> FileState:
    """Return the state to store for a file that is about to be read."""
    state = state_of(path)
    return state if state[1] < time.time_ns() - MIN_FILE_AGE else (state[0], -1, -1)


def row_text(rows: Iterable[tuple[str, ...]]) -> str:
    """Return a line for each row: its key and its parts. None of them has a line break or a zero."""
    return "\n".join(map("\0".join, rows))


def write_stamps(out: Path, stem: str, recipe: str, judged: str, records: NDArray[Any], text: str) -> None:
    """Write the stamps of a shard, a RECORD per line of `text`. If that fails, the next build only takes longer."""
    data = records.tobytes() + text.encode(*_ENCODING)
    head = json.dumps({"recipe": recipe, "judged": judged, "rows": len(records), "crc32": zlib.crc32(data)})
    folder = out / STAMPS
    try:
        folder.mkdir(exist_ok=True)
        with partial(folder) as path:
            path.write_bytes(head.encode() + b"\n" + data)
            path.replace(folder / (stem + SUFFIX))
    except OSError:
        return


def load_stamps(out: Path) -> list[ShardStamps]:
    """Return the stamps of all shards that can be read, the newest last."""
    try:
        paths = [path for path in (out / STAMPS).iterdir() if path.suffix == SUFFIX]
        paths.sort(key=lambda path: (path.stat().st_mtime_ns, path.name))
    except OSError:
        return []
    return [stamps for stamps in map(_load, paths) if stamps is not None]


def _load(path: Path) -> ShardStamps | None:
    try:
        line, _, data = path.read_bytes().partition(b"\n")
        head = json.loads(line)
        rows = int(head["rows"])
        if zlib.crc32(data) != head["crc32"]:
            return None
        records = np.frombuffer(data, RECORD, rows)
        text = data[records.nbytes :].decode(*_ENCODING)
        recipe, judged = str(head["recipe"]), str(head["judged"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    if not FINGERPRINT.fullmatch(path.stem.rpartition("-")[2]) or text.count("\n") + 1 != rows:
        return None
    return ShardStamps(path.stem, recipe, judged, records, text)
