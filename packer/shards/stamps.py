"""Stamps: size and times of the raw files of a shard when they were read. Unchanged files are not read again.

They are in OUT/stamps, one file per shard: a line of JSON, then a record per row. A damaged file is ignored. Stamps are
not part of the pack: without them a build only takes longer.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.publish.target import STAMPS
from readers.contract.atomic import partial
from readers.contract.receipt import FINGERPRINT

SUFFIX = ".stamps"
RECORD = np.dtype([("row", "<u8", 2), ("files", "<u8", 2), ("state", "<i8", 6), ("size", "<u4", 2)])
UNKNOWN = (0, -1, -1)
"""The state of a file that could not be read: no file has it."""
MIN_FILE_AGE = 2_000_000_000
"""The time of a file that was changed less than so many nanoseconds before it was read is not trusted: the file could
change again within one tick of the clock, with the same time."""

FileState = tuple[int, int, int]
"""Size, mtime and ctime in nanoseconds. The ctime reveals a file that was given another one's name and mtime."""


@dataclass(frozen=True)
class RowStamp:
    """One row: its pair, the states of both files, and the upright size of its picture, (0, 0) if unknown."""

    key: str
    image: str
    label: str
    state: tuple[FileState, FileState]
    size: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class ShardStamps:
    """The stamps of one shard."""

    stem: str
    recipe: str
    judged: str
    records: NDArray[Any]


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


def write_stamps(out: Path, stem: str, recipe: str, judged: str, split: str, rows: Sequence[RowStamp]) -> None:
    """Write the stamps of a shard. If that fails, the next build only takes longer."""
    records = np.zeros(len(rows), RECORD)
    records["row"] = row_hashes(split, ((row.key, row.image, row.label) for row in rows))
    records["files"] = file_hashes((row.image, row.label) for row in rows)
    for record, row in zip(records, rows, strict=True):
        record["state"] = (*row.state[0], *row.state[1])
        record["size"] = row.size
    data = records.tobytes()
    head = json.dumps({"recipe": recipe, "judged": judged, "rows": len(rows), "crc32": zlib.crc32(data)})
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
        if zlib.crc32(data) != head["crc32"] or len(data) != head["rows"] * RECORD.itemsize:
            return None
        recipe, judged = str(head["recipe"]), str(head["judged"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    if not FINGERPRINT.fullmatch(path.stem.rpartition("-")[2]):
        return None
    return ShardStamps(path.stem, recipe, judged, np.frombuffer(data, RECORD))


def row_hashes(split: str, rows: Iterable[tuple[str, str, str]]) -> NDArray[np.uint64]:
    """Return (N,2) hashes of key, image and label of rows."""
    return _hashes((split, *row) for row in rows)


def file_hashes(pairs: Iterable[tuple[str, str]]) -> NDArray[np.uint64]:
    """Return (N,2) hashes of the paths of images and labels."""
    return _hashes(pairs)


def _hashes(rows: Iterable[tuple[str, ...]]) -> NDArray[np.uint64]:
    texts = ("\0".join(row).encode("utf-8", "surrogateescape") for row in rows)
    digests = b"".join([blake2b(text, digest_size=16).digest() for text in texts])
    return np.frombuffer(digests, "<u8").reshape(-1, 2)
