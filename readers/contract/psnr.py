"""`PsnrCounts`: how much the rows of a field lost when they were stored as JPEG."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from readers.contract.receipt import MOST_PSNR


class PsnrCounts:
    """The number of rows for each PSNR in hundredths of a decibel, so that rows need no memory."""

    def __init__(self) -> None:
        self._rows = np.zeros(MOST_PSNR + 1, np.int64)

    def add(self, values: Sequence[int]) -> None:
        """Count the PSNR of rows."""
        self._rows += np.bincount(np.asarray(values, np.int64), minlength=MOST_PSNR + 1)

    def copy(self) -> PsnrCounts:
        """Return the same counts, to which others may be added."""
        other = PsnrCounts()
        other._rows += self._rows
        return other

    def __str__(self) -> str:
        """Return the least and the median in words."""
        rows = int(self._rows.sum())
        kept = int(self._rows[MOST_PSNR])
        if rows == kept:
            return "nothing was lost"
        least, median = (float(np.searchsorted(np.cumsum(self._rows), rank + 1)) / 100 for rank in (0, (rows - 1) // 2))
        words = f"PSNR of at least {least:.2f} dB, {median:.2f} dB in the median"
        return words + (f"; {kept:,} of {rows:,} rows lost nothing" if kept else "")
