"""`PlanFolder`: a plan as files, so that any machine can build any of its shards.

```
rows-00000.txt …  the lines of a RefTable: key and parts of each row, shard by shard
sizes.npy         the sides of each row, all 0 if the plan found that the row is bad
shards.npy        a RECORD for each shard: where its lines are, and their digest
plan.json         `PlanFacts`, written last. Its SHA-256 is the name of the plan, and it has that of all records
```

A folder is never changed. Opening it reads plan.json and the records, so it checks everything but the lines and sizes,
which are checked when a shard is read. Nothing in it is unpickled. Its source may name functions: a part calls only
functions of modules that its user allows.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.decoding.raw_file import SEPARATOR
from packer.errors import InputError
from packer.pixels.choices import TILE
from packer.recipe.piece import PieceTable
from packer.recipe.plan_facts import PlanFacts
from packer.recipe.recipe import ROWS_OF_A_SHARD
from packer.recipe.ref_table import RefTable
from packer.recipe.row_ref import RowRef
from packer.recipe.shard_spec import ShardSpec
from readers.contract.errors import DamagedError
from readers.contract.regular_files import open_raw, read_raw
from readers.contract.shard_table import field_bits

PLAN, SHARDS, SIZES, ROWS = "plan.json", "shards.npy", "sizes.npy", "rows-{:05d}.txt"
RECORD = np.dtype(
    [
        ("fingerprint", "S32"),  # of the shard, if it exists already
        ("digest", "V16"),  # the BLAKE2b of its lines and sizes
        ("begin", "<u8"),  # of its lines in their file
        ("bytes", "<u8"),
        ("row", "<u8"),  # the number of its first row, in the order of the lines
        ("weight", "<u8"),
        ("file", "<u4"),
        ("rows", "<u4"),
        ("skip", "<u4"),  # tiles of its first row that are in the shard before
        ("pieces", "<u4"),
        ("split", "<u4"),
        ("fields", "<u4"),  # bit i: its rows have field i of the recipe
    ]
)
SIZE = np.dtype("<u4")
MOST_PIECES = 2 * ROWS_OF_A_SHARD
"""No shard is cut with more."""
MOST_TILES = 1 << 20
"""The most tiles of a picture that a plan is believed to have."""
MOST_KEY_BYTES = 1 << 16
"""A key is a path, and shorter."""
_UNSAFE = re.compile(r"(?:^|/)\.\.?(?:/|$)|^/|[\0\n]")


def npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return the header of a file of this number of records. Its length does not depend on their number."""
    buffer = io.BytesIO()
    descr = dtype.descr if dtype.names else dtype.str
    np.lib.format.write_array_header_1_0(buffer, {"descr": descr, "fortran_order": False, "shape": shape})
    return buffer.getvalue()


def digest_of_shard(lines: bytes, sizes: bytes) -> bytes:
    """Return the digest of the rows of a shard."""
    return hashlib.blake2b(lines + sizes, digest_size=16).digest()


class PlanFolder:
    """An opened plan. `spec(n)` is the spec of shard n, the same as in memory when the build was planned."""

    def __init__(self, folder: Path, facts: PlanFacts, sha256: str) -> None:
        self.folder, self.facts, self.sha256 = folder, facts, sha256
        self.records = self._open_records()
        """A RECORD for each shard."""
        problem = next(_problems(facts, self.records), None)
        if problem is not None:
            raise DamagedError(f"{folder / SHARDS}: {problem}")

    @classmethod
    def open(cls, folder: Path, sha256: str | None = None) -> PlanFolder:
        """Open the plan in a folder, which must be the one with this SHA-256, if that is given."""
        try:
            data = read_raw(folder / PLAN)
        except FileNotFoundError as error:
            raise InputError(
                f"{folder}: is not a finished plan, it has no {PLAN}; packer plan RAW {folder} writes one"
            ) from error
        except OSError as error:
            raise InputError(f"{folder / PLAN}: cannot be read ({error.strerror})") from error
        digest = hashlib.sha256(data).hexdigest()
        if sha256 not in (None, digest):
            raise DamagedError(f"{folder}: is plan {digest[:16]}, not {str(sha256)[:16]}")
        return cls(folder, PlanFacts.from_text(data.decode("utf-8", "replace"), folder / PLAN), digest)

    def __len__(self) -> int:
        return len(self.records)

    def fingerprint(self, number: int) -> str | None:
        """Return the fingerprint of a shard that existed when the build was planned."""
        return bytes(self.records["fingerprint"][number]).decode("ascii") or None

    def split(self, number: int) -> str:
        """Return the split of a shard."""
        return self._names[int(self.records["split"][number])]

    @cached_property
    def row_bytes(self) -> NDArray[np.int64]:
        """The bytes of the rows of each shard, if none is rejected."""
        recipe, weights = self.facts.recipe, self.records["weight"].astype(np.int64)
        if recipe.geometry.size is None:
            return weights
        bytes_of = np.array([field.row_bytes_at(*recipe.geometry.size) for field in recipe.fields], np.int64)
        has = self.records["fields"][:, None] >> np.arange(len(bytes_of), dtype=np.uint32) & 1
        return weights * (has.astype(np.int64) @ bytes_of)

    def begins_with(self, number: int, key: str) -> bool:
        """Return whether the first row of a shard has this key. Its lines are not checked."""
        record = self.records[number]
        path, begin = self.folder / ROWS.format(int(record["file"])), int(record["begin"])
        line = self._read(path, begin, min(int(record["bytes"]), MOST_KEY_BYTES))
        return line.partition(b"\0")[0] == key.encode("utf-8", "surrogatepass")

    def spec(self, number: int) -> ShardSpec:
        """Read the spec of a shard. Raise DamagedError if its rows are not those that were planned."""
        record, recipe, name = self.records[number], self.facts.recipe, self.split(number)
        spans, rows = self.spans(number), int(record["rows"])
        path = spans[0][0]
        lines, pairs = (self._read(*span) for span in spans)
        if digest_of_shard(lines, pairs) != record["digest"].tobytes():
            raise DamagedError(f"{path}: the rows of shard {number} are not those that were planned")
        ends = np.flatnonzero(np.frombuffer(lines, np.uint8) == ord("\n")).astype(np.int64) + 1
        sizes = np.frombuffer(pairs, SIZE).reshape(-1, recipe.sides)
        if len(ends) != rows or ends[-1] != len(lines) or not self._counts_fit(sizes):
            raise DamagedError(f"{path}: shard {number} has not the {rows} rows that were planned")
        refs = RefTable(lines, ends, {name: rows})
        self._check_rows(refs, int(record["fields"]), f"{path}: shard {number}")
        skip, count = int(record["skip"]), int(record["pieces"])
        pieces = PieceTable(refs, sizes.astype(np.uint32), recipe.geometry, range(rows), recipe.blocks)
        if (len(pieces) < skip + count) if recipe.geometry.fit == TILE else len(pieces) != count:
            raise DamagedError(f"{path}: shard {number} has {len(pieces)} pieces, not {skip} and {count}")
        return ShardSpec(name, pieces[skip : skip + count], recipe)

    def spans(self, number: int) -> list[tuple[Path, int, int]]:
        """Return file, start and count of the bytes that `spec` reads: the lines and the sizes."""
        record, sides = self.records[number], self.facts.recipe.sides
        lines = (self.folder / ROWS.format(int(record["file"])), int(record["begin"]), int(record["bytes"]))
        start = len(npy_header(SIZE, (self.facts.rows, sides))) + sides * SIZE.itemsize * int(record["row"])
        return [lines, (self.folder / SIZES, start, sides * SIZE.itemsize * int(record["rows"]))]

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(self.facts.splits)

    @cached_property
    def _paths_are_checked(self) -> bool:
        """True if the parts of a row are paths below RAW."""
        return bool(json.loads(self.facts.source).get("kind") == "folder")

    def _counts_fit(self, sizes: NDArray[np.uint32]) -> bool:
        """Return whether no picture is cut into absurdly many tiles."""
        geometry = self.facts.recipe.geometry
        if geometry.fit != TILE or geometry.size is None:
            return True
        steps = np.maximum(1, np.array(geometry.size, np.float64) - geometry.overlap)
        tiles = (sizes / steps + 1).prod(1)  # only the first and the last row may have tiles in other shards
        return bool((tiles <= MOST_TILES).all() and tiles[1:-1].sum() <= 4 * MOST_PIECES)

    def _check_rows(self, refs: RefTable, fields: int, where: str) -> None:
        """Refuse rows that no source would list."""
        names = [rule.name for rule in self.facts.recipe.rules]
        try:
            for ref in refs:
                present = field_bits(names, [name for name, part in zip(names, ref.parts, strict=True) if part])
                if present != fields or not ref.key:
                    raise ValueError(f"{ref.key!r} has other fields than planned")
                if self._paths_are_checked and (path := _unsafe(ref)) is not None:
                    raise ValueError(f"{path!r} is not a path below RAW")
        except ValueError as error:  # also a line with more parts, and bytes that cannot be decoded
            raise DamagedError(f"{where}: {error}") from error

    def _read(self, path: Path, start: int, count: int) -> bytes:
        try:
            with open_raw(path) as file:
                file.seek(start)
                data = file.read(count)
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror})") from error
        if len(data) != count:
            raise DamagedError(f"{path}: is shorter than planned")
        return data

    def _open_records(self) -> NDArray[Any]:
        """Map the records, and check that all files have their sizes."""
        header = npy_header(RECORD, (self.facts.shards,))
        sizes = [(ROWS.format(number), size) for number, size in enumerate(self.facts.rows_files)]
        sizes.append((SHARDS, len(header) + self.facts.shards * RECORD.itemsize))
        shape = (self.facts.rows, self.facts.recipe.sides)
        sizes.append((SIZES, len(npy_header(SIZE, shape)) + SIZE.itemsize * math.prod(shape)))
        for name, size in sizes:
            path = self.folder / name
            try:
                with open_raw(path) as file:
                    length = file.seek(0, io.SEEK_END)
            except OSError as error:
                raise DamagedError(f"{path}: cannot be read ({error.strerror})") from error
            if length != size:
                raise DamagedError(f"{path}: has {length:,} bytes, not {size:,} as planned")
        if self._read(self.folder / SHARDS, 0, len(header)) != header:
            raise DamagedError(f"{self.folder / SHARDS}: is not a table of {self.facts.shards} shards")
        mapped = np.memmap(self.folder / SHARDS, RECORD, "r", len(header), (self.facts.shards,))
        if hashlib.sha256(mapped.data).hexdigest() != self.facts.records:
            raise DamagedError(f"{self.folder / SHARDS}: has not the SHA-256 that {PLAN} names")
        return mapped.view(np.ndarray)


def _unsafe(ref: RowRef) -> str | None:
    """Return a path of a row that leads out of RAW, if there is one."""
    paths = (path for part in ref.parts for path in part.split(SEPARATOR))
    return next((path for path in paths if _UNSAFE.search(path)), None)


def _problems(facts: PlanFacts, records: NDArray[Any]) -> Iterator[str]:
    """Yield what is wrong with the records. Numbers of a hostile plan may be anything."""
    rows, pieces, skip = (records[name].astype(np.int64) for name in ("rows", "pieces", "skip"))
    if (np.minimum(rows, pieces) < 1).any() or (np.maximum(rows, pieces) > MOST_PIECES).any():
        yield f"a shard has no rows, or more than {MOST_PIECES}"
    is_tiled = facts.recipe.geometry.fit == TILE
    if (skip > MOST_TILES).any() if is_tiled else (skip != 0).any() or (rows != pieces).any():
        yield "a shard has not the pieces of its rows"
    if int(pieces.sum()) != facts.pieces:
        yield f"the shards have {int(pieces.sum())} pieces, not {facts.pieces}"
    starts = np.cumsum(rows) - rows - np.cumsum(skip > 0)
    if (records["row"] != starts.astype(np.uint64)).any() or int(starts[-1] + rows[-1]) != facts.rows:
        yield "the shards are not all rows, one after the other"
    if (records["split"] >= len(facts.splits)).any() or (np.diff(records["split"].astype(np.int64)) < 0).any():
        yield "the splits are not in order"
    elif np.bincount(records["split"], rows - (skip > 0), len(facts.splits)).tolist() != list(facts.splits.values()):
        yield "the splits have not the rows that were planned"
    if (records["file"] >= len(facts.rows_files)).any():
        yield "a file of rows is missing"
        return
    sizes = np.array(facts.rows_files, np.uint64)[records["file"]]
    if (records["bytes"] > sizes).any() or (records["begin"] > sizes - np.minimum(records["bytes"], sizes)).any():
        yield "the lines of a shard are not within their file"
    if (records["fields"] == 0).any() or (records["fields"] >> len(facts.recipe.rules)).any():
        yield "a shard has unknown fields"
    fingerprints = np.ascontiguousarray(records["fingerprint"]).view(np.uint8).reshape(-1, 32)
    hexadecimal = np.isin(fingerprints, np.frombuffer(b"0123456789abcdef", np.uint8)).all(1)
    if not (hexadecimal | (fingerprints == 0).all(1)).all():
        yield "a fingerprint has not 32 hex digits"
