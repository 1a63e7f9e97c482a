"""`TiffShape`: what a strip or tile holds when it is unpacked."""

from __future__ import annotations

from typing import NamedTuple


class TiffShape(NamedTuple):
    """Rows, columns and samples of a block, and bits of a sample. The last strip may be stored with `most_rows`."""

    rows: int
    columns: int
    samples: int
    bits: int
    most_rows: int

    @property
    def item_bytes(self) -> int:
        """The bytes of a number, of 8 bits or more."""
        return self.bits // 8

    @property
    def row_bytes(self) -> int:
        return -(-self.columns * self.samples * self.bits // 8)

    @property
    def size(self) -> int:
        return self.rows * self.row_bytes
