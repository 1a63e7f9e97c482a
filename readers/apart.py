"""`Apart`: whole windows for each rank, so that a rank fetches the shards of its own windows and no others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from readers.permutation import Numbers


class Opened(NamedTuple):
    """The windows that are partly received: their count, from `first` on. Their rows come in turns."""

    first: int
    windows: int


NOTHING_OPEN = Opened(0, 0)


class Apart(NamedTuple):
    """The order in which W ranks, one row each in turns, receive the windows: a round of W windows after the other.

    In a round each rank has one window. What an earlier number of ranks left open comes first, in the turns of that
    round: the ranks of today share it. Fewer than W windows are left at the end, and all ranks share these, too, so
    that all get equally many rows.
    """

    rows: int
    size: int
    """The rows of a window."""
    world_size: int
    opened: Opened

    def positions(self, turns: Numbers) -> Numbers:
        """Return where the rows that come at these turns lie, if the windows follow each other."""
        first, many = self._round(turns // self.size)
        inside = turns - first * self.size
        positions: Numbers = (first + inside % many) * self.size + inside // many
        return positions

    def open_after(self, consumed: int) -> Opened:
        """Return the windows of the round in which this number of rows is received."""
        first, many = self._round(np.array([consumed // self.size]))
        return Opened(int(first[0]), int(many[0]))

    def _round(self, windows: Numbers) -> tuple[Numbers, Numbers]:
        """Return the first window of the round of each window, and the number of windows in it."""
        first, many = self.opened
        begin, ranks = first + many, self.world_size
        end = begin + max(0, self.rows // self.size - begin) // ranks * ranks
        rounds, opened = (begin <= windows) & (windows < end), (first <= windows) & (windows < begin)
        firsts = np.where(rounds, windows - (windows - begin) % ranks, np.where(opened, first, windows))
        return firsts, np.where(rounds, ranks, np.where(opened, many, 1))
