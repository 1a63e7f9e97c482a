"""Find files of annotations of many pictures in a folder, and the templates of these files and of the pictures."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import NamedTuple

from packer.annotations import panoptic
from packer.annotations.whole_pictures import may_be_whole
from packer.errors import InputError
from packer.pairs.files import RawFiles
from packer.pairs.paths import is_picture
from packer.sources.annotated.annotation_files import label_pictures
from packer.sources.annotated.indexed_files import IndexedFiles
from packer.sources.annotated.listed_pictures import files_of_many
from packer.sources.files.folder import FolderSource
from readers.contract.regular_files import open_raw

HEAD = 1 << 16
SUFFIXES = (".json", ".xml")
_LISTS = (b'"images"', b'"annotations"', b'"categories"')
_SPLIT = re.compile(r"(?<![a-zA-Z])(train|training|val|valid|validation|test)(?![a-zA-Z])", re.IGNORECASE)
OBJECTS = "instances"
"""The files of COCO with outlines begin with this word. Others have captions and keypoints."""


class AnnotationTemplate(NamedTuple):
    """Annotations of many pictures: their template, and the template of the pictures if these have splits."""

    template: str
    images: str | None = None
    others: tuple[str, ...] = ()
    """Files with objects that the template does not fit."""
    labels: tuple[tuple[str, str], ...] = ()
    """Templates of pairs of a picture and a label picture, which are there, too."""
    splits: tuple[str, ...] = ()
    """The splits that folders of pictures name and no template has."""


def indexed_in(folder: FolderSource, files: RawFiles) -> AnnotationTemplate | None:
    """Return the annotations of many pictures; None if there are none.

    If no such file can be read, the first of them is returned, because a build says why.
    """
    paths = [path for path in files.paths if path.endswith(SUFFIXES) and _may_be_one(folder, path)]
    formats, refused = dict[str, str](), list[str]()
    for path in paths:
        try:
            index = IndexedFiles.at(folder.raw, [path])
        except InputError:
            refused.append(path)
        else:
            formats |= {path: index.format} if index.counts or index.lost else {}
    preferred = [path for path, name in formats.items() if name != panoptic.NAME] or list(formats)
    named = [path for path in preferred if path.rpartition("/")[2].startswith(OBJECTS)] or preferred
    pngs = IndexedFiles.at(folder.raw, formats).pngs
    every = [path for path in files.paths if path not in pngs]
    labels = tuple(label_pictures(_raw_files(every)))
    if not named:
        return AnnotationTemplate(refused[0]) if refused and not labels else None
    same = [path for path in named if formats[path] == formats[named[0]]]
    template, images = _templates(same, every)
    others = {*named, *refused} - files_of_many(template, named).keys()
    splits = () if images else tuple(sorted(_splits(path for path in every if is_picture(path))))
    return AnnotationTemplate(template, images, tuple(sorted(others)), labels, splits if len(splits) > 1 else ())


def _templates(paths: list[str], every: list[str]) -> tuple[str, str | None]:
    """Return the template that fits these files alone, or else the first of them, and the template of the pictures."""
    folders = {path.rpartition("/")[0] for path in every if is_picture(path)}
    images = _of_splits({f"{folder}/{{key}}".lstrip("/") for folder in folders})
    if images and len(paths) > 1 and (template := _of_splits(paths)) is not None:
        return template, images
    return _starred(paths, every) or paths[0], images if len(folders) > 1 else None


def _splits(pictures: Iterable[str]) -> set[str]:
    """Return the splits that the folders of pictures name."""
    matches = (_SPLIT.search(path.rpartition("/")[0]) for path in pictures)
    return {match[0] for match in matches if match}


def _of_splits(paths: Collection[str]) -> str | None:
    """Return the template of paths that differ in the name of a split; None if they differ in more."""
    templates = {_SPLIT.sub("{split}", path, count=1) for path in paths}
    template = templates.pop() if len(templates) == 1 else ""
    return template if "{split}" in template else None


def _starred(paths: Collection[str], every: Iterable[str]) -> str | None:
    """Return the template of paths that differ in names of folders or files; None if it fits other files, too."""
    parts = [path.split("/") for path in paths]
    if len(set(map(len, parts))) > 1:
        return None
    suffix = parts[0][-1].rpartition(".")[2]
    names = [same.pop() if len(same := set(level)) == 1 else "*" for level in zip(*parts, strict=True)]
    template = "/".join(names) + (f".{suffix}" if names[-1] == "*" else "")
    return template if files_of_many(template, every).keys() == set(paths) else None


def _raw_files(paths: Iterable[str]) -> RawFiles:
    folders: dict[str, list[str]] = {}
    for path in paths:
        folder, slash, name = path.rpartition("/")
        folders.setdefault(folder + slash, []).append(name)
    return RawFiles.of(folders)


def _may_be_one(folder: FolderSource, path: str) -> bool:
    try:
        with open_raw(folder.raw / path) as file:
            head = file.read(HEAD)
            is_coco = head.lstrip()[:1] == b"{" and any(name in head for name in _LISTS)
            return is_coco or may_be_whole(file)
    except OSError:
        return False
