"""Find where annotations of pictures may lie by their names: next to the pictures, or in a folder such as labels/."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from packer.pairs.folder_names import Folders, first_names
from packer.pairs.layouts import SPLIT_FOLDERS, Layout, find_layouts
from packer.pairs.paths import is_picture, stem
from packer.pairs.template import ANNOTATIONS, KEY, Template

NAME_ENDS = ("", ".*", "_labels", "_annotation", "_polygons", "_gtFine_polygons", "_gtCoarse_polygons")
"""Ends of names of annotation files, behind the names of their pictures: `a.jpg.json`, `a_polygons.json`."""
EMBEDDING = ".json"
"""The suffix of files that may have a picture within them."""

CITYSCAPES = tuple(
    Layout("Cityscapes", Template("leftImg8bit/{split}/*/{key}_leftImg8bit"), Template(f"{labels}/{{split}}/*/{{key}}"))
    for labels in ("gtFine", "gtCoarse")
)


@dataclass(frozen=True)
class AnnotationLayout:
    """Templates of pictures and of their annotations, and the first files of annotations that have a picture."""

    images: str
    annotations: str
    files: tuple[str, ...]


def annotation_layouts(folders: Folders) -> list[AnnotationLayout]:
    """Return all layouts in which files with a suffix of annotations have the keys of pictures."""
    first = first_names(folders)
    pictures = {folder: [name for name in names if is_picture(name)] for folder, names in first.items()}
    layouts = []
    for suffix in ANNOTATIONS:
        texts = {folder: [name for name in names if name.endswith(suffix)] for folder, names in first.items()}
        shown = {folder: ["x.png"] for folder in folders if texts[folder] or pictures[folder]}
        if not any(texts.values()):
            continue
        for layout in (*_next_to(pictures, texts), *find_layouts(shown), *CITYSCAPES, *_projects(folders)):
            if (fitting := _fitting(layout, pictures, texts, suffix)) is not None:
                layouts.append(fitting)
    return layouts


def without_pictures(folders: Folders) -> AnnotationLayout | None:
    """Return the layout of JSON files, which may have their pictures within them; None if the folder has pictures."""
    first = first_names(folders)
    texts = {folder: [name for name in names if name.endswith(EMBEDDING)] for folder, names in first.items()}
    if any(is_picture(name) for names in first.values() for name in names) or not any(texts.values()):
        return None
    template = f"{_folders_text([folder for folder in texts if texts[folder]])}{EMBEDDING}"
    return AnnotationLayout(template, template, tuple(folder + name for folder in texts for name in texts[folder]))


def with_template(folders: Folders, template: str) -> list[AnnotationLayout]:
    """Return the layouts of pictures that have the same keys as the annotations of a given template."""
    parsed = Template(template)
    first = first_names(folders)
    pictures = {folder: [name for name in names if is_picture(name)] for folder, names in first.items()}
    texts = {f"{folder}{name}": _keys_of(parsed, f"{folder}{name}") for folder in first for name in first[folder]}
    path_of = {key: path for path, key in texts.items() if key is not None}
    shown = {folder: ["x.png"] for folder in folders}
    layouts: dict[str, AnnotationLayout] = {}
    for layout in (*_everywhere(pictures), *find_layouts(shown)):
        keys = {_keys_of(layout.image, folder + name) for folder in pictures for name in pictures[folder]}
        if files := sorted(path for key, path in path_of.items() if key in keys):
            layouts.setdefault(layout.image.text, AnnotationLayout(layout.image.text, template, tuple(files)))
    return list(layouts.values())


def _fitting(layout: Layout, pictures: Folders, texts: Folders, suffix: str) -> AnnotationLayout | None:
    """Return a layout with the end of the names with which pictures and annotations share keys; None if none do."""
    keys = {_keys_of(layout.image, folder + name) for folder in pictures for name in pictures[folder]} - {None}
    for end in NAME_ENDS:
        template = Template(f"{layout.label.text}{end}{suffix}")
        paths = (folder + name for folder in texts for name in texts[folder])
        if files := tuple(path for path in sorted(paths) if _keys_of(template, path) in keys):
            return AnnotationLayout(layout.image.text, template.text, files)
    return None


def _keys_of(template: Template, path: str) -> tuple[str, str] | None:
    match = template.match(path)
    return match and (match.groupdict().get("split", ""), match[KEY])


def _next_to(pictures: Folders, texts: Folders) -> Iterator[Layout]:
    """Yield the layout of folders that have pictures and annotations of the same names."""
    shared = [folder for folder in pictures if {stem(name) for name in pictures[folder]} & set(_stems(texts[folder]))]
    if shared:
        where = _folders_text(shared)
        yield Layout("next to the pictures", Template(where), Template(where))


def _projects(folders: Folders) -> Iterator[Layout]:
    """Yield the layout of a project of Supervisely, whose data sets have img/ and ann/ each, and become splits."""
    sets = [folder[:-5] for folder in folders if folder.endswith("/img/") and f"{folder[:-5]}/ann/" in folders]
    if any("/" not in folder for folder in sets):
        yield Layout("Supervisely", Template(f"{{split}}/img/{{{KEY}}}"), Template(f"{{split}}/ann/{{{KEY}}}"))


def _everywhere(pictures: Folders) -> Iterator[Layout]:
    """Yield the layout of all pictures."""
    if folders := [folder for folder, names in pictures.items() if names]:
        where = _folders_text(folders)
        yield Layout("all pictures", Template(where), Template(where))


def _stems(names: Sequence[str]) -> Iterator[str]:
    """Yield names without their suffix, and without the suffix of a picture before it."""
    for name in names:
        yield (short := name.rpartition(".")[0])
        yield stem(short)


def _shared(parts: Sequence[list[str]]) -> list[str]:
    """Return the folders with which all paths begin."""
    first, last = min(parts), max(parts)
    count = next((n for n, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))
    return first[:count]


def _folders_text(folders: Sequence[str]) -> str:
    """Return the template of files in these folders: what all share, splits if they differ in these, and the key."""
    parts = [folder.split("/")[:-1] for folder in folders]
    shared = _shared(parts)
    ends = [names[len(shared) :] for names in parts]
    splits = sorted({names[0] for names in ends if names})
    before = "".join(f"{part}/" for part in shared)
    if not splits and shared and shared[-1].casefold() in SPLIT_FOLDERS:
        return "".join(f"{part}/" for part in shared[:-1]) + f"{{split:{shared[-1]}}}/{{{KEY}}}"
    if not splits or not all(ends) or not {split.casefold() for split in splits} <= set(SPLIT_FOLDERS):
        return f"{before}{{{KEY}}}"
    rest = {tuple(names[1:]) for names in ends}
    after = "".join(f"{part}/" for part in next(iter(rest))) if len(rest) == 1 else ""
    return f"{before}{{split:{'|'.join(splits)}}}/{after}{{{KEY}}}"
