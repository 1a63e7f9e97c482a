"""`FoldFile`: folds as nnU-Net's splits_final.json has them, a list of {"train": [keys], "val": [keys]}."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from packer.errors import Problem, SettingsError, counted
from packer.pairs.folds import MOST_FOLDS, FoldRule
from packer.pairs.paths import read_list_text
from packer.pairs.template import composed
from readers.contract.folds import ALWAYS, fold_name
from readers.contract.json_entry import Entry, JsonProblem, loads

NAME = "splits_final.json"
"""The file's usual name."""
EXPECTED = 'expected a list of folds, each {"train": ["case_1", …], "val": ["case_2", …]}, as nnU-Net writes it'


class ListedFold(NamedTuple):
    """The names of the cases of a fold."""

    train: frozenset[str]
    val: frozenset[str]


@dataclass(frozen=True)
class FoldFile(FoldRule):
    """The split of each case that the file names: the fold whose validation part it is in, or `always`."""

    names_groups = True
    path: Path
    splits: Mapping[str, str]
    wrong: tuple[Problem, ...]
    """The faults of the file itself."""

    @classmethod
    def read(cls, path: Path) -> FoldFile:
        """Read the file. Raise SettingsError if it has no folds."""
        try:
            document = loads(read_list_text(path))
        except (OSError, ValueError, RecursionError) as error:
            raise SettingsError(f"--folds {path}: cannot be read ({error}); {EXPECTED}") from error
        folds = _folds(path, document)
        splits = {case: ALWAYS for fold in folds for case in sorted(fold.train | fold.val)}
        splits |= {case: fold_name(number) for number, fold in enumerate(folds) for case in fold.val}
        return cls(path, splits, tuple(_wrong(folds)))

    def split_of(self, group: str) -> str:
        return self.splits.get(group, ALWAYS)

    def problems(self, counts: Mapping[str, int], groups: Collection[str]) -> Iterator[Problem]:
        """Yield the problems of the file, the cases that it does not name, and the names that no row has."""
        yield from self.wrong
        if unknown := tuple(group for group in groups if group not in self.splits):
            cause, hint = f"is in no fold of {self.path}", "add it to train or val of each fold, or pack without it"
            yield Problem(cause, hint, unknown, "case", cause)
        if absent := tuple(case for case in self.splits if case not in groups):
            such = next((f", such as {group!r}" for group in groups if group not in self.splits), "")
            cause, hint = f"is in {self.path}, and no row has it", f"take it out; the names of cases are keys{such}"
            yield Problem(cause, hint, absent, "case", cause)

    def notes(self, counts: Mapping[str, int]) -> Iterator[str]:
        if counts.get(ALWAYS):
            rows = counted(counts[ALWAYS], "row")
            yield f"the split {ALWAYS} gets {rows}, in train of every fold of {self.path.name} and in val of none"


def _folds(path: Path, document: object) -> Sequence[ListedFold]:
    """Return the folds of a document that was not checked."""
    problems: list[JsonProblem] = []
    entries = Entry({"folds": document}, "", problems).entries("folds")
    folds = [
        ListedFold(*(frozenset(map(composed, entry.texts(part))) for part in ListedFold._fields)) for entry in entries
    ]
    if not problems and not 1 <= len(folds) <= MOST_FOLDS:
        problems.append(JsonProblem("folds", f"expected 1 to {MOST_FOLDS}, found {len(folds)}"))
    if problems:
        raise SettingsError(f"--folds {path}: {EXPECTED}", [str(problem) for problem in problems])
    return folds


def _wrong(folds: Sequence[ListedFold]) -> Iterator[Problem]:
    """Yield the cases that no split can stand for, and folds without any to validate on."""
    every = frozenset[str]().union(*(fold.train | fold.val for fold in folds))
    held_out: dict[str, list[int]] = {}
    for number, fold in enumerate(folds):
        if not fold.val:
            yield Problem(f"fold {number} has no case in val")
        for case in fold.val:
            held_out.setdefault(case, []).append(number)
        yield from _cases(fold.train & fold.val, f"is in train and in val of fold {number}", "take it out of one")
        yield from _cases(
            every - fold.train - fold.val, f"is in neither train nor val of fold {number}", "add it to one"
        )
    twice: dict[str, list[str]] = {}
    for case, numbers in held_out.items():
        if len(numbers) > 1:
            twice.setdefault(f"is in val of the folds {', '.join(map(str, numbers))}", []).append(case)
    for cause, cases in twice.items():
        yield from _cases(cases, cause, "leave it in val of one fold, and in train of the others")


def _cases(cases: Iterable[str], cause: str, hint: str) -> Iterator[Problem]:
    if files := tuple(sorted(cases)):
        yield Problem(cause, hint, files, "case", cause)
