"""Find the annotations of a folder: the format by the content of some files, the files by a template or by layout."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from blake3 import blake3

from packer.annotations.annotation import check_categories
from packer.annotations.formats import format_of, is_embedded, picture_format
from packer.annotations.geojson import NAME as GEOJSON
from packer.annotations.json_values import MOST_BYTES
from packer.annotations.picture_format import PictureFormat
from packer.annotations.unread import why_unread
from packer.decoding.raw_file import naming
from packer.errors import BadPair, InputError, Problem, UsageError, first_of
from packer.pairs.annotation_layouts import annotation_layouts, with_template, without_pictures
from packer.pairs.files import RawFiles
from packer.pairs.layouts import find_layouts
from packer.pairs.match import match_files
from packer.pairs.name_suffixes import with_suffixes
from packer.pairs.suggest import suggest_templates
from packer.pairs.template import Template
from packer.sources.annotated.vector_files import as_geojson, check_finished, is_vector
from packer.sources.files.folder import FolderSource, files_of_shapefile, identity_of_files, is_shapefile

_LABEL_WORD = re.compile(r"(?<![a-z])(labels?|masks?|gt|seg|segmentations?|truth)(?![a-z])", re.IGNORECASE)
SAMPLE = 5
"""The files among which one must have a known format."""
DOUBTED = 64
"""The files whose objects are looked at, if they could be something else than outlines."""
CERTAIN = "outlines:"
"""Before the template of --annotations: its objects are outlines, whatever they look like."""


@dataclass(frozen=True)
class FoundAnnotations:
    """The format of annotation files, and the templates of the pictures and of these files."""

    format: str
    images: str
    template: str
    names: tuple[str, ...] = ()
    """The categories that a list next to the files names."""
    doubt: str = ""
    """A description of the objects if they could be something else than outlines."""

    @property
    def layout(self) -> str:
        return f"{self.format} {self.template}"


def annotations_by(template: str, images: str | None, folder: FolderSource, files: RawFiles) -> FoundAnnotations:
    """Return the annotations that --annotations names. Without --image the pictures are those with the same keys."""
    is_certain, template = template.startswith(CERTAIN), template.removeprefix(CERTAIN)
    pattern = Template(template)
    paths = [path for path in files.paths if pattern.match(path)]
    found_format = _format_of(paths, folder)
    if found_format is None:
        matched = ", ".join(first_of(paths, SAMPLE)) or "no file"
        unread = {
            path: reason for path in paths[:SAMPLE] if (reason := why_unread(path, _read_or_nothing(folder, path)))
        }
        raise InputError(
            f"--annotations {template}: fits no annotations of a known format; it fits {matched}",
            [Problem(reason, "", (path,)) for path, reason in unread.items()],
        )
    if images is None:
        layouts = with_template(files.folders, template)
        if not layouts and _embed(found_format, paths, folder):
            return FoundAnnotations(
                found_format.name, template, template, _names(found_format, paths[0], folder, files)
            )
        if len(layouts) != 1:
            fitting = "several layouts of pictures fit" if layouts else "no picture has the key of such a file"
            raise UsageError(
                f"--annotations {template}: {fitting}; name the pictures, such as --image 'photos/{{key}}.jpg'"
            )
        images = layouts[0].images
    doubt = "" if is_certain else _doubt(found_format, paths, folder)
    return FoundAnnotations(found_format.name, images, template, _names(found_format, paths[0], folder, files), doubt)


def annotations_in(folder: FolderSource, files: RawFiles) -> FoundAnnotations | None:
    """Return the annotations that lie where they are usually; None if there are none.

    If there are label pictures, too, or several kinds of annotations, the user must choose.
    """
    formats = [(layout, _format_of(layout.files, folder)) for layout in annotation_layouts(files.folders)]
    annotations = [
        FoundAnnotations(
            file_format.name,
            layout.images,
            layout.annotations,
            _names(file_format, layout.files[0], folder, files),
            _doubt(file_format, layout.files, folder),
        )
        for layout, file_format in formats
        if file_format is not None
    ]
    if not annotations:
        return _embedded_in(folder, files)
    labels = [f"--image '{image}' --label '{label}'" for image, label in label_pictures(files)]
    if len(annotations) == 1 and not labels:
        return annotations[0]
    ways = [f"{kind.format}: --image '{kind.images}' --annotations '{kind.template}'" for kind in annotations]
    several = "has label pictures and annotations" if labels else "has several kinds of annotations"
    raise InputError(f"{folder.raw}: {several}; choose one with", [*labels, *ways])


def _embedded_in(folder: FolderSource, files: RawFiles) -> FoundAnnotations | None:
    """Return the annotations of a folder without pictures, which have these within them."""
    layout = without_pictures(files.folders)
    file_format = None if layout is None else _format_of(layout.files, folder)
    if layout is None or file_format is None:
        return None
    if not _embed(file_format, layout.files, folder):
        raise InputError(
            f"{folder.raw}: has files of {file_format.name} and no pictures; put the pictures next to them"
        )
    names = _names(file_format, layout.files[0], folder, files)
    return FoundAnnotations(file_format.name, layout.images, layout.annotations, names)


def _embed(file_format: PictureFormat, paths: Sequence[str], folder: FolderSource) -> bool:
    """Return whether one of the first files has a picture within it."""
    for path in paths[:SAMPLE]:
        with suppress(BadPair):
            if is_embedded(path) and file_format.picture_in(read_annotations(folder, path)):
                return True
    return False


def read_annotations(folder: FolderSource, path: str) -> bytes:
    """Return the bytes of a file, unless it is larger than any file of one picture. Shapes of GDAL become GeoJSON."""
    return read_identified(folder, path)[0]


def read_identified(folder: FolderSource, path: str) -> tuple[bytes, str]:
    """Return the bytes of a file, and what identifies it."""
    if is_vector(path):
        check_finished(folder.raw, path)
    files = files_of_shapefile(folder.raw, path) if is_shapefile(path) else [path]
    with naming(path):
        size = sum(map(folder.size_of, files))
        if size > MOST_BYTES:
            raise BadPair(f"has {size:,} bytes; a file of one picture has at most {MOST_BYTES:,}")
    contents = {name: folder.read(name) for name in files}
    identity = identity_of_files([blake3(data).hexdigest() for data in contents.values()], files)
    if not is_vector(path):
        return contents[path], identity
    with naming(path):
        return as_geojson(contents), identity


def _format_of(paths: Sequence[str], folder: FolderSource) -> PictureFormat | None:
    for path in paths[:SAMPLE]:
        if is_vector(path):
            return picture_format(GEOJSON)
        try:
            file_format = format_of(read_annotations(folder, path))
        except BadPair:
            continue
        if file_format is not None:
            return file_format
    return None


def _doubt(file_format: PictureFormat, paths: Sequence[str], folder: FolderSource) -> str:
    """Describe the objects of some of the files if they could be something else than outlines; else return nothing."""
    if file_format.doubt_about is None:
        return ""
    some = paths[:: max(1, len(paths) // DOUBTED)]
    return file_format.doubt_about(data for path in some if (data := _read_or_nothing(folder, path)))


def _read_or_nothing(folder: FolderSource, path: str) -> bytes:
    try:
        return read_annotations(folder, path)
    except BadPair:  # a build says why
        return b""


def _names(file_format: PictureFormat, path: str, folder: FolderSource, files: RawFiles) -> tuple[str, ...]:
    """Return the categories of the nearest list, in the folder of a file or above it, or of the format."""
    parts = path.split("/")[:-1]
    for depth in range(len(parts), -1, -1):
        above = "".join(f"{part}/" for part in parts[:depth])
        here = files.folders.get(above, ())
        usual = [name for name in file_format.lists if name in here][:1]
        lists = usual or [
            name for name in here if name.endswith(file_format.other_lists) and name not in file_format.lists
        ]
        if names := _names_in(file_format, folder, [above + name for name in lists], bool(usual)):
            return names
    return file_format.categories


def _names_in(file_format: PictureFormat, folder: FolderSource, lists: Sequence[str], usual: bool) -> tuple[str, ...]:
    """Return the categories that these files list; none if there are no files, or none of them has names.

    A file with a usual name is a list. Another one is if it has names, and all of these must have the same.
    """
    listed: dict[str, tuple[str, ...]] = {}
    for path in lists:
        try:
            data = read_annotations(folder, path)
            with naming(path):
                if usual or file_format.has_names(data):
                    listed[path] = file_format.names_of(data)
                    check_categories(listed[path])
        except BadPair as bad:
            raise InputError(f"{folder.raw}: the list of categories cannot be read", [str(bad)]) from None
    if len(set(listed.values())) > 1:
        several = [f"{path} has {', '.join(first_of(names, SAMPLE))}" for path, names in listed.items()]
        keep = f"keep one of them, or call it {file_format.lists[0]}"
        raise InputError(f"{folder.raw}: files list different categories; {keep}", several)
    return next(iter(listed.values()), ())


def label_pictures(files: RawFiles) -> list[tuple[str, str]]:
    """Return the templates of layouts that have pairs of an image and a label picture: known ones, and those whose
    names say so, such as `{key}_seg.png`."""
    templates = []
    for layout in (with_suffixes(layout, files.folders) for layout in find_layouts(files.folders)):
        matches = match_files(files.folders, layout)
        if not matches.images.keys().isdisjoint(matches.labels):
            templates.append((layout.image.text, layout.label.text))
    if templates:
        return templates
    for suggestion in suggest_templates(files.paths):
        if _says_label(suggestion.label) and not _says_label(suggestion.image):
            return [(suggestion.image, suggestion.label)]
    return []


def _says_label(template: str) -> bool:
    return _LABEL_WORD.search(template.rpartition("/")[2]) is not None
