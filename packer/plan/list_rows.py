"""List the rows of a source that is not a folder of files, and refuse names that no pack can hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path

from packer.errors import InputError, Problem, UsageError
from packer.pairs.candidates import UNWRITABLE
from packer.pairs.pairing_rules import ERROR, PairingRules
from packer.pairs.split_rule import SplitRule
from packer.plan.found_rows import FoundRows, taken
from packer.plan.problems import Problems
from packer.plan.row_search import RowSearch
from packer.plan.split_rows import RowSplits
from packer.recipe.ref_table import RefTable
from packer.recipe.row_ref import RowRef
from packer.recipe.source import Listing, ListingRules, Source
from readers.contract.fields import IMAGE, LABEL
from readers.contract.manifest import ALL, NAME


def list_rows(rows: RowSearch, source: Source, out: Path) -> FoundRows:
    """List the rows of a source. Samples without a field are refused or left out."""
    source = _with_fields(source, rows.pairing)
    listing = source.list_rows(ListingRules(out, rows.files.max_pixels, rows.pairing.keeps))
    rule = rows.pairing.split if not source.keeps_splits else None
    _check_pairing(rows.pairing, listing, rule)
    drawer = None if rule is None else RowSplits(rule, source.group_of)
    drawn = listing.rows if drawer is None else map(drawer.draw, listing.rows)
    refs = _good_rows(taken(rows.only, drawn), listing, drawer)
    missing, problems = tuple(listing.missing or ()), Problems()
    if missing and rows.pairing.missing == ERROR:
        lacking = f"{listing.folder}: {len(missing)} samples lack a field; --missing skip skips them"
        problems.add(InputError(lacking, missing))
    return FoundRows(
        source,
        refs,
        listing.layout,
        rows.raw,
        rows.files,
        missing,
        tuple(listing.notes if drawer is None else drawer.notes()),
        classes=listing.classes,
        packed=listing.packed,
        named=listing.named,
        problems=tuple(problems.errors),
    )


def _with_fields(source: Source, rules: PairingRules) -> Source:
    """Return the source with the fields of the build, if these are others than image and label."""
    if rules.has_label and not rules.further:
        return source
    label = (LABEL,) if rules.has_label else ()
    return source.with_fields((IMAGE, *label, *(files.name for files in rules.further)))


def _check_pairing(rules: PairingRules, listing: Listing, rule: SplitRule | None) -> None:
    """Refuse options for the files of a folder."""
    plain = PairingRules(split=rule, missing=ERROR if listing.missing is None else rules.missing)
    plain = replace(plain, has_label=rules.has_label, further=rules.further)
    for field in fields(PairingRules):
        if getattr(rules, field.name) != getattr(plain, field.name):
            option = rules.split.option if field.name == "split" and rules.split else f"--{field.name}"
            raise UsageError(_not_of_files(option.replace("_", "-"), listing.layout))


def _not_of_files(option: str, kind: str) -> str:
    """Return why an option for the files of a folder is refused for other rows, and what to do."""
    if option in ("--split", "--folds"):
        return (
            f"{option}: rows of the kind {kind} have the splits that their keys name; give the keys as pairs of a "
            "split and a key"
        )
    if option.startswith("--split"):
        return (
            f"{option}: is for the files of a folder; for rows of the kind {kind}, --split or --folds alone draws "
            "splits by a hash of each key"
        )
    return f"{option}: pairs the files of a folder, and rows of the kind {kind} are pairs already; leave it out"


def _good_rows(refs: Iterable[RowRef], listing: Listing, drawer: RowSplits | None) -> RefTable:
    """Return all rows. Names that no pack can hold, keys that occur twice, files that cannot be listed, and folds that
    do not fit the rows are an error that names them all."""
    problems: list[Problem] = []
    table = RefTable.of(ref for ref in refs if _is_good(ref, problems))
    for split in table.splits:
        if not NAME.fullmatch(split) or (split == ALL and len(table.splits) > 1):
            problems.append(
                Problem("is not the name of a split", "use letters, digits and ._-", (repr(split),), "split")
            )
    for before, ref in pairwise(table):
        if before[:2] == ref[:2]:
            problems.append(Problem("has more than one row", "", (f"{ref.split}/{ref.key}",), "key"))
    problems = [*listing.problems, *problems, *(() if drawer is None else drawer.problems())]
    if not table:
        problems += listing.missing or ()
    if problems or not table:
        content = "rows that cannot be packed" if problems else f"no rows{listing.contents()}"
        raise InputError(f"the source has {content}", problems)
    return table


def _is_good(ref: RowRef, problems: list[Problem]) -> bool:
    """Return whether a pack and a table can hold the names of a row; add the problem otherwise."""
    if ref.key and not UNWRITABLE.search(ref.key) and not any("\n" in part or "\0" in part for part in ref.parts):
        return True
    problems.append(Problem("is empty, has control characters or is not UTF-8", "rename it", (repr(ref.key),), "key"))
    return False
