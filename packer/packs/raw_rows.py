"""`RawRows`: rows of a pack built again from their raw files: in their own size, and by the recipe.

A raw file may crash or stall the process that decodes it, or fill its memory. So a worker process builds a shard of
this one row in a scratch folder, exactly as a build does, with a time limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.config.config import read_config
from packer.config.last_build import NAME
from packer.config.options import CONFIGURATION
from packer.errors import BusyError, InputError, PackError
from packer.plan.plan_row import PlannedRow, RowPlanner, StampedRow
from packer.shards.stamps import load_stamps_of
from packer.workers.run import build_one, open_pool
from readers.contract.fields import Field
from readers.contract.kinds import IDS
from readers.contract.manifest import SHARDS
from readers.contract.receipt import Receipt
from readers.formats import opener
from readers.formats.column import ShardFacts
from readers.formats.large_rows import is_large
from readers.pack import Pack
from readers.stores.checksums import read_receipt

TIME_LIMIT = 20
"""Seconds until a worker that decodes a row is ended."""
MOST_BYTES = 1 << 28
"""A row whose own size needs more is shown only as it would be stored."""
Pixels = Mapping[str, tuple[Field, NDArray[Any]]]
"""The numbers of a row by the name of the field."""


@dataclass(frozen=True)
class PixelDifference:
    """The pixels of a field that differ, and the largest difference of two numbers; None for classes and ids."""

    pixels: int
    largest: float | None


@dataclass(frozen=True)
class RawRow:
    """A row that was built again. With a `problem` it has no pixels."""

    problem: str = ""
    notes: tuple[str, ...] = ()
    as_it_is: Pixels = field(default_factory=dict)
    """In the size of its files; nothing if that is too large."""
    again: Pixels = field(default_factory=dict)
    """The row that a build with the same recipe would store now."""
    differences: Mapping[str, PixelDifference] = field(default_factory=dict)
    """The differences of `again` from the stored row, by the name of the field."""


class RawRows:
    """Builds rows of the current generation again, one at a time. The last one is kept."""

    def __init__(self, pack: Pack, time_limit: int = TIME_LIMIT) -> None:
        self._pack, self._time_limit = pack, time_limit
        self._lock = Lock()
        self._last: tuple[int, RawRow] | None = None

    def row(self, row: int, again: bool = False) -> RawRow:
        """Return a row; with `again`, read its files also if it was the last one. Raises BusyError."""
        if not self._lock.acquire(timeout=3 * self._time_limit):
            raise BusyError("another raw file is being read: try again")
        try:
            if again or self._last is None or self._last[0] != row:
                self._last = row, self._read(row)
            return self._last[1]
        finally:
            self._lock.release()

    @cached_property
    def _planner(self) -> RowPlanner:
        path = self._pack.root / NAME
        if not path.is_file():
            raise InputError("this pack does not say what it was built from: it was copied, or is older")
        return RowPlanner(read_config(path, more=CONFIGURATION))

    def _read(self, row: int) -> RawRow:
        number, inside = self._pack.table.locate(row)
        shard = self._pack.shard(number)
        receipt = read_receipt(self._pack.root, self._pack.stem(number), self._pack.table.receipt(number))
        if any(is_large(shard, field, inside) for field in self._pack.fields_of(number)):
            return RawRow("the row is too large to be read again; packer verify --deep checks it")
        try:
            planned = self._planner.plan(self._stamped(receipt, shard.key(inside)), self._pack.manifest.recipe)
            again, as_it_is, now = self._build(planned)
        except (PackError, OSError) as error:
            limit = f"--task-timeout {self._time_limit} s"
            return RawRow(str(error).replace(limit, f"{self._time_limit} seconds"))
        stored = {field.name: shard.row(field, inside) for field in self._pack.fields_of(number)}
        differences = {
            name: difference(field, pixels, stored[name]) for name, (field, pixels) in again.items() if name in stored
        }
        notes = list(_changed(planned, receipt, shard.key(inside), now))
        if planned.other_decoders and any(change.pixels for change in differences.values()):
            notes.append(f"the build decoded with other libraries: {planned.other_decoders}")
        if not as_it_is:
            notes.append("its own size is too large to be shown")
        return RawRow("", tuple(notes), as_it_is, again, differences)

    def _stamped(self, receipt: Receipt, key: str) -> StampedRow:
        stamps = load_stamps_of(self._pack.root, receipt.stem)
        if stamps is None:
            raise InputError("the pack has no stamps of this row, so its files are not known: it was copied")
        keys = [line.partition("\0")[0] for line in stamps.text.split("\n")]
        if key not in keys:
            raise InputError("the stamps of this pack do not name this row")
        index = keys.index(key)
        size = tuple(stamps.records["size"][index].tolist())
        parts = tuple(stamps.parts[index].split("\0"))
        return StampedRow(receipt.split, key, stamps.source, parts, size if size[0] else None, receipt.recipe)

    def _build(self, planned: PlannedRow) -> tuple[Pixels, Pixels, Receipt]:
        """Return the row as it would be stored, then in its own size."""
        with TemporaryDirectory(prefix="segpack-view-") as scratch, open_pool(1, self._time_limit) as pool:
            out = Path(scratch)
            (out / SHARDS).mkdir()

            def build(row: PlannedRow) -> tuple[Pixels, Receipt]:
                receipt = build_one(row.spec, row.source, out, pool)
                if receipt.rejects:
                    raise InputError(receipt.rejects[0].reason)
                shard = opener(receipt.storage)(out / SHARDS / receipt.stem, ShardFacts(1, row.spec.fields))
                return {field.name: (field, shard.read(field, 0)) for field in row.spec.fields}, receipt

            again, receipt = build(planned)
            stamps = load_stamps_of(out, receipt.stem)
            own = planned.in_own_size((0, 0) if stamps is None else tuple(stamps.records["size"][0].tolist()))
            return again, build(own)[0] if 0 < own.bytes <= MOST_BYTES else {}, receipt


def difference(field: Field, ours: NDArray[Any], stored: NDArray[Any]) -> PixelDifference:
    """Compare two rows of a field."""
    pixels = int(differing(field, ours, stored).sum())
    if field.classes is not None or field.kind == IDS:
        return PixelDifference(pixels, None)
    apart = np.abs(ours.astype(np.float64) - stored)
    return PixelDifference(pixels, float(np.nanmax(apart, initial=0.0)))


def differing(field: Field, ours: NDArray[Any], stored: NDArray[Any]) -> NDArray[np.bool_]:
    """Return the pixels of a row, without its planes, that differ in a number. Two that have no number are equal."""
    differ = (ours != stored) & ~((ours != ours) & (stored != stored))
    return np.asarray(differ.any(0) if field.planes else differ)


def _changed(planned: PlannedRow, before: Receipt, key: str, now: Receipt) -> Iterator[str]:
    """Yield the files that are not those that were packed."""
    packed = next(source.identities for source in before.sources if source.key == key)
    for name, old, new in zip(before.fields, packed, now.sources[0].identities, strict=True):
        if old != new:
            yield f"{planned.files[name]}: was changed since it was packed"
