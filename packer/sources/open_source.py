"""Open a source and find all of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from packer.errors import InputError, Problem, UsageError
from packer.pairs.candidates import UNWRITABLE
from packer.pairs.find import PairingRules, search_pairs
from packer.pairs.split_exact import ClassPixels
from packer.recipe.row_ref import RowRef
from packer.recipe.source import Source
from packer.sources.folder import FolderSource
from readers.contract.manifest import ALL, NAME

CountPixels = Callable[[Source, Sequence[RowRef]], Sequence[ClassPixels]]
"""Count the label pixels of rows by class. An image without a part is not loaded."""


@dataclass(frozen=True)
class FoundRows:
    """All rows of a source, sorted, and what else was found."""

    source: Source
    refs: Sequence[RowRef] = field(repr=False)
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
            refs = tuple(sorted(self.given.rows()))
            problems = list(_bad_names(refs))
            if problems or not refs:
                raise InputError(f"the source has {'rows that cannot be packed' if refs else 'no rows'}", problems)
            return FoundRows(self.given, refs, type(self.given).__name__), None
        assert raw is not None, "without a source there is a folder"
        folder = FolderSource(raw, max_pixels=max_pixels)

        def count(labels: Sequence[str]) -> Sequence[ClassPixels]:
            return count_pixels(folder, [RowRef("", "", ("", label)) for label in labels])

        pairing, refusal = search_pairs(raw, self.pairing, out, count)
        templates = (pairing.image_template, pairing.label_template)
        source = replace(folder, pairs=pairing.pairs, templates=templates)
        return FoundRows(source, tuple(source.rows()), pairing.layout, pairing.missing, pairing.notes), refusal

    def _check_pairing(self) -> None:
        """Refuse the options that pair the files of a folder."""
        plain = PairingRules()
        for rule in fields(PairingRules):
            if getattr(self.pairing, rule.name) != getattr(plain, rule.name):
                raise UsageError(f"--{rule.name.replace('_', '-')}: pairs the files of a folder; a source gives rows")


def _bad_names(refs: Sequence[RowRef]) -> Iterator[Problem]:
    """Yield what a pack cannot hold: names of splits, keys with control characters, and keys that occur twice."""
    splits = dict.fromkeys(ref.split for ref in refs)
    for split in splits:
        if not NAME.fullmatch(split) or (split == ALL and len(splits) > 1):
            yield Problem("is not the name of a split", "letters, digits and ._- are allowed", (repr(split),), "split")
    for ref in refs:
        if not ref.key or UNWRITABLE.search(ref.key):
            yield Problem("is empty, has control characters or is not UTF-8", "rename it", (repr(ref.key),), "key")
    for before, ref in pairwise(refs):
        if before[:2] == ref[:2]:
            yield Problem("has more than one row", "", (f"{ref.split}/{ref.key}",), "key")
