"""Pairs as found, with the lines that name them, and every problem on the way, so that all are reported together."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from packer.errors import Problem

MOST_NAMED = 10
"""A message names at most this many files or keys."""
UNWRITABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Control characters, and Python's stand-ins for bytes that are not UTF-8. They would garble every list and log."""
UNWRITABLE_NAME = "the name has control characters or is not UTF-8"
NO_TYPE = "this file type cannot be packed"


class Candidate(NamedTuple):
    """A pair as found. `line` is where a list or table names it; `captures` are the other columns of the table."""

    split: str
    key: str
    image: str
    label: str
    line: str = ""
    captures: tuple[tuple[str, str], ...] = ()
    further: tuple[tuple[str, ...], ...] = ()
    """The files of each further field; none if it lacks the field."""
    channels: tuple[str, ...] = ()
    """All files of the image, if each of its bands has one."""


@dataclass
class Candidates:
    """The pairs of a folder. Problems stop a build, missing files too unless they are skipped, notes never do."""

    pairs: list[Candidate] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    missing: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def with_messages(self, other: Candidates) -> Candidates:
        """Take over the problems and notes of `other`."""
        self.problems += other.problems
        self.notes += other.notes
        return self

    def add_listed(self, pairs: Iterable[Candidate]) -> None:
        """Add pairs from lines. An image may occur once, and a key once per split."""
        images: dict[str, Candidate] = {}
        keys: dict[tuple[str, str], Candidate] = {}
        for pair in pairs:
            first = images.setdefault(pair.image, pair)
            if first == pair or (first.split, first.label) != (pair.split, pair.label):
                self._add_listed(pair, first, keys.setdefault((pair.split, pair.key), pair))
            else:
                self.notes.append(f"{pair.line}: repeats {first.line}")

    def _add_listed(self, pair: Candidate, same_image: Candidate, same_key: Candidate) -> None:
        if same_image.split != pair.split:
            splits = f"{pair.split or 'no split'}, and in {same_image.split or 'no split'} by {same_image.line}"
            self.problems.append(of_line(pair.line, f"{pair.image} is in {splits}", "two splits"))
        elif same_key is not pair:
            self.problems.append(
                of_line(pair.line, f"the key {pair.key!r} has another pair at {same_key.line}", "two pairs")
            )
        elif pair.image == pair.label:
            self.problems.append(of_line(pair.line, f"{pair.image} is named as image and as label", "image and label"))
        elif UNWRITABLE.search(pair.key + pair.image + pair.label):
            self.problems.append(Problem(UNWRITABLE_NAME, "rename the file", (pair.line,), "line"))
        else:
            self.pairs.append(pair)


def of_line(line: str, cause: str, kind: str) -> Problem:
    """Return the problem of a line of a list or table."""
    return Problem(cause, "", (line,), "line", kind)
