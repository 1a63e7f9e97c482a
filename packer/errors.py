"""Everything that can go wrong while packing.

PackError                 exit code
├── InputError            1   the raw folder or the class table is not usable; carries every problem
├── UsageError            2   options that cannot be, or not together
├── TargetError           1   the place to pack to cannot be used
├── BusyError            75   somebody else is changing the pack
├── PinnedError           5   the pack is pinned to its current generation
├── EngineError           1   a worker process died, or was told what makes no sense
├── FindingsError         6   the data has likely mistakes of --fail-on
├── RejectedError         1   pairs are bad and --on-bad is fail
└── TooManyRejectsError   3   more pairs are bad than --max-bad allows

BadPair is not in the tree: it never leaves a shard, where it turns one pair into a reject.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


class PackError(Exception):
    """The root: catch this to catch everything that `packer` raises on purpose."""

    exit_code = 1


class InputError(PackError):
    """The raw folder or the class table is not usable; `problems` are all that was found, one line each."""

    def __init__(self, summary: str, problems: Sequence[str] = ()) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join([summary, *(f"  {problem}" for problem in problems)]))


class UsageError(PackError):
    """Options that cannot be, or not together."""

    exit_code = 2


class TargetError(PackError):
    """The place to pack to cannot be used."""


class BusyError(PackError):
    """Somebody else is changing the pack; try again later (EX_TEMPFAIL)."""

    exit_code = 75


class PinnedError(PackError):
    """The pack is pinned to its current generation, so no other one is published."""

    exit_code = 5


class EngineError(PackError):
    """A worker process died."""


class RejectedError(InputError):
    """Pairs are bad and --on-bad is fail."""


class FindingsError(InputError):
    """The data has likely mistakes of a kind that --fail-on names."""

    exit_code = 6


class TooManyRejectsError(InputError):
    """More pairs are bad than --max-bad allows."""

    exit_code = 3


class BadPair(Exception):  # noqa: N818 - a verdict on one pair, not an error of the program
    """This pair cannot be packed; the message says why."""


def first_of(items: Collection[T], most: int, what: str = "", show: Callable[[T], str] = str) -> list[str]:
    """The first `most` items as texts. If there are more, a last text counts the rest: `… and 3 more sizes`."""
    rest = len(items) - most
    return [*map(show, islice(items, most)), *([f"… and {rest} more {what}".rstrip()] if rest > 0 else [])]
