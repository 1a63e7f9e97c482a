"""The layouts that raw folders have by themselves: which templates fit a folder, by the names of its sub-folders."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from packer.errors import UsageError
from packer.pairs.template import KEY, OTHER_PICTURES, PICTURES, SPLIT, Template, composed

IMAGE_FOLDERS = ("images", "image", "imgs", "img", "img_dir")
LABEL_FOLDERS = ("labels", "label", "masks", "mask", "annotations", "annotation", "gts", "gt", "ann_dir")
SPLIT_FOLDERS = ("train", "training", "val", "valid", "validation", "test", "testing")
BESIDE_SPLIT = (
    "_labels",
    "_label",
    "labels",
    "_masks",
    "_mask",
    "masks",
    "_annotations",
    "annotations",
    "_annot",
    "annot",
)
LABEL_SUFFIXES = ("", "_L", "_label", "_labels", "_mask", "_masks", "_gt", "_seg", "_annotation")
IMAGE_SUFFIXES = ("", "_img", "_image")

VOC_IMAGES = "JPEGImages"
VOC_LABELS = ("SegmentationClass", "SegmentationClassPNG")

Place = tuple[str, str]
"""A split ("" unless both templates have it) and a key: what an image and its label share."""


@dataclass(frozen=True)
class Layout:
    """A way to pair: where images and labels are. What both templates capture is how an image finds its label."""

    name: str
    image: Template
    label: Template
    exclusive: bool = True
    """Whether every picture in the folders must fit a template; not when the user chose the templates."""

    def __post_init__(self) -> None:
        strange = set(self.label.captures) - set(self.image.captures) - {SPLIT}
        if strange:
            raise UsageError(
                f"--image {self.image.text!r} and --label {self.label.text!r} need the same captures: "
                f"{{{min(strange)}}} is in the label's alone; write * for what only labels have"
            )

    @property
    def has_splits(self) -> bool:
        return SPLIT in (*self.image.captures, *self.label.captures)

    def places(self, path: str) -> tuple[Place | None, Place | None]:
        """As an image and as a label."""
        path = composed(path)
        return self._place(self.image.pattern.fullmatch(path)), self._place(self.label.pattern.fullmatch(path))

    def image_place(self, path: str) -> Place | None:
        return self._place(self.image.match(path))

    def label_place(self, path: str) -> Place | None:
        return self._place(self.label.match(path))

    def captures(self, image: str, label: str) -> dict[str, str]:
        """Everything that the paths of a pair say."""
        both = (self.label.match(label), self.image.match(image))
        return {name: text for found in both if found for name, text in found.groupdict().items()}

    def split(self, place: Place, image: str, label: str) -> str:
        """Where one of both templates has the split alone, it is no part of the place."""
        return self.captures(image, label)[SPLIT] if self._lone_split else place[0]

    @cached_property
    def _lone_split(self) -> bool:
        return (SPLIT in self.image.captures) != (SPLIT in self.label.captures)

    @cached_property
    def _has_place_split(self) -> bool:
        return self.has_splits and not self._lone_split

    @cached_property
    def _parts(self) -> tuple[str, ...]:
        """The captures that make the key."""
        return tuple(name for name in self.image.captures if name in self.label.captures and name != SPLIT)

    def _place(self, found: re.Match[str] | None) -> Place | None:
        """The key is what the shared captures hold, in the order of the image's template."""
        if found is None:
            return None
        key = found[KEY] if len(self._parts) == 1 else "/".join(map(found.__getitem__, self._parts))
        return found[SPLIT] if self._has_place_split else "", key


def find_layouts(files: Iterable[str]) -> list[Layout]:
    """Every known layout that the paths fit, so that one is right, none is unknown and several are ambiguous."""
    suffixes = (*PICTURES, *OTHER_PICTURES)
    pictures = [path for path in files if path.lower().endswith(suffixes)]
    folders = {parent for folder in {path.rpartition("/")[0] for path in pictures} for parent in _with_parents(folder)}
    layouts = [*_voc(folders), *_flat(folders), *_split_first(folders)] or list(_split_beside(folders))
    return [_with_suffixes(layout, pictures) for layout in layouts]


def _with_parents(folder: str) -> Iterator[str]:
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]


def _below(folders: Iterable[str], parent: str, names: Iterable[str]) -> list[str]:
    """The sub-folders of `parent` that have one of these names, however capitalised."""
    found = []
    for folder in sorted(folders):
        head, _, tail = folder.rpartition("/")
        if head == parent and tail.casefold() in names:
            found.append(tail)
    return found


def _voc(folders: set[str]) -> Iterator[Layout]:
    labels = next((name for name in VOC_LABELS if name in folders), None)
    if VOC_IMAGES in folders and labels:
        yield _layout("VOC", VOC_IMAGES + "/{key}", labels + "/{key}")


def _flat(folders: set[str]) -> Iterator[Layout]:
    """images/ + labels/, perhaps with train/ and val/ inside both."""
    for image in _below(folders, "", IMAGE_FOLDERS):
        for label in _below(folders, "", LABEL_FOLDERS):
            splits = _below(folders, image, SPLIT_FOLDERS)
            below = f"{{split:{'|'.join(splits)}}}/" if splits else ""
            yield _layout(f"{image}/ + {label}/", f"{image}/{below}{{key}}", f"{label}/{below}{{key}}")


def _split_first(folders: set[str]) -> Iterator[Layout]:
    """train/images/ + train/labels/."""
    splits = _below(folders, "", SPLIT_FOLDERS)
    choices = f"{{split:{'|'.join(splits)}}}"
    images = {name for split in splits for name in _below(folders, split, IMAGE_FOLDERS)}
    labels = {name for split in splits for name in _below(folders, split, LABEL_FOLDERS)}
    for image in sorted(images):
        for label in sorted(labels):
            name = f"{splits[0]}/{image}/ + {splits[0]}/{label}/"
            yield _layout(name, f"{choices}/{image}/{{key}}", f"{choices}/{label}/{{key}}")


def _split_beside(folders: set[str]) -> Iterator[Layout]:
    """train/ + train_labels/."""
    splits = _below(folders, "", SPLIT_FOLDERS)
    choices = f"{{split:{'|'.join(splits)}}}"
    for suffix in BESIDE_SPLIT:
        if any(split + suffix in folders for split in splits):
            yield _layout(f"{splits[0]}/ + {splits[0]}{suffix}/", choices + "/{key}", choices + suffix + "/{key}")


def _layout(name: str, image: str, label: str) -> Layout:
    return Layout(name, Template(image), Template(label))


def _with_suffixes(layout: Layout, files: list[str]) -> Layout:
    """Where no image and label share a key, a suffix that people give either may be why: `a.png` + `a_L.png`."""
    images = {place for path in files if (place := layout.image_place(path))}
    labels = set()
    for path in files:
        if place := layout.label_place(path):
            if place in images:
                return layout
            labels.add(place)
    label_keys = {suffix: _without(suffix, labels) for suffix in LABEL_SUFFIXES}
    for image_suffix in IMAGE_SUFFIXES:
        image_keys = _without(image_suffix, images)
        for label_suffix in LABEL_SUFFIXES:
            if image_keys & label_keys[label_suffix]:
                return replace(
                    layout,
                    image=Template(layout.image.text + image_suffix),
                    label=Template(layout.label.text + label_suffix),
                )
    return layout


def _without(suffix: str, places: Iterable[Place]) -> set[Place]:
    """The places whose keys end so, without this ending."""
    return {(split, key.removesuffix(suffix)) for split, key in places if key.endswith(suffix) and key != suffix}
