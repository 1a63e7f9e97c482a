"""Find the rows of a build: the pairs of a folder, pictures with annotations, or the rows of another source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import starmap
from pathlib import Path

from packer.errors import InputError, UsageError
from packer.pairs.files import RawFiles, find_files
from packer.pairs.find import Pairing, search_pairs
from packer.pairs.folder_names import Folders, first_names
from packer.pairs.split_exact import NOT_COUNTED, ClassPixels
from packer.pairs.template import ANNOTATIONS, SLIDES
from packer.plan.found_rows import FoundRows, taken
from packer.plan.row_search import RowSearch
from packer.recipe.ref_table import RefTable
from packer.recipe.row_ref import RowRef
from packer.sources.files.folder import FolderSource, images_of, refs_of
from packer.sources.files.slides import check_readable, has_slides

MANY_FILES = 1 << 16
"""Fewer files are matched together."""
NO_SLIDES = f"only slides have levels, and none of these pictures is one: {', '.join(SLIDES)}"


def find_rows(rows: RowSearch, out: Path, pixels: Mapping[str, ClassPixels] = NOT_COUNTED) -> FoundRows:
    """Find all rows for a build into `out`. Raise InputError if there are none.

    `pixels` are the pixels of each label by class, which --split-exact needs.
    """
    if rows.key is not None:
        raise UsageError(f"--key {rows.key}: names the keys in a container; other rows have their own keys")
    if rows.source is not None:
        if rows.files.slide_level:
            raise UsageError(f"--slide-level {rows.files.slide_level}: {NO_SLIDES}")
        from packer.plan.list_rows import list_rows  # a build of files does not need it

        return list_rows(rows, rows.source, out)
    assert rows.raw is not None, "without a source there is a folder"
    if rows.volumes and rows.objects is not None:
        raise UsageError("--volumes: objects of a store are read as pictures; copy them into a folder first")
    folder = rows.objects or FolderSource(rows.raw, volumes=rows.volumes, slide_level=rows.files.slide_level)
    folder = replace(folder, max_pixels=rows.files.max_pixels)
    files = rows.objects.files if rows.objects else find_files(rows.raw, out)
    is_plain = rows.objects is None and rows.annotations is None
    joined = _joined(rows, folder, files, out) if is_plain and files.count >= MANY_FILES else None
    return joined or _annotated(rows, folder, files, out) or _paired(rows, folder, files, out, pixels)


def _joined(rows: RowSearch, folder: FolderSource, files: RawFiles, out: Path) -> FoundRows | None:
    """Return the pairs of very many files; None if a problem needs words."""
    from packer.pairs.join_files import Row  # few folders need it
    from packer.pairs.join_many import pairs_of_many

    def sort(lines: Iterable[Row]) -> RefTable:
        return RefTable.of(taken(rows.only, starmap(RowRef, lines)))

    joined = pairs_of_many(files, folder.raw, rows.pairing, out, rows.only, sort)
    if joined is None:
        return None
    pairing, refs, refusal = joined
    return _found(rows, folder, pairing, refs, refusal)


def _paired(
    rows: RowSearch, folder: FolderSource, files: RawFiles, out: Path, pixels: Mapping[str, ClassPixels]
) -> FoundRows:
    """Return the pairs of image and label files."""
    try:
        pairing, refusal = search_pairs(folder.raw, rows.pairing, out, pixels, rows.only, files)
    except InputError as error:
        raise _advised(rows, error, folder, files) from None
    refs = refs_of(pairing.pairs) if rows.pairing.has_label else images_of(pairing.pairs)
    return _found(rows, folder, pairing, RefTable.of(taken(rows.only, refs)), refusal)


def _found(
    rows: RowSearch, folder: FolderSource, pairing: Pairing, refs: RefTable, refusal: InputError | None = None
) -> FoundRows:
    """Return pairs as rows. The source does not have the pairs: the table has them."""
    label = (pairing.label_template,) if rows.pairing.has_label else ()
    templates = (pairing.image_template, *label, *(field.template for field in rows.pairing.further))
    source = replace(folder, templates=templates, slides=_has_slides(rows, refs))
    problems = () if refusal is None else (refusal,)
    return FoundRows(
        source,
        refs,
        pairing.layout,
        rows.raw,
        rows.files,
        pairing.missing,
        pairing.notes,
        problems=problems,
    )


def _has_slides(rows: RowSearch, refs: RefTable) -> bool:
    """Return whether some files are slides. Refuse slides that are not read here, and a level of other pictures."""
    if not has_slides(refs):
        if rows.files.slide_level:
            raise UsageError(f"--slide-level {rows.files.slide_level}: {NO_SLIDES}")
        return False
    if rows.volumes:
        raise UsageError("--volumes: slides are pictures; leave it out")
    check_readable(rows.objects is not None)
    return True


def _annotated(rows: RowSearch, folder: FolderSource, files: RawFiles, out: Path) -> FoundRows | None:
    """Return pictures whose labels are painted; None if there are no annotations.

    Formats are imported now: a build of label pictures needs none.
    """
    if not _may_be_annotated(rows, files.folders):
        return None
    if rows.volumes:
        raise UsageError("--volumes: labels are painted on pictures; give the label volumes: --label TEMPLATE")
    if rows.annotations is None or "{key}" in rows.annotations:
        from packer.sources.annotated.annotated_rows import annotated_rows

        annotated = annotated_rows(rows.annotations, folder, files, rows.pairing, out, rows.only)
    else:
        from packer.sources.annotated.indexed_rows import indexed_rows

        annotated = indexed_rows(rows.annotations, folder, files, rows.pairing, out, rows.only)
    if annotated is None:
        return None
    refs, pairing = RefTable.of(taken(rows.only, annotated.refs)), annotated.pairing
    if _has_slides(rows, refs):
        raise UsageError("labels are not painted on slides; give the label pictures: --label TEMPLATE")
    return replace(_found(rows, folder, pairing, refs, annotated.refusal), source=annotated.source)


def _may_be_annotated(rows: RowSearch, folders: Folders) -> bool:
    """Return whether annotations are named, or whether no option says where labels are and some files may be some."""
    rules = rows.pairing
    if rows.annotations is not None or not rules.has_label or rules.image or rules.label or rules.pairs:
        return rows.annotations is not None
    return any(name.endswith(ANNOTATIONS) for names in first_names(folders).values() for name in names)


def _advised(rows: RowSearch, error: InputError, folder: FolderSource, files: RawFiles) -> InputError:
    """Return an error of pairs that were not found, with advice if no option says where labels are."""
    rules = rows.pairing
    if isinstance(error, UsageError) or not rules.has_label or rules.label or rules.pairs or rules.lists:
        return error
    from packer.sources.annotated.exports import with_exports

    return with_exports(error, folder, files)
