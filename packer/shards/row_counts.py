"""Row counts: for each row of a shard the pixels of each class, the ignored pixels, and the brightness.

They are in OUT/stamps, one file per shard: arrays by class, so that a filter by class reads a part of them. A program
that shows a pack finds rows by them without reading a pixel. They are not part of the pack: `packs/count_rows` counts
again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.publish.target import STAMPS
from packer.shards.side_file import read_side_file, write_side_file
from readers.contract.fields import LABEL, Field
from readers.contract.kinds import PICTURE
from readers.contract.statistics import UNIT_BITS, ClassStatistics, FieldStatistics, PictureStatistics

SUFFIX = ".counts"
MOST = 2**32 - 1
"""The most pixels of a row that are counted."""
_RULE = 1
"""The form of the file. A file of another form is counted again."""


@dataclass(frozen=True)
class CountedFields:
    """The fields of a shard that are counted: the label, and the first picture; None if rows have none."""

    label: Field | None
    picture: Field | None

    @classmethod
    def of(cls, fields: Sequence[Field], present: Sequence[Field]) -> CountedFields:
        """Choose among the fields of a pack: `label`, or else the first one with classes, and the first picture.

        A shard whose rows lack the chosen field has no counts of it: only `present` fields are counted.
        """
        tables = {field.name: field for field in fields if field.classes is not None}
        label = tables.get(LABEL) or next(iter(tables.values()), None)
        picture = next((field for field in fields if field.kind == PICTURE), None)
        return cls(label if label in present else None, picture if picture in present else None)

    @property
    def classes(self) -> int:
        return 0 if self.label is None else len(self.label.classes or ())


@dataclass(frozen=True)
class RowCounts:
    """The counts of the packed rows of a shard, in order."""

    classes: NDArray[np.uint32]
    """(classes, rows): the pixels of each class; no classes if the rows have no label."""
    ignored: NDArray[np.uint32]
    """The pixels that are in no class."""
    brightness: NDArray[np.float32]
    """The mean of all bands of the first picture, from 0 to 1 if it has a range; NaN if rows have no picture."""

    @classmethod
    def empty(cls, classes: int, rows: int) -> RowCounts:
        """Return counts to be filled row by row."""
        nothing = np.zeros(rows, np.uint32), np.full(rows, np.nan, np.float32)
        return cls(np.zeros((classes, rows), np.uint32), *nothing)

    def put(
        self, row: int, counted: CountedFields, fields: Iterable[Field], statistics: Iterable[FieldStatistics]
    ) -> None:
        """Fill in a row from the statistics of its fields."""
        for field, counts in zip(fields, statistics, strict=True):
            if field == counted.label and isinstance(counts, ClassStatistics):
                self.classes[:, row] = [min(count, MOST) for count in counts.classes]
                self.ignored[row] = min(counts.ignored, MOST)
            elif field == counted.picture and isinstance(counts, PictureStatistics):
                self.brightness[row] = _brightness(field, counts)

    def rows(self, kept: Sequence[int]) -> RowCounts:
        """Return the counts of some rows."""
        return RowCounts(self.classes[:, kept], self.ignored[kept], self.brightness[kept])


def _brightness(field: Field, statistics: PictureStatistics) -> float:
    low, high = field.range or (0, 1)
    unit = 2.0 ** -UNIT_BITS.get(field.dtype, 0)
    mean = sum(statistics.sums) / max(1, sum(statistics.counted)) * unit
    return (mean - low) / (high - low)


def write_counts(out: Path, stem: str, counts: RowCounts) -> None:
    """Write the counts of a shard. If that fails, they are counted again when they are wanted."""
    head = {"rule": _RULE, "classes": len(counts.classes), "rows": len(counts.ignored)}
    write_side_file(out, stem + SUFFIX, head, b"".join(part.tobytes() for part in vars(counts).values()))


def load_counts(out: Path, stem: str, classes: int, rows: int) -> RowCounts | None:
    """Return the counts of a shard of this number of classes and rows; None if they are missing or damaged."""
    try:
        head, data = read_side_file(out / STAMPS / (stem + SUFFIX))
    except (OSError, ValueError):
        return None
    if (head.get("rule"), head.get("classes"), head.get("rows")) != (_RULE, classes, rows):
        return None
    if len(data) != 4 * (classes + 2) * rows:
        return None
    numbers: NDArray[Any] = np.frombuffer(data, np.uint32).reshape(classes + 2, rows)
    return RowCounts(numbers[:classes], numbers[classes], numbers[classes + 1].view(np.float32))
