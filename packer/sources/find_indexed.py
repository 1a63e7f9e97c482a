"""Find files of annotations of many pictures in a folder, and the templates of these files and of the pictures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from packer.annotations import panoptic
from packer.errors import InputError
from packer.pairs.files import RawFiles
from packer.pairs.paths import is_picture
from packer.sources.folder import FolderSource
from packer.sources.indexed_files import IndexedFiles
from readers.contract.regular_files import open_raw

HEAD = 1 << 16
_LISTS = (b'"images"', b'"annotations"', b'"categories"')
_SPLIT = re.compile(r"(?<![a-zA-Z])(train|training|val|valid|validation|test)(?![a-zA-Z])")
OBJECTS = "instances"
"""The files of COCO with outlines begin with this word. Others have captions and keypoints."""


def indexed_in(folder: FolderSource, files: RawFiles) -> tuple[str, str | None] | None:
    """Return the templates of the annotations of many pictures, and of the pictures if they have splits.

    None if there are none, or if several files have nothing in common but their kind.
    """
    paths = [path for path in files.paths if path.endswith(".json") and _may_be_coco(folder, path)]
    formats = {path: found for path in paths if (found := _format_of(folder, path))}
    known = [path for path, found in formats.items() if found != panoptic.NAME] or list(formats)
    named = [path for path in known if path.rpartition("/")[2].startswith(OBJECTS)] or known
    if len(named) <= 1:
        return (named[0], None) if named else None
    template = _template(named)
    if template is None:
        return None
    pictures = set(filter(is_picture, files.paths)) - IndexedFiles.at(folder.raw, named).pngs
    return template, _template({f"{path.rpartition('/')[0]}/{{key}}".lstrip("/") for path in pictures})


def _template(paths: Iterable[str] | Sequence[str]) -> str | None:
    """Return the template of paths that differ in the name of a split; None if they differ in more."""
    found = {_SPLIT.sub("{split}", path, count=1) for path in paths}
    template = found.pop() if len(found) == 1 else ""
    return template if "{split}" in template else None


def _may_be_coco(folder: FolderSource, path: str) -> bool:
    try:
        with open_raw(folder.raw / path) as file:
            head = file.read(HEAD)
    except OSError:
        return False
    return head.lstrip()[:1] == b"{" and any(name in head for name in _LISTS)


def _format_of(folder: FolderSource, path: str) -> str | None:
    """Return the format of a file that has objects."""
    try:
        found = IndexedFiles.at(folder.raw, [path])
    except InputError:
        return None
    return found.format if found.counts else None
