"""The shard table: one record per shard, in row order; mapped, so that opening costs the same at any size."""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.errors import DamagedError
from readers.contract.manifest import GENERATIONS, Manifest

RECORD = np.dtype(
    [
        ("end", "<u8"),  # rows of this shard and all before it
        ("bytes", "<u8"),  # of its files, without the receipt
        ("fingerprint", "S32"),  # the shard's files are named by it
        ("receipt", "S64"),  # SHA-256 of its receipt
    ]
)


def table_path(root: Path, digest: str) -> Path:
    """Where the table with this SHA-256 lies."""
    return root / GENERATIONS / f"shards-{digest[:32]}.npy"


class ShardTable:
    """The mapped table of one generation."""

    def __init__(self, records: NDArray[Any]) -> None:
        self._records = records
        self._end = records["end"]

    @classmethod
    def open(cls, root: Path, manifest: Manifest) -> ShardTable:
        """Map the table; its size and total must fit the manifest (`packer verify` checks every byte)."""
        path = table_path(root, manifest.table)
        try:
            records = np.load(path, mmap_mode="r", allow_pickle=False).view(np.ndarray)
        except (OSError, ValueError, EOFError) as error:
            raise DamagedError(
                f"{path}: cannot be read as the shard table ({error}); run packer verify {root}"
            ) from error
        total = int(records["end"][-1]) if records.dtype == RECORD and len(records) else 0
        if records.dtype != RECORD or records.shape != (manifest.shards,) or total != manifest.rows:
            raise DamagedError(
                f"{path}: holds {len(records)} shards and {total} rows, the manifest says {manifest.shards} "
                f"and {manifest.rows}; run packer verify {root}"
            )
        return cls(records)

    def __len__(self) -> int:
        return len(self._records)

    def rows_before(self, shard: int) -> int:
        """How many rows lie in the shards before this one."""
        return int(self._end[shard - 1]) if shard else 0

    def rows(self, shard: int) -> int:
        return int(self._end[shard]) - self.rows_before(shard)

    def bytes(self, shard: int) -> int:
        return int(self._records["bytes"][shard])

    def fingerprint(self, shard: int) -> str:
        return bytes(self._records["fingerprint"][shard]).decode("ascii", "replace")

    def receipt(self, shard: int) -> str:
        return bytes(self._records["receipt"][shard]).decode("ascii", "replace")

    def locate(self, row: int) -> tuple[int, int]:
        """The shard of a row, and the row's place in it."""
        shard = bisect_right(self._end, row)
        return shard, row - self.rows_before(shard)
