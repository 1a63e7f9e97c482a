"""`RowIndex`: the counts of all rows of a pack, by class, in one mapped file."""

from __future__ import annotations

import os
from tempfile import TemporaryFile
from threading import Event, Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.packs.count_rows import count_rows
from packer.shards.row_counts import CountedFields, RowCounts
from readers.contract.errors import ReadError
from readers.pack import Pack

MOST_CLASSES = 1024
"""The most classes by which rows are found: the file has 4 bytes for each class and row."""
IGNORED, AREA, MANY, BRIGHTNESS = range(4)
"""The lines after the lines of the classes: ignored pixels, all pixels, the number of classes, and the brightness."""


class RowIndex:
    """Arrays over all rows. They are filled by a thread, because the first rows are shown before all are counted."""

    def __init__(self, pack: Pack) -> None:
        self.label = CountedFields.of(pack.manifest.fields, pack.manifest.fields).label
        self.classes = min(MOST_CLASSES, len(self.label.classes or ()) if self.label else 0)
        self.done = 0
        self.problem = ""
        self._pack = pack
        self._ready = Event()
        shape = self.classes + 4, max(1, pack.manifest.rows)
        with TemporaryFile(prefix="segpack-view-") as file:  # it has no name, so nothing stays behind
            os.posix_fallocate(file.fileno(), 0, 4 * shape[0] * shape[1])  # a full disk fails here, not in the map
            self._numbers: NDArray[Any] = np.memmap(file, np.uint32, "r+", shape=shape)
        self._thread = Thread(target=self._fill, name="counting", daemon=True)

    def start(self) -> None:
        """Begin to count."""
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Return whether all rows are counted, after this number of seconds at most."""
        return self._ready.wait(seconds)

    def pixels(self, number: int) -> NDArray[np.uint32]:
        """Return the pixels of a class in each row."""
        counts: NDArray[np.uint32] = self._numbers[number]
        return counts

    def share(self, number: int) -> NDArray[np.float64]:
        """Return the share of a class in each row, 0 in rows without a label."""
        return self.pixels(number) / np.maximum(self._line(AREA), 1)

    @property
    def ignored(self) -> NDArray[np.float64]:
        """The share of ignored pixels in each row."""
        return self._line(IGNORED) / np.maximum(self._line(AREA), 1)

    @property
    def many(self) -> NDArray[np.uint32]:
        """The number of classes in each row."""
        return self._line(MANY)

    @property
    def brightness(self) -> NDArray[np.float32]:
        """The brightness of each row; NaN if it has no picture."""
        values: NDArray[np.float32] = self._line(BRIGHTNESS).view(np.float32)
        return values

    def _line(self, number: int) -> NDArray[np.uint32]:
        line: NDArray[np.uint32] = self._numbers[self.classes + number]
        return line

    def _fill(self) -> None:
        try:
            for counts in count_rows(self._pack):
                self._add(counts)
        except (ReadError, OSError) as error:
            self.problem = str(error)
        else:
            self._ready.set()

    def _add(self, counts: RowCounts) -> None:
        rows = slice(self.done, self.done + len(counts.ignored))
        if len(counts.classes):
            self._numbers[: self.classes, rows] = counts.classes[: self.classes]
            self._line(IGNORED)[rows] = counts.ignored
            self._line(AREA)[rows] = counts.classes.sum(0, np.uint32) + counts.ignored
            self._line(MANY)[rows] = (counts.classes > 0).sum(0)
        self._line(BRIGHTNESS)[rows] = counts.brightness.view(np.uint32)
        self.done = rows.stop
