"""Find pictures, and their annotations in files of many pictures that `--annotations` names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from packer.decoding.raw_file import SEPARATOR
from packer.errors import MOST_FILES, InputError, Problem, UsageError, counted, first_of
from packer.pairs.candidates import UNWRITABLE, UNWRITABLE_NAME
from packer.pairs.files import RawFiles
from packer.pairs.find import search_pairs
from packer.pairs.pair import Pair
from packer.pairs.pairing_rules import ERROR, KEEP, PairingRules
from packer.pairs.template import composed
from packer.recipe.row_ref import RowRef
from packer.sources.annotated.annotated_rows import AnnotatedRows
from packer.sources.annotated.indexed import IndexedSource
from packer.sources.annotated.indexed_files import IndexedFiles
from packer.sources.annotated.listed_pictures import files_of_many, parts_of, without_picture
from packer.sources.files.folder import FolderSource

EVERY = "{key}"
"""The template of all pictures."""


def indexed_rows(
    template: str, folder: FolderSource, files: RawFiles, rules: PairingRules, out: Path, only: Sequence[str]
) -> AnnotatedRows:
    """Find the pictures by the rules. Fields without a template are painted from the files of annotations."""
    if type(folder) is not FolderSource:
        raise UsageError(f"--annotations {template}: annotations of many pictures are read from folders, not from URLs")
    splits = files_of_many(template, files.paths)
    if not splits:
        raise InputError(f"--annotations {template}: fits no file; a template of a file for each picture has {{key}}")
    if bad := [
        Problem(UNWRITABLE_NAME, "rename the file", (repr(path),)) for path in splits if UNWRITABLE.search(path)
    ]:
        raise InputError(f"--annotations {template}: fits files that cannot be packed", bad)
    if rules.split and any(splits.values()):
        drawn = f"{rules.split.option} draws the splits from the keys"
        raise UsageError(f"--annotations {template}: has {{split}}, but {drawn}; write * in its place")
    if rules.split_exact:
        raise UsageError("--split-exact: counts the pixels of label pictures; annotations have none before a build")
    plain = replace(rules, further=tuple(field for field in rules.further if field.template))
    if not (rules.image or rules.pairs or rules.lists):
        plain = replace(plain, image=EVERY)
    pairing, refusal = search_pairs(folder.raw, plain, out, only=only, files=files)
    if any(splits.values()) and not {pair.split for pair in pairing.pairs} & set(splits.values()):
        raise UsageError(f"--annotations {template}: no picture is in these splits; name them with --image, too")
    indexed = IndexedFiles.at(folder.raw, splits)
    pngs = indexed.pngs
    listed = list(parts_of((pair for pair in pairing.pairs if pair.image not in pngs), indexed, splits))
    rows, doubtful = _without_doubt(listed, indexed)
    missing = (*pairing.missing, *doubtful, *_unlisted(rows, only))
    if not only or set(splits.values()) <= set(only):
        missing += tuple(without_picture(indexed, chain.from_iterable(parts for _, parts in listed)))
    refs = tuple(_ref(pair, part, rules) for pair, part in rows if part or rules.missing == KEEP)
    if not refs:
        raise InputError(f"{folder.raw}: no picture is listed in {', '.join(splits)}", missing)
    if missing and rules.missing == ERROR and refusal is None:
        refusal = InputError(f"{folder.raw}: {counted(len(missing), 'problem')} with {template}", missing)
    templates = (pairing.image_template, *(field.template or template for field in rules.further))
    source = IndexedSource(
        replace(folder, templates=templates), indexed.format, (), names=indexed.categories, indexed=indexed
    )
    notes = (*pairing.notes, *indexed.notes)
    pairing = replace(pairing, layout=f"{indexed.format} {template}", missing=missing, notes=notes)
    return AnnotatedRows(source, refs, pairing, refusal)


def _without_doubt(
    listed: Sequence[tuple[Pair, tuple[str, ...]]], indexed: IndexedFiles
) -> tuple[list[tuple[Pair, str]], list[Problem]]:
    """Return the part of each picture, empty if no file lists it, without pictures whose part is not clear.

    If several pictures have paths that end in a name of a file, only the one with this path below RAW has its
    annotations.
    """
    pictures: dict[str, set[str]] = {}
    for pair, parts in listed:
        pictures.setdefault("".join(parts[:1]), set()).add(pair.image)
    rows, problems = [], []
    for pair, parts in listed:
        part = "".join(parts[:1])
        if len(parts) > 1:
            files = ", ".join(first_of([indexed.split(candidate)[0] for candidate in parts], MOST_FILES))
            problems.append(Problem(f"is listed by {files}", "name the files of one", (pair.image,), "image"))
        elif part and len(pictures[part]) > 1 and indexed.split(part)[1] != composed(pair.image):
            cause = "has the annotations of another picture, too, whose path has the same end"
            problems.append(Problem(cause, "name the pictures with --image", (pair.image,), "image"))
        else:
            rows.append((pair, part))
    return rows, problems


def _unlisted(rows: Sequence[tuple[Pair, str]], only: Sequence[str]) -> Iterator[Problem]:
    for pair, part in rows:
        if not part and (not only or pair.split in only):
            yield Problem("is not listed by the annotations", "", (pair.image,), "image", split=pair.split)


def _ref(pair: Pair, part: str, rules: PairingRules) -> RowRef:
    further = iter(pair.further)
    fields = (SEPARATOR.join(next(further)) if field.template else part for field in rules.further)
    return RowRef(pair.split, pair.key, tuple(chain((pair.image,), fields)))
