"""`ShardTable`: one record for each shard, in row order; mapped, so opening takes the same time at any size."""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.errors import DamagedError
from readers.contract.files import plain_file
from readers.contract.manifest import GENERATIONS, Manifest
from readers.contract.mapped import map_file

RECORD = np.dtype(
    [
        ("end", "<u8"),  # rows of this shard and all before it
        ("bytes", "<u8"),  # of its files, without the receipt
        ("fields", "<u4"),  # bit i: the shard has field i of the pack
        ("zero", "<u4"),
        ("fingerprint", "S32"),  # the shard's files are named by it
        ("receipt", "S64"),  # SHA-256 of its receipt
    ]
)


FEW = 4
"""Fewer rows are located faster one by one."""


def table_path(root: Path, digest: str) -> Path:
    """Return the path of the table with this SHA-256."""
    return root / GENERATIONS / f"shards-{digest[:32]}.npy"


def field_bits(fields: Sequence[str], names: Collection[str]) -> int:
    """Return the number whose bit i is 1 if field i is among these names."""
    return sum(1 << number for number, field in enumerate(fields) if field in names)


def table_header(shards: int) -> bytes:
    """Return the header of a table's file: a plain `.npy` header, which follows from the number of shards alone."""
    buffer = io.BytesIO()
    facts = {"descr": RECORD.descr, "fortran_order": False, "shape": (shards,)}
    np.lib.format.write_array_header_1_0(buffer, facts)
    return buffer.getvalue()


class ShardTable:
    """The mapped table of one generation."""

    def __init__(self, records: NDArray[Any]) -> None:
        self._records = records
        self._end = records["end"]

    @classmethod
    def open(cls, root: Path, manifest: Manifest) -> ShardTable:
        """Map the table, or read it where no map is possible. Its size and number of rows must fit the manifest
        (`packer verify` checks every byte)."""
        path = table_path(root, manifest.table)
        header = table_header(manifest.shards)
        try:
            with plain_file(root, path).open("rb") as file:
                fits = file.read(len(header)) == header
            if not fits or path.stat().st_size != len(header) + manifest.shards * RECORD.itemsize:
                raise ValueError(f"it is not a table of {manifest.shards} shards")
            mapped = map_file(path)
            data = np.fromfile(path, np.uint8) if mapped is None else mapped
            records = data[len(header) :].view(RECORD)
            if int(records["end"][-1]) != manifest.rows:
                raise ValueError(f"it ends at row {records['end'][-1]}, the manifest at {manifest.rows}")
        except (OSError, ValueError) as error:
            raise DamagedError(f"{path}: cannot be used as the shard table ({error}); run packer verify") from error
        return cls(records)

    def __len__(self) -> int:
        return len(self._records)

    def rows_before(self, shard: int) -> int:
        """Return the number of rows in the shards before this one."""
        return int(self._end[shard - 1]) if shard else 0

    def rows(self, shard: int) -> int:
        rows = int(self._end[shard]) - self.rows_before(shard)
        if not 0 <= rows <= int(self._end[-1]):
            raise DamagedError(f"shard {shard} of the table has an impossible {rows} rows; run packer verify")
        return rows

    def bytes(self, shard: int) -> int:
        return int(self._records["bytes"][shard])

    def fields(self, shard: int) -> int:
        """Return the fields that a shard has: bit i is 1 for field i of the pack."""
        if int(self._records["zero"][shard]):
            raise DamagedError(f"shard {shard} of the table has an unknown flag; run packer verify")
        return int(self._records["fields"][shard])

    def fingerprint(self, shard: int) -> str:
        return bytes(self._records["fingerprint"][shard]).decode("ascii", "replace")

    def receipt(self, shard: int) -> str:
        return bytes(self._records["receipt"][shard]).decode("ascii", "replace")

    def shards_at(self, rows: Sequence[int]) -> list[int]:
        """Return the shard of each row."""
        return [bisect_right(self._end, row) for row in rows] if len(rows) < FEW else self._shards_of(rows).tolist()

    def _shards_of(self, rows: Sequence[int]) -> NDArray[np.intp]:
        return self._end.searchsorted(np.asarray(rows, self._end.dtype), "right")

    def locate(self, row: int) -> tuple[int, int]:
        """Return the shard of a row, and the row's index in that shard."""
        shard = bisect_right(self._end, row)
        return shard, row - self.rows_before(shard)

    def locate_all(self, rows: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Return the same for many rows, in a time that hardly depends on the number of shards."""
        if len(rows) < FEW:
            return map(self.locate, rows)
        indices, shards = np.asarray(rows, np.int64), self._shards_of(rows)
        before = np.where(shards > 0, self._end[shards - 1], 0).astype(np.int64)
        return zip(shards.tolist(), (indices - before).tolist(), strict=True)
