"""Stamps: the states of the rows of a shard when they were read. Unchanged rows are not read again.

They are in OUT/stamps, one file per shard: a line of JSON, a record per row, then a line per row with its key and its
parts, so that whole shards are compared at once. The source decides how many numbers a state has. A file that is
damaged or has another form is ignored. Stamps are not part of the pack: without them a build only takes longer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.publish.target import STAMP_SUFFIX as SUFFIX
from packer.publish.target import STAMPS
from packer.recipe.piece import text_of
from packer.recipe.shard_spec import ShardSpec
from packer.shards.side_file import read_side_file, write_side_file
from packer.spill.long_text import LongText
from readers.contract.receipt import FINGERPRINT

MOST_NUMBERS = 1 << 10
"""The most numbers that a state may have."""
_ENCODING = ("utf-8", "surrogateescape")


@dataclass(frozen=True)
class ShardStamps:
    """The stamps of one shard."""

    stem: str
    recipe: str
    judged: str
    source: str
    """The kind of the source."""
    records: NDArray[Any]
    """For each row, of the dtype `record`."""
    text: str
    """The `text_of` the pieces of all rows."""

    @property
    def split(self) -> str:
        return self.stem.rpartition("-")[0]

    @property
    def parts(self) -> list[str]:
        """The parts of each row, as in `text`."""
        return [line.partition("\0")[2] for line in self.text.split("\n")]


@dataclass(frozen=True)
class StoredStamps:
    """The stamps of one shard in a text with the stamps of other shards, which is on disk if it is long."""

    stem: str
    recipe: str
    judged: str
    source: str
    width: int
    """The numbers of a state."""
    sides: int
    """The numbers of a size."""
    rows: int
    first_key: str
    stored: LongText
    begin: int
    end: int

    @property
    def split(self) -> str:
        return self.stem.rpartition("-")[0]

    def load(self) -> ShardStamps:
        """Return the stamps of the shard, with the stamp of each row."""
        data = bytes(self.stored[self.begin : self.end])
        records = np.frombuffer(data, record(self.width, self.sides), self.rows)
        text = data[records.nbytes :].decode(*_ENCODING)
        return ShardStamps(self.stem, self.recipe, self.judged, self.source, records, text)


def record(width: int, sides: int = 2) -> np.dtype[Any]:
    """Return the dtype of a stamp: the state of a row, and the sides of its upright picture, all 0 if unknown."""
    return np.dtype([("state", "<i8", (width,)), ("size", "<u4", (sides,))])


def write_stamps(out: Path, stamps: ShardStamps) -> None:
    """Write the stamps of a shard. If that fails, the next build only takes longer."""
    data = stamps.records.tobytes() + stamps.text.encode(*_ENCODING)
    width, sides = (stamps.records[name].shape[1] for name in ("state", "size"))
    facts = {"recipe": stamps.recipe, "judged": stamps.judged, "source": stamps.source, "width": width, "sides": sides}
    write_side_file(out, stamps.stem + SUFFIX, {**facts, "rows": len(stamps.records)}, data)


def load_stamps(out: Path) -> list[StoredStamps]:
    """Return the stamps of all shards that can be read, the newest last. Each file is read once."""
    try:
        paths = [path for path in (out / STAMPS).iterdir() if path.suffix == SUFFIX]
        paths.sort(key=lambda path: (path.stat().st_mtime_ns, path.name))
    except OSError:
        return []
    stored = LongText()
    return [stamps for path in paths if (stamps := _load(path, stored)) is not None]


def load_stamps_of(out: Path, stem: str) -> ShardStamps | None:
    """Return the stamps of one shard; None if there are none, or they are damaged."""
    packed = _load(out / STAMPS / (stem + SUFFIX), LongText())
    return None if packed is None else packed.load()


def may_be_one_of(spec: ShardSpec, stems: Iterable[str], out: Path) -> bool:
    """Return whether a shard of a plan has the rows of one of these shards, as far as their stamps are known."""
    stamps = [load_stamps_of(out, stem) for stem in stems if stem.rpartition("-")[0] == spec.split]
    return any(stamps_of is None or stamps_of.text == text_of(spec.pieces) for stamps_of in stamps)


def _load(path: Path, stored: LongText) -> StoredStamps | None:
    try:
        head, data = read_side_file(path)
        rows, width, sides = int(head["rows"]), int(head["width"]), int(head.get("sides", 2))
        if not 0 < width <= MOST_NUMBERS or sides not in (2, 3):
            return None
        text = data[np.frombuffer(data, record(width, sides), rows).nbytes :]
        recipe, judged, source = (str(head[name]) for name in ("recipe", "judged", "source"))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not FINGERPRINT.fullmatch(path.stem.rpartition("-")[2]) or text.count(b"\n") + 1 != rows:
        return None
    begin, first_key = len(stored), text.partition(b"\0")[0].decode(*_ENCODING)
    stored.add(data)
    return StoredStamps(path.stem, recipe, judged, source, width, sides, rows, first_key, stored, begin, len(stored))
