"""Everything that can go wrong while packing.

PackError                 exit code
├── InputError            1   the raw folder cannot be used; has a list of all problems
├── UsageError            2   options are not valid, alone or together
│   └── SettingsError     2   a configuration, class table or list of pairs is not; an InputError, too
├── TargetError           1   the place to pack to cannot be used
├── BusyError            75   another process is changing the pack, or a store does not answer
├── PinnedError           5   the pack is pinned to its current generation
├── EngineError           1   worker processes crash, or their answer is not valid
│   └── UnavailableError 75   the machines of an engine failed too often
├── VersionsError         1   a machine has other versions than a plan, and would make other bytes
├── PartsError            1   shards of a plan are missing, or were built twice with other results
├── FindingsError         6   the data has likely mistakes of --fail-on
├── LostFileError         1   this machine cannot read a file that the plan has read
├── RejectedError         1   pairs are bad and --on-bad is fail
└── TooManyRejectsError   3   more pairs are bad than --max-bad allows

BadPair is not in the tree: the shard catches it and makes the pair a reject.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib import import_module
from itertools import islice
from types import ModuleType
from typing import Any, TypeVar

T = TypeVar("T")
MOST_FILES = 3
"""A message names at most this many files of one cause. `Problem.files` has all of them."""


class PackError(Exception):
    """The root: catch this to catch everything that `packer` raises on purpose."""

    exit_code = 1


class InputError(PackError):
    """The raw folder cannot be used.

    `problems` has a line for each problem. `causes` has the problems of one cause together, and so has the message.
    """

    def __init__(self, summary: str, problems: Sequence[str | Problem] = ()) -> None:
        self.problems = tuple(map(str, problems))
        self.causes = by_cause(problem if isinstance(problem, Problem) else Problem(problem) for problem in problems)
        super().__init__("\n".join([summary, *(f"  {cause}" for cause in self.causes)]))


@dataclass(frozen=True)
class Problem:
    """A reason why files cannot be used, and what to do. As text it is one line, for any number of files."""

    cause: str
    hint: str = ""
    files: tuple[str, ...] = ()
    noun: str = "file"
    kind: str = ""
    """Problems of one kind have one cause, although their texts differ in numbers or names. Default: the same text."""
    alike: bool = True
    """False if the cause is the first file's, and the causes of the others differ in numbers or names."""
    split: str = ""
    """The split that it is in, if the path has it."""

    def __str__(self) -> str:
        if len(self.files) < 2:
            return f"{''.join(f'{file}: ' for file in self.files)}{self.cause}{self.hint and f'; {self.hint}'}"
        first, count = first_of(self.files, MOST_FILES), f"{len(self.files)} {self.noun}s"
        verb, _, cause = self.cause.partition(" ")
        if self.alike and verb in ("has", "is"):
            hint = self.hint and f". {self.hint[0].upper()}{self.hint[1:]}"
            return f"{count}: {cause}{hint}; {'first' if len(first) > MOST_FILES else 'all'}: {', '.join(first)}"
        hint = self.hint and f"; {self.hint}"
        return f"{count}, such as {first[0]}: {self.cause}{hint}; also {', '.join(first[1:])}"

    def to_json(self) -> dict[str, Any]:
        return {"cause": self.cause, "hint": self.hint or None, "count": len(self.files), "files": list(self.files)}


def by_cause(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Join problems of one kind. They are in the order of the first of each kind."""
    by_kind: dict[object, list[Problem]] = {}
    for problem in problems:
        by_kind.setdefault((problem.kind or problem.cause, problem.hint, problem.noun, bool(problem.files)), []).append(
            problem
        )
    return tuple(
        replace(
            same[0],
            files=tuple(file for problem in same for file in problem.files),
            alike=all(problem.alike and problem.cause == same[0].cause for problem in same),
        )
        for same in by_kind.values()
    )


class UsageError(PackError):
    """Options are not valid, alone or together."""

    exit_code = 2


class SettingsError(InputError, UsageError):
    """A configuration, a class table, or a list of pairs that an option names cannot be used."""


class TargetError(PackError):
    """The output folder cannot be used."""


class BusyError(PackError):
    """Another process is changing the pack, or a store does not answer; try again later (EX_TEMPFAIL)."""

    exit_code = 75


class PinnedError(PackError):
    """The pack is pinned to its current generation, so no other one is published."""

    exit_code = 5


class EngineError(PackError):
    """Worker processes crash, or their answer is not valid."""


class UnavailableError(EngineError):
    """The machines of an engine failed too often; try again later (EX_TEMPFAIL)."""

    exit_code = 75


class VersionsError(PackError):
    """This machine, or a worker of a cluster, has other versions than the plan, so it could make other bytes."""


class PartsError(PackError):
    """Shards of a plan are missing, or were built twice with other results."""


class LostFileError(PackError):
    """This machine cannot read a file that the plan has read. A pack without it would lose a row in silence."""


class RejectedError(InputError):
    """Pairs are bad and --on-bad is fail."""


class FindingsError(InputError):
    """The data has likely mistakes of a kind that --fail-on names. `findings` has their facts."""

    exit_code = 6

    def __init__(self, summary: str, problems: Sequence[str] = (), findings: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(summary, problems)
        self.findings = tuple(findings)


class TooManyRejectsError(InputError):
    """More pairs are bad than --max-bad allows."""

    exit_code = 3


class BadPair(Exception):  # noqa: N818 - a verdict on one pair, not an error of the program
    """This pair cannot be packed; the message is the reason."""

    def because(self, reason: str) -> BadPair:
        """Return the same verdict with another reason."""
        return BadPair(reason)


class LostFile(BadPair):
    """A file is missing, was changed, or cannot be read. If the plan has read it, the pair is not to blame."""

    def because(self, reason: str) -> BadPair:
        return LostFile(reason)


class BadFile(BadPair):
    """A field has a file for each class or band, and because of the file `number` this pair cannot be packed."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(reason)
        self.number = number


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """The end of a message about an unknown word: the nearest known one in any case, or nothing if none is near."""
    names = {name.casefold(): name for name in choices}
    near = get_close_matches(word.casefold(), names, n=1)
    return f"; did you mean {names[near[0]]}?" if near else ""


def first_of(items: Collection[T], most: int, noun: str = "", show: Callable[[T], str] = str) -> list[str]:
    """The first `most` items as texts. If there are more, a last text counts the rest: `… and 3 more sizes`."""
    texts, rest = [*map(show, islice(items, most))], len(items) - most
    if rest > 0:
        texts.append(f"… and {rest} more {noun}".rstrip())
    return texts


def library_of_extra(name: str, needed: str) -> ModuleType:
    """Return a library that an extra of the package installs. Raise UsageError with these words if it is not there."""
    try:
        return import_module(name)
    except (ImportError, OSError) as error:
        raise UsageError(needed) from error


def counted(count: int, noun: str) -> str:
    """Return a number of things: `1 shard`, `2 shards`."""
    return f"{count} {noun}{'s' * (count != 1)}"


def some_are(count: int, whole: int, noun: str) -> str:
    """Return the beginning of a sentence about some of all: `1 of 8 pairs is`, `2 of 8 pairs are`."""
    return f"{count} of {counted(whole, noun)} {'is' if count == 1 else 'are'}"
