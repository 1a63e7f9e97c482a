"""Known layouts of raw folders: templates that follow from the names of the sub-folders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Literal

from packer.errors import UsageError
from packer.pairs.folder_names import Folders
from packer.pairs.template import CHANNEL, KEY, OTHER_PICTURES, PICTURES, SPLIT, Template, composed

IMAGE_FOLDERS = ("images", "image", "imgs", "img", "img_dir")
LABEL_FOLDERS = ("labels", "label", "masks", "mask", "annotations", "annotation", "gts", "gt", "ann_dir")
SPLIT_FOLDERS = ("train", "training", "val", "valid", "validation", "test", "testing")
LABELS_OF_SPLIT = (
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
VOC_IMAGES = "JPEGImages"
VOC_LABELS = ("SegmentationClass", "SegmentationClassPNG")
ROBOFLOW_TABLE = "_classes.csv"

SplitKey = tuple[str, str]
"""A split ("" unless both templates capture it) and a key: an image and its label have the same."""
KeyReader = Callable[[str], SplitKey | None]
Side = Literal["image", "label"]


@dataclass(frozen=True)
class Layout:
    """Templates for images and labels. The captures that both have match an image with its label."""

    name: str
    image: Template
    label: Template
    exclusive: bool = True
    """True if every picture in the folders must fit a template. False for templates of the user."""

    def __post_init__(self) -> None:
        if CHANNEL in self.label.captures:
            raise UsageError(f"--label {self.label.text!r}: a label is one file; {{{CHANNEL}}} is for --image")
        extra = set(self.label.captures) - set(self.image.captures) - {SPLIT}
        if extra:
            raise UsageError(
                f"--image {self.image.text!r} and --label {self.label.text!r} need the same captures: "
                f"only the label has {{{min(extra)}}}; write * for a part that only labels have"
            )

    @property
    def has_splits(self) -> bool:
        return SPLIT in (*self.image.captures, *self.label.captures)

    def keys(self, path: str) -> tuple[SplitKey | None, SplitKey | None]:
        """Return the key of a path as an image, and its key as a label."""
        path = composed(path)
        return self._image_key(path), self._label_key(path)

    def image_key(self, path: str) -> SplitKey | None:
        return self._image_key(composed(path))

    def label_key(self, path: str) -> SplitKey | None:
        return self._label_key(composed(path))

    def split_keys(self, captures: Mapping[str, str], keys: Sequence[str]) -> list[SplitKey]:
        """Return the keys of files in a folder with these captures, from their parts in place of `{key}`."""
        split = captures[SPLIT] if self._both_have_split else ""
        if len(self._parts) > 1:
            before, after = "/".join(captures.get(name, "\0") for name in self._parts).split("\0")
            keys = [f"{before}{key}{after}" for key in keys]
        return list(zip(repeat(split), keys))

    def captures(self, image: str, label: str) -> dict[str, str]:
        """Return all captures of the paths of a pair."""
        matches = (self.label.match(label), self.image.match(image))
        return {name: text for match in matches if match for name, text in match.groupdict().items()}

    def split(self, key: SplitKey, image: str, label: str) -> str:
        """Return the split of a pair. If only one template captures it, it is not part of the key."""
        return self.captures(image, label).get(SPLIT, "") if self.only_one_has_split else key[0]

    @cached_property
    def only_one_has_split(self) -> bool:
        """True if the split is in one template only, and so is not part of the key."""
        return (SPLIT in self.image.captures) != (SPLIT in self.label.captures)

    @cached_property
    def _both_have_split(self) -> bool:
        return self.has_splits and not self.only_one_has_split

    @cached_property
    def _parts(self) -> tuple[str, ...]:
        """The names of the captures that make the key."""
        return tuple(name for name in self.image.captures if name in self.label.captures and name != SPLIT)

    @cached_property
    def _image_key(self) -> KeyReader:
        return self._key_reader(self.image)

    @cached_property
    def _label_key(self) -> KeyReader:
        return self._key_reader(self.label)

    def _key_reader(self, template: Template) -> KeyReader:
        """Return the function from a composed path to its key. It is called for every file, so most are left early."""
        folders, fullmatch = template.folders, template.pattern.fullmatch
        parts, both = self._parts, self._both_have_split

        def joined(path: str) -> SplitKey | None:
            """Join the shared captures in the order of the image's template."""
            match = fullmatch(path) if path.startswith(folders) else None
            return match and (match[SPLIT] if both else "", "/".join(map(match.__getitem__, parts)))

        def alone(path: str) -> SplitKey | None:
            match = fullmatch(path) if path.startswith(folders) else None
            return match and ("", match[KEY])

        return alone if parts == (KEY,) and not both else joined


def find_layouts(files: Folders) -> list[Layout]:
    """Return every known layout that the folders fit. None means unknown, several mean ambiguous."""
    suffixes = (*PICTURES, *OTHER_PICTURES)
    pictures = [
        folder[:-1] for folder, names in files.items() if any(name.lower().endswith(suffixes) for name in names)
    ]
    folders = {parent for folder in pictures for parent in _with_parents(folder)}
    layouts = [*_voc(folders), *_flat(folders), *_split_first(folders), *_roboflow(files)]
    return layouts or list(_split_suffixed(folders))


def _with_parents(folder: str) -> Iterator[str]:
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]


def _below(folders: Iterable[str], parent: str, names: Iterable[str]) -> list[str]:
    """Return the sub-folders of `parent` that have one of these names, in capitals or not."""
    tails = []
    for folder in sorted(folders):
        head, _, tail = folder.rpartition("/")
        if head == parent and tail.casefold() in names:
            tails.append(tail)
    return tails


def _voc(folders: set[str]) -> Iterator[Layout]:
    labels = next((name for name in VOC_LABELS if name in folders), None)
    if VOC_IMAGES in folders and labels:
        yield _layout("VOC", VOC_IMAGES + "/{key}", labels + "/{key}")


def _flat(folders: set[str]) -> Iterator[Layout]:
    """Yield images/ + labels/, perhaps with train/ and val/ inside both."""
    for image in _below(folders, "", IMAGE_FOLDERS):
        for label in _below(folders, "", LABEL_FOLDERS):
            splits = _below(folders, image, SPLIT_FOLDERS)
            below = f"{{split:{'|'.join(splits)}}}/" if splits else ""
            yield _layout(f"{image}/ + {label}/", f"{image}/{below}{{key}}", f"{label}/{below}{{key}}")


def _split_first(folders: set[str]) -> Iterator[Layout]:
    """Yield train/images/ + train/labels/."""
    splits = _below(folders, "", SPLIT_FOLDERS)
    choices = f"{{split:{'|'.join(splits)}}}"
    images = {name for split in splits for name in _below(folders, split, IMAGE_FOLDERS)}
    labels = {name for split in splits for name in _below(folders, split, LABEL_FOLDERS)}
    for image in sorted(images):
        for label in sorted(labels):
            name = f"{splits[0]}/{image}/ + {splits[0]}/{label}/"
            yield _layout(name, f"{choices}/{image}/{{key}}", f"{choices}/{label}/{{key}}")


def _roboflow(files: Folders) -> Iterator[Layout]:
    """Yield train/x.jpg + train/x_mask.png of a mask export, whose splits have a table of classes each."""
    splits = [split for split in SPLIT_FOLDERS if ROBOFLOW_TABLE in files.get(f"{split}/", ())]
    masks = any(name.endswith("_mask.png") for split in splits for name in files[f"{split}/"])
    if masks:
        choices = f"{{split:{'|'.join(splits)}}}"
        yield _layout("Roboflow masks", choices + "/{key}.jpg", choices + "/{key}_mask.png")


def _split_suffixed(folders: set[str]) -> Iterator[Layout]:
    """Yield train/ + train_labels/."""
    splits = _below(folders, "", SPLIT_FOLDERS)
    choices = f"{{split:{'|'.join(splits)}}}"
    for suffix in LABELS_OF_SPLIT:
        if any(split + suffix in folders for split in splits):
            yield _layout(f"{splits[0]}/ + {splits[0]}{suffix}/", choices + "/{key}", choices + suffix + "/{key}")


def _layout(name: str, image: str, label: str) -> Layout:
    return Layout(name, Template(image), Template(label))
