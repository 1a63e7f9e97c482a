"""Find pictures, and their annotations in files of many pictures that `--annotations` names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from packer.decoding.raw_file import SEPARATOR
from packer.errors import InputError, Problem, UsageError
from packer.pairs.files import RawFiles
from packer.pairs.find import Pairing, search_pairs
from packer.pairs.pair import Pair
from packer.pairs.pairing_rules import ERROR, KEEP, PairingRules
from packer.recipe.row_ref import RowRef
from packer.sources.folder import FolderSource
from packer.sources.indexed import IndexedSource
from packer.sources.indexed_files import IndexedFiles, files_of_many, parts_of, without_picture

EVERY = "{key}"
"""The template of all pictures."""


@dataclass(frozen=True)
class IndexedRows:
    """The pictures that were found, the source of their annotations, and what is missing."""

    source: IndexedSource
    refs: tuple[RowRef, ...]
    pairing: Pairing
    refusal: InputError | None


def indexed_rows(
    template: str, folder: FolderSource, files: RawFiles, rules: PairingRules, out: Path, only: Sequence[str]
) -> IndexedRows:
    """Find the pictures by the rules. Fields without a template are painted from the files of annotations."""
    if type(folder) is not FolderSource:
        raise UsageError(f"--annotations {template}: annotations of many pictures are read from folders, not from URLs")
    splits = files_of_many(template, files.paths)
    if not splits:
        raise InputError(f"--annotations {template}: fits no file; a template of a file for each picture has {{key}}")
    if rules.split_exact:
        raise UsageError("--split-exact: counts the pixels of label pictures; annotations have none before a build")
    plain = replace(rules, further=tuple(each for each in rules.further if each.template))
    if not (rules.image or rules.pairs or rules.lists):
        plain = replace(plain, image=EVERY)
    pairing, refusal = search_pairs(folder.raw, plain, out, lambda labels: [], only, files)
    if any(splits.values()) and not {pair.split for pair in pairing.pairs} & set(splits.values()):
        raise UsageError(f"--annotations {template}: no picture is in these splits; name them with --image, too")
    indexed = IndexedFiles.at(folder.raw, splits)
    pngs = indexed.pngs
    found = list(parts_of((pair for pair in pairing.pairs if pair.image not in pngs), indexed, splits))
    missing = (*pairing.missing, *_missing(found, indexed, splits, only))
    refs = tuple(_ref(pair, part, rules) for pair, part in found if part or rules.missing == KEEP)
    if not refs:
        raise InputError(f"{folder.raw}: no picture is listed in {', '.join(splits)}", missing)
    if missing and rules.missing == ERROR and refusal is None:
        refusal = InputError(f"{folder.raw}: {len(missing)} problems with {template}", missing)
    templates = (pairing.image_template, *(each.template or template for each in rules.further))
    source = IndexedSource(
        replace(folder, templates=templates), indexed.format, (), names=indexed.categories, indexed=indexed
    )
    notes = (*pairing.notes, *indexed.notes)
    pairing = replace(pairing, layout=f"{indexed.format} {template}", missing=missing, notes=notes)
    return IndexedRows(source, refs, pairing, refusal)


def _missing(
    found: Sequence[tuple[Pair, str]], indexed: IndexedFiles, splits: dict[str, str], only: Sequence[str]
) -> Iterator[Problem]:
    """Yield a problem for each picture without annotations, and for each of a file that is not there."""
    for pair, part in found:
        if not part and (not only or pair.split in only):
            yield Problem("is not listed by the annotations", "", (pair.image,), "image", split=pair.split)
    if not only or set(splits.values()) <= set(only):
        yield from without_picture(indexed, (part for _, part in found if part))


def _ref(pair: Pair, part: str, rules: PairingRules) -> RowRef:
    given = iter(pair.further)
    fields = (SEPARATOR.join(next(given)) if each.template else part for each in rules.further)
    return RowRef(pair.split, pair.key, tuple(chain((pair.image,), fields)))
