"""`FindRows`: the rows that a query asks for, in its order."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.errors import UsageError
from packer.view.row_index import RowIndex
from readers.contract.manifest import ALL
from readers.pack import Pack

KEY, SHARE, IGNORED, BRIGHTNESS, MANY, SCORE = "key", "share", "ignored", "brightness", "many", "score"
SORTS = KEY, SHARE, IGNORED, BRIGHTNESS, MANY, SCORE
MOST_KEPT = 8
"""The number of queries whose rows are kept: four bytes each."""
MOST_TEXT = 1000


class CountingError(Exception):
    """The rows are still being counted."""


@dataclass(frozen=True)
class Query:
    """The rows that are asked for. Shares are from 0 to 1."""

    split: str = ALL
    text: str = ""
    number: int | None = None
    """The class that must occur, and by whose share rows are sorted."""
    least: float = 0.0
    most: float = 1.0
    ignored_least: float = 0.0
    ignored_most: float = 1.0
    finding: str = ""
    score_least: float = -math.inf
    score_most: float = math.inf
    sort: str = KEY
    descending: bool = False

    @classmethod
    def of(cls, asked: Mapping[str, str], classes: int, splits: Sequence[str]) -> Query:
        """Read the parameters of an address. Raises UsageError."""
        query = cls(
            split=asked.get("split") or ALL,
            text=asked.get("text", "").casefold(),
            number=whole(asked["class"], classes) if asked.get("class") else None,
            least=_share(asked.get("least"), 0.0),
            most=_share(asked.get("most"), 1.0),
            ignored_least=_share(asked.get("ignored_least"), 0.0),
            ignored_most=_share(asked.get("ignored_most"), 1.0),
            finding=asked.get("finding", ""),
            score_least=_number(asked.get("score_least"), -math.inf),
            score_most=_number(asked.get("score_most"), math.inf),
            sort=asked.get("sort") or KEY,
            descending=asked.get("descending") == "1",
        )
        if query.split not in (ALL, *splits) or query.sort not in SORTS or len(query.text) > MOST_TEXT:
            raise UsageError("unknown split or order, or a text that is too long")
        return query

    @property
    def counts(self) -> bool:
        """True if the counts of all rows are needed."""
        limits = self.least, self.most, self.ignored_least, self.ignored_most
        return self.number is not None or limits != (0, 1, 0, 1) or self.sort not in (KEY, SCORE)


def whole(text: str, below: int) -> int:
    """Return a whole number from 0 on that is below a limit. Raises UsageError."""
    if not (text.isascii() and text.isdigit() and len(text) <= 12 and int(text) < below):
        raise UsageError(f"expected a whole number below {below}")
    return int(text)


def _number(text: str | None, default: float) -> float:
    try:
        number = float(text) if text else default
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise UsageError("expected a number")
    return number


def _share(text: str | None, default: float) -> float:
    share = _number(text, default)
    if not 0 <= share <= 1:
        raise UsageError("expected a share from 0 to 1")
    return share


class FindRows:
    """Finds rows of a pack. The last queries are kept, because the page asks for parts of the same one."""

    def __init__(
        self, pack: Pack, index: RowIndex, findings: Mapping[str, Sequence[int]], scores: NDArray[Any] | None
    ) -> None:
        self._pack, self._index, self._findings, self._scores = pack, index, findings, scores
        self._kept: OrderedDict[Query, NDArray[np.int64]] = OrderedDict()
        self._lock = Lock()

    def rows(self, query: Query) -> NDArray[np.int64]:
        """Return the rows of a query in its order. Raises CountingError if they are not counted yet."""
        with self._lock:
            if query not in self._kept:
                self._kept[query] = self._find(query)
            self._kept.move_to_end(query)
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
            return self._kept[query]

    def numbers(self, query: Query) -> NDArray[Any] | None:
        """Return the numbers that a query sorts by, for all rows; None if it sorts by key."""
        index = self._index
        if query.sort == SHARE:
            return None if query.number is None else index.share(query.number)
        if query.sort == SCORE:
            return self._scores
        if query.sort == IGNORED:
            return index.ignored
        if query.sort == BRIGHTNESS:
            return index.brightness
        return index.many if query.sort == MANY else None

    def _find(self, query: Query) -> NDArray[np.int64]:
        if query.counts and not self._index.wait(0.2):
            raise CountingError
        within = self._pack.rows_of(query.split)
        rows = np.arange(within.start, within.stop, dtype=np.int64)
        if query.finding:
            rows = np.array(sorted(set(self._findings.get(query.finding, ())) & set(within)), np.int64)
        if self._scores is not None and (query.score_least, query.score_most) != (-math.inf, math.inf):
            score = self._scores[rows]  # NaN is neither: rows without a score are left out
            rows = rows[(score >= query.score_least) & (score <= query.score_most)]
        if query.number is not None:
            share = self._index.share(query.number)[rows]
            occurs = self._index.pixels(query.number)[rows] > 0
            rows = rows[occurs & (share >= query.least) & (share <= query.most)]
        if (query.ignored_least, query.ignored_most) != (0, 1):
            share = self._index.ignored[rows]
            rows = rows[(share >= query.ignored_least) & (share <= query.ignored_most)]
        if query.text:
            rows = self._with_text(rows, query.text)
        return self._sorted(rows, query)

    def _with_text(self, rows: NDArray[np.int64], text: str) -> NDArray[np.int64]:
        pack = self._pack
        numbers = rows.tolist()
        located = zip(numbers, pack.table.locate_all(numbers), strict=True)
        matching = [row for row, (shard, inside) in located if text in pack.shard(shard).key(inside).casefold()]
        return np.array(matching, np.int64)

    def _sorted(self, rows: NDArray[np.int64], query: Query) -> NDArray[np.int64]:
        """Sort rows by their numbers, or by their keys. Rows without a number come last."""
        numbers = self.numbers(query)
        if numbers is None:
            return rows[::-1] if query.descending else rows
        values = numbers[rows].astype(np.float64)
        return rows[np.argsort(-values if query.descending else values, kind="stable")]
