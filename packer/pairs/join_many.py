"""Pair very many files with few objects. If a problem needs words, all files are matched together like a few."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from packer.errors import InputError
from packer.pairs.asked_paths import NotPlainError
from packer.pairs.files import RawFiles
from packer.pairs.find import Pairing, bad_splits, check_target, counting, missing_hint, refusal_of
from packer.pairs.join_files import JoinedFiles, Row, join_files
from packer.pairs.join_table import JoinedTable
from packer.pairs.pairing_rules import ERROR, PairingRules
from readers.contract.manifest import ALL

Table = TypeVar("Table")


def pairs_of_many(
    files: RawFiles,
    raw: Path,
    rules: PairingRules,
    leave_out: Path | None,
    only: Sequence[str],
    sort: Callable[[Iterable[Row]], Table],
) -> tuple[Pairing, Table, InputError | None] | None:
    """Find the pairs in very many files as a table, which the pairing does not have, and the error for files without a
    partner; return None if all files must be matched together."""
    if rules.lists or rules.split_exact or rules.further or rules.has_channels:
        return None
    joined = JoinedTable(rules, raw, files, files.notes) if rules.pairs else join_files(files, rules)
    if joined is None:
        return None
    layout = joined.layout
    if leave_out and layout:
        check_target(raw, leave_out, layout)
    try:
        table = sort(_rows(joined))
    except NotPlainError:
        return None
    problems, missing = counting(joined.problems, only), counting(joined.missing, only)
    name = layout.name if layout else "given by --pairs"
    image, label = (layout.image.text, layout.label.text) if layout else ("", "")
    pairing = Pairing(name, (), image, label if rules.has_label else "", tuple(missing), tuple(joined.notes))
    refused, refusal = missing and rules.missing == ERROR, None
    if problems or refused:
        refusal = refusal_of(raw, name, [*problems, *missing], missing_hint(rules) if refused else "")
    return pairing, table, refusal


def _rows(joined: JoinedFiles | JoinedTable) -> Iterator[Row]:
    """Yield all rows, or raise NotPlainError."""
    for split, key, paths in joined.rows():
        yield split or ALL, key, paths
    if not joined.splits or any(bad_splits(joined.splits)):
        raise NotPlainError("no pair, or bad names of splits")
