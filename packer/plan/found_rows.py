"""`FoundRows`: all rows of a source, sorted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from packer.decoding.rules import FileRules
from packer.errors import InputError, Problem, UsageError
from packer.recipe.ref_table import RefTable
from packer.recipe.row_ref import RowRef
from packer.recipe.source import Source
from readers.contract.classes import ClassTable
from readers.contract.fields import Field


@dataclass(frozen=True)
class FoundRows:
    """All rows of a source, sorted, and what else was found."""

    source: Source
    refs: RefTable = field(repr=False)
    layout: str
    """The layout, the option or the kind of source that gave the rows."""
    raw: Path | None
    """The folder that may hold the class table."""
    files: FileRules
    missing: tuple[Problem, ...] = ()
    """Files without a partner."""
    notes: tuple[str, ...] = ()
    classes: ClassTable | None = None
    """The classes of a source that has labels of class indices, or whose labels are painted."""
    packed: tuple[Field, ...] = ()
    """The fields of a source whose rows were packed before."""
    named: Callable[[], ClassTable | None] = lambda: None
    """Returns the classes of the numbers in the labels, if the source names them. A table of the user counts first."""
    problems: tuple[InputError, ...] = ()
    """The errors that stop a build, although rows were found."""


def taken(only: tuple[str, ...], refs: Iterable[RowRef]) -> Iterator[RowRef]:
    """Return the rows of the splits to take, and refuse a split that has none."""
    return _of_splits(refs, only) if only else iter(refs)


def _of_splits(refs: Iterable[RowRef], only: tuple[str, ...]) -> Iterator[RowRef]:
    splits = set[str]()
    for ref in refs:
        splits.add(ref.split)
        if ref.split in only:
            yield ref
    for split in only:
        if split not in splits:
            raise UsageError(f"--only {split}: there is no such split, only {', '.join(sorted(splits))}")
