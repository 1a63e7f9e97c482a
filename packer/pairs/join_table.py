"""Pair very many files by a table: the paths in it and the files are two sorted lists, on disk if they are long."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from packer.errors import PackError, Problem
from packer.pairs.asked_paths import AskedPaths, NotPlainError, check_once
from packer.pairs.candidates import UNWRITABLE, Candidate
from packer.pairs.draw_splits import SplitDrawer
from packer.pairs.files import RawFiles
from packer.pairs.join_files import Row
from packer.pairs.pairing_rules import PairingRules
from packer.pairs.pairs_csv import PairsCsv
from packer.spill.sorted_lines import SortedLines

ANY_SIZE = 1 << 62
"""Tables are not in memory."""


@dataclass
class JoinedTable:
    """The pairs of a table, in its order."""

    rules: PairingRules
    raw: Path
    files: RawFiles
    notes: list[str] = field(default_factory=list)
    splits: set[str] = field(default_factory=set)
    """The splits of the rows so far."""
    missing: list[Problem] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    """The rows so far that are wrong. `missing` has those whose files are not there."""
    layout: None = None

    def rows(self) -> Iterator[Row]:
        """Yield all rows, or raise NotPlainError."""
        table, rules, asked, once = self.rules.pairs, self.rules, AskedPaths(), SortedLines()
        assert table is not None, "the option names a table"
        for _ in PairsCsv(table, self.raw, asked, rules.keeps, ANY_SIZE).pairs():
            pass  # its paths are noted
        named = PairsCsv(table, self.raw, asked.among(self.files), rules.keeps, ANY_SIZE)
        self.missing, self.problems = named.candidates.missing, named.candidates.problems
        drawer = SplitDrawer(rules.split, rules.split_by, None) if rules.split else None
        for pair in named.pairs():
            if pair.image == pair.label or UNWRITABLE.search(pair.key + pair.image + pair.label):
                raise NotPlainError("a pair that cannot be packed")
            once.add((pair.image, f"{pair.split}\0{pair.key}"))
            split = pair.split if drawer is None else _drawn(drawer, pair)
            self.splits.add(split)
            yield split, pair.key, (pair.image, pair.label) if rules.has_label else (pair.image,)
        check_once(once)
        if drawer is not None:
            self.problems += drawer.problems()
            self.notes += drawer.notes()


def _drawn(drawer: SplitDrawer, pair: Candidate) -> str:
    """Return the split of a pair, or raise NotPlainError: another problem of the row may come before this one."""
    try:
        return drawer.draw(pair)
    except PackError as error:
        raise NotPlainError("a split that cannot be drawn") from error
