"""Parquet files with a picture in each row. Row groups are read a few rows at a time."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, ClassVar

from packer.sources.archives.tables import TableSource, columns_of

ROWS = 8
"""Rows that are read together."""
MOST_KEPT, MOST_OPEN = 6, 16
"""Groups of rows, and files, that stay in memory: threads ask for rows that are near each other."""


class _File:
    """An open file, and how far the current row group was read."""

    def __init__(self, file: Any) -> None:
        import pyarrow.parquet

        self.file = file
        self.table = pyarrow.parquet.ParquetFile(file, pre_buffer=False, buffer_size=1 << 20)
        metadata = self.table.metadata
        counts = (metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
        self.ends = list(accumulate(counts))
        self.at = (-1, 0)
        """The row group that is read, and the number of its next part."""
        self.parts: Iterator[Any] = iter(())


class ParquetSource(TableSource):
    """Parquet files, such as those that the Hugging Face hub has."""

    kind: ClassVar[str] = "parquet"
    suffix: ClassVar[re.Pattern[str]] = re.compile(r"\.(parquet|pq)$")

    @staticmethod
    def knows(head: bytes) -> bool:
        return head.startswith(b"PAR1")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._open: OrderedDict[str, _File] = OrderedDict()
        self._kept: OrderedDict[tuple[str, int, int], Any] = OrderedDict()

    def schema(self, file: str) -> Any:
        return self._file(file).table.schema_arrow

    def count(self, file: str) -> int:
        return sum(self._file(file).ends[-1:])

    def column(self, file: str, name: str) -> Iterator[Any]:
        for batch in self._file(file).table.iter_batches(columns=[name]):
            yield from batch.column(0).to_pylist()

    def value(self, file: str, row: int, name: str) -> Any:
        opened = self._file(file)
        group = bisect_right(opened.ends, row)
        part, index = divmod(row - [0, *opened.ends][group], ROWS)
        return self._part(file, opened, group, part).column(name)[index]

    def _part(self, file: str, opened: _File, group: int, part: int) -> Any:
        """Return some rows of a row group. Parts that come later are read on from where the last one ended."""
        key = (file, group, part)
        if key not in self._kept:
            if opened.at[0] != group or opened.at[1] > part:
                columns = columns_of(opened.table.schema_arrow, self.names)
                self._read_ahead(opened, columns)
                opened.parts = opened.table.iter_batches(ROWS, [group], list(columns), use_threads=False)
                opened.at = (group, 0)
            while opened.at[1] <= part:
                self._kept[(file, *opened.at)] = next(opened.parts)
                opened.at = (group, opened.at[1] + 1)
                if len(self._kept) > MOST_KEPT:
                    self._kept.popitem(last=False)
        return self._kept[key]

    def _read_ahead(self, opened: _File, columns: Sequence[str]) -> None:
        """Read the columns of this file ahead, and no other file's."""
        for other in self._open.values():
            if other is not opened:
                self.files.rest(other.file)
        self.files.follow(opened.file, columns)

    def _file(self, file: str) -> _File:
        if file not in self._open:
            opened = self._open[file] = _File(self.files.columns(file))
            if len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)
            return opened
        return self._open[file]
