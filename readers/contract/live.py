"""A live pack: a pack that is read while it is built. OUT/live has what its builder and its readers tell each other.

manifest.json, generations/shards-….npy     the plan as a pack, without names of shards and statistics
built       a record for each shard, filled in when its files are in OUT
wanted/     a file for each reader, with the shards that it needs next
readers     locked by each reader as long as it lives
builder     locked by the builder as long as it lives; its text says why it ended, such as PUBLISHED
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from readers.contract.system import read_at

ASKED, BUILT, WANTED, READERS, BUILDER = "asked", "built", "wanted", "readers", "builder"
RECORD = np.dtype([("fingerprint", "S32"), ("receipt", "S64"), ("rows", "<u8"), ("crc32", "<u4"), ("zero", "<u4")])
PUBLISHED = "published"
MOST_WANTED = 64
"""The shards that a reader asks for at the same time."""
_NUMBER = np.dtype("<u8")


class LiveShard(NamedTuple):
    """The facts of a shard whose files are in OUT."""

    fingerprint: str
    receipt: str
    """The SHA-256 of its receipt."""
    rows: int
    """Its rows; fewer than planned if pairs turned out to be bad."""


def note_built(file: int, number: int, shard: LiveShard) -> None:
    """Write the record of a shard into the open file `built`."""
    record = np.zeros(1, RECORD)
    record["fingerprint"], record["receipt"], record["rows"] = shard.fingerprint, shard.receipt, shard.rows
    record["crc32"] = _checksum(record.tobytes())
    os.pwrite(file, record.tobytes(), number * RECORD.itemsize)


def read_built(file: int, number: int) -> LiveShard | None:
    """Return the facts of a shard; None before it is built."""
    data = read_at(file, RECORD.itemsize, number * RECORD.itemsize)
    if len(data) < RECORD.itemsize or not any(data):
        return None
    (record,) = np.frombuffer(data, RECORD)
    if int(record["crc32"]) != _checksum(data):
        return None  # half of it is there
    fingerprint, receipt = (bytes(record[name]).decode("ascii", "replace") for name in ("fingerprint", "receipt"))
    return LiveShard(fingerprint, receipt, int(record["rows"]))


def _checksum(data: bytes) -> int:
    return zlib.crc32(data[: RECORD.fields["crc32"][1]])  # type: ignore[index]


def write_wanted(path: Path, shards: Iterable[int]) -> None:
    """Write the shards that a reader needs next."""
    new = path.with_name(f".{path.name}")
    new.write_bytes(np.fromiter(shards, _NUMBER).tobytes())
    new.replace(path)


def read_wanted(folder: Path) -> Iterator[int]:
    """Yield the shards that readers need, the first of each reader first."""
    lists = []
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if not entry.name.startswith("."):
                with suppress(OSError, ValueError):
                    lists.append(np.frombuffer(Path(entry.path).read_bytes()[: 8 * MOST_WANTED], _NUMBER).tolist())
    for place in range(max(map(len, lists), default=0)):
        yield from (shards[place] for shards in lists if place < len(shards))
