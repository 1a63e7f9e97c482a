"""Advise on a folder whose pairs were not found: exports of labelling tools that need an option, or are not read."""

from __future__ import annotations

from contextlib import suppress

from packer.annotations.unread import SUFFIXES, why_unread
from packer.errors import BadPair, InputError
from packer.pairs.files import RawFiles
from packer.sources.annotated.annotation_files import read_annotations
from packer.sources.annotated.find_indexed import indexed_in
from packer.sources.files.folder import FolderSource

FIRST = 2
"""The files of a folder with one suffix that are looked at."""
MOST_ADVICE = 3


def with_exports(error: InputError, folder: FolderSource, files: RawFiles) -> InputError:
    """Return the error of a folder without pairs, with advice on the files of tools before its other lines."""
    advice = exports_advice(folder, files)
    summary = str(error).partition("\n")[0]
    return type(error)(summary, [*advice, *error.problems]) if advice else error


def exports_advice(folder: FolderSource, files: RawFiles) -> list[str]:
    """Return the options that read annotations of many pictures, or which tools wrote files that are not read."""
    unread = _unread(folder, files)
    many = indexed_in(folder, files) if type(folder) is FolderSource else None
    if many is not None and many.template not in unread:
        image = f" --image '{many.images}'" if many.images else ""
        return [f"perhaps --annotations '{many.template}'{image}, which has the annotations of many pictures"]
    return [f"{path} {reason}" for path, reason in unread.items()][:MOST_ADVICE]


def _unread(folder: FolderSource, files: RawFiles) -> dict[str, str]:
    """Return the first file of each tool, with the reason why it is not read."""
    reasons: dict[str, str] = {}
    for parent, names in files.folders.items():
        for suffix in SUFFIXES:
            for name in [name for name in names if name.endswith(suffix)][:FIRST]:
                with suppress(BadPair):
                    reason = why_unread(name, read_annotations(folder, parent + name))
                    if reason is not None and reason not in reasons.values():
                        reasons[parent + name] = reason
    return reasons
