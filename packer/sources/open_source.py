"""Open a source and find all of its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from packer.errors import InputError, Problem, UsageError
from packer.pairs.candidates import UNWRITABLE
from packer.pairs.find import PairingRules, search_pairs
from packer.pairs.split_exact import ClassPixels
from packer.recipe.ref_table import RefTable
from packer.recipe.row_ref import RowRef
from packer.recipe.source import Source
from packer.sources.folder import FolderSource, refs_of
from readers.contract.manifest import ALL, NAME

CountPixels = Callable[[Source, Sequence[RowRef]], Sequence[ClassPixels]]
"""Count the label pixels of rows by class. An image without a part is not loaded."""


@dataclass(frozen=True)
class FoundRows:
    """All rows of a source, sorted, and what else was found."""

    source: Source
    refs: RefTable = field(repr=False)
    layout: str
    """The layout, the option or the kind of source that gave the rows."""
    missing: tuple[Problem, ...] = ()
    """Files without a partner."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class SourceOptions:
    """The options that decide which rows there are: how the pairs of a folder are found, or another source."""

    pairing: PairingRules = field(default_factory=PairingRules)
    given: Source | None = None

    @classmethod
    def take_from(cls, values: dict[str, Any]) -> SourceOptions:
        """Take the options of a source out of the values of all options."""
        return cls(
            PairingRules(**{rule.name: values.pop(rule.name) for rule in fields(PairingRules) if rule.name in values})
        )

    def find_rows(
        self, raw: Path | None, out: Path, max_pixels: int, count_pixels: CountPixels
    ) -> tuple[FoundRows, InputError | None]:
        """Find all rows. If some are found in spite of problems, also return the error with these."""
        if self.given is not None:
            self._check_pairing()
            return FoundRows(self.given, _good_rows(self.given), type(self.given).__name__), None
        assert raw is not None, "without a source there is a folder"
        folder = FolderSource(raw, max_pixels=max_pixels)

        def count(labels: Sequence[str]) -> Sequence[ClassPixels]:
            return count_pixels(folder, [RowRef("", "", ("", label)) for label in labels])

        pairing, refusal = search_pairs(raw, self.pairing, out, count)
        templates = (pairing.image_template, pairing.label_template)
        source = replace(folder, templates=templates)  # without the pairs: the table has them
        return FoundRows(
            source, RefTable.of(refs_of(pairing.pairs)), pairing.layout, pairing.missing, pairing.notes
        ), refusal

    def _check_pairing(self) -> None:
        """Refuse the options that pair the files of a folder."""
        plain = PairingRules()
        for rule in fields(PairingRules):
            if getattr(self.pairing, rule.name) != getattr(plain, rule.name):
                raise UsageError(f"--{rule.name.replace('_', '-')}: pairs the files of a folder; a source gives rows")


def _good_rows(source: Source) -> RefTable:
    """Return all rows. Names that no pack can hold, and keys that occur twice, are an error that names them all."""
    problems: list[Problem] = []
    refs = RefTable.of(ref for ref in source.rows() if _is_good(ref, problems))
    for split in refs.splits:
        if not NAME.fullmatch(split) or (split == ALL and len(refs.splits) > 1):
            problems.append(
                Problem("is not the name of a split", "use letters, digits and ._-", (repr(split),), "split")
            )
    for before, ref in pairwise(refs):
        if before[:2] == ref[:2]:
            problems.append(Problem("has more than one row", "", (f"{ref.split}/{ref.key}",), "key"))
    if problems or not refs:
        raise InputError(f"the source has {'rows that cannot be packed' if problems else 'no rows'}", problems)
    return refs


def _is_good(ref: RowRef, problems: list[Problem]) -> bool:
    """Return whether a pack and a table can hold the names of a row; add the problem otherwise."""
    if ref.key and not UNWRITABLE.search(ref.key) and not any("\n" in part or "\0" in part for part in ref.parts):
        return True
    problems.append(Problem("is empty, has control characters or is not UTF-8", "rename it", (repr(ref.key),), "key"))
    return False
