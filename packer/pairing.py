"""Finding the pairs of a raw folder: by key, never by position; everything that has no partner is named."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from packer.errors import InputError, UsageError
from packer.layouts import Layout, Place, find_layouts
from packer.listing import list_files
from packer.splitlists import read_lists
from packer.template import OTHER_PICTURES, PICTURES, Template
from readers.contract.manifest import ALL, NAME

_UNWRITABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Control characters, and what Python makes of bytes that are no UTF-8: garbled in every list and log from here on."""


@dataclass(frozen=True, order=True)
class Pair:
    """An image and its label, as found; the paths are below the raw folder."""

    split: str
    key: str
    image: str
    label: str


@dataclass(frozen=True)
class Pairing:
    """All pairs of a raw folder, sorted, and what was left aside."""

    layout: Layout
    pairs: tuple[Pair, ...]
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass
class _Found:
    """What the templates match: for each place the image paths and the label paths."""

    images: dict[Place, list[str]] = field(default_factory=dict)
    labels: dict[Place, list[str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def find_pairs(
    raw: Path,
    image: str | None = None,
    label: str | None = None,
    skip_missing: bool = False,
    leave_out: Path | None = None,
) -> Pairing:
    """The pairs below `raw`, by the given templates or by the one known layout that fits."""
    files = list_files(raw, leave_out)
    layout = _layout(raw, files, image, label)
    found = _find(files, layout)
    found.problems += _duplicates(found)
    if layout.lists is None:
        found.missing += _orphans(found)
    else:
        found = _listed(raw, layout.lists, found)
    found.problems += _bad_splits({split for split, _ in found.images})
    problems = found.problems if skip_missing else found.problems + found.missing
    if problems:
        hint = ""
        if found.missing and not skip_missing:
            hint = "; --missing skip leaves out what has no partner"
        if not found.images.keys() & found.labels.keys():
            hint = "; no image has a label of the same key: --image and --label say how their names differ"
        raise InputError(f"{raw}: {len(problems)} problems in the layout {layout.name}{hint}", problems)
    pairs = [
        Pair(split or ALL, key, paths[0], found.labels[split, key][0])
        for (split, key), paths in found.images.items()
        if (split, key) in found.labels
    ]
    if not pairs:
        raise InputError(f"{raw}: no image has a label in the layout {layout.name}", found.missing)
    return Pairing(layout, tuple(sorted(pairs)), tuple(found.missing), tuple(found.notes))


def _layout(raw: Path, files: list[str], image: str | None, label: str | None) -> Layout:
    """The layout that the user named, or the only known one that fits."""
    if image and label:
        return Layout("given by --image and --label", Template(image), Template(label), exclusive=False)
    if image or label:
        raise UsageError("--image and --label go together: give both templates")
    layouts = find_layouts(files)
    if len(layouts) == 1:
        return layouts[0]
    choices = [f"{one.name}: --image '{one.image.text}' --label '{one.label.text}'" for one in layouts]
    if choices:
        raise InputError(f"{raw}: fits several layouts; choose one with", choices)
    example = "--image 'photos/{split}/{key}.jpg' --label 'truth/{split}/{key}_mask.png'"
    raise InputError(
        f"{raw}: fits no known layout (images/ + labels/, train/ + train_labels/, VOC, …); say where the pairs are, "
        f"such as {example}. Found there:",
        _contents(files),
    )


def _contents(files: Iterable[str]) -> list[str]:
    """Each folder with the number of its files and an example."""
    folders: dict[str, list[str]] = {}
    for path in files:
        folder, _, name = path.rpartition("/")
        folders.setdefault(folder or ".", []).append(name)
    lines = [f"{folder}/  {len(names)} files, such as {names[0]}" for folder, names in sorted(folders.items())]
    lines = [_UNWRITABLE.sub("?", line) for line in lines]
    return [*lines[:20], *([f"… and {len(lines) - 20} more folders"] if len(lines) > 20 else [])] or ["nothing"]


def _find(files: list[str], layout: Layout) -> _Found:
    """Sort the files into images, labels and what should be neither."""
    found = _Found()
    inside = (*layout.image.folders, *layout.label.folders)
    outside = 0
    for path in files:
        image, label = layout.image_place(path), layout.label_place(path)
        suffix = "." + path.rpartition(".")[2].lower()
        if (image or label) and _UNWRITABLE.search(path):
            found.problems.append(f"{path!r}: the name has control characters or is not UTF-8; rename the file")
        elif image and label and layout.image.literal == layout.label.literal:
            found.problems.append(f"{path}: fits --image and --label alike")
        elif label and (not image or layout.label.literal > layout.image.literal):
            found.labels.setdefault(label, []).append(path)  # a_mask.png beside a.png fits both: the closer one counts
        elif image:
            found.images.setdefault(image, []).append(path)
        elif layout.exclusive and path.startswith(inside) and suffix in OTHER_PICTURES:
            found.problems.append(f"{path}: is of a kind that cannot be packed; convert it to PNG")
        elif layout.exclusive and path.startswith(inside) and suffix in PICTURES:
            found.problems.append(f"{path}: fits neither {layout.image.text} nor {layout.label.text}")
        else:
            outside += suffix in (*PICTURES, *OTHER_PICTURES)
    if outside:
        found.notes.append(f"{outside} other pictures fit neither {layout.image.text} nor {layout.label.text}")
    return found


def _duplicates(found: _Found) -> Iterator[str]:
    for what, matches in (("images", found.images), ("labels", found.labels)):
        for (_, key), paths in sorted(matches.items()):
            if len(paths) > 1:
                yield f"{', '.join(paths)}: {len(paths)} {what} for the key {key!r}"


def _orphans(found: _Found) -> Iterator[str]:
    for place in sorted(found.images.keys() - found.labels.keys()):
        yield f"{found.images[place][0]}: has no label"
    for place in sorted(found.labels.keys() - found.images.keys()):
        yield f"{found.labels[place][0]}: has no image"


def _bad_splits(splits: set[str]) -> Iterator[str]:
    """Names that cannot be part of a file's name, or that mean something else."""
    for split in sorted(splits - {""}):
        if not NAME.fullmatch(split):
            yield f"the split {split!r} needs a name of letters, digits and ._- only"
    if ALL in splits and len(splits) > 1:
        yield f"the split {ALL!r} stands for every row, so it cannot be beside others; rename it"


def _listed(raw: Path, folder: str, found: _Found) -> _Found:
    """Keep what the lists of the splits name, as PASCAL VOC does: most of its images have no label."""
    kept = _Found(problems=found.problems, notes=found.notes)
    for line in read_lists(raw, folder, kept.problems):
        key = next((key for key in line.keys if ("", key) in found.images and ("", key) in found.labels), line.keys[0])
        images, labels = found.images.get(("", key)), found.labels.get(("", key))
        if images and labels:
            kept.images[line.split, key], kept.labels[line.split, key] = images, labels
        else:
            lacks = "no label" if images else "no image" if labels else "neither image nor label"
            kept.missing.append(f"{line.place}: {key} has {lacks}")
    unlisted = len(found.images.keys() - {("", key) for _, key in kept.images})
    if unlisted:
        kept.notes.append(f"{unlisted} images are in no list of {folder}/ and are left out")
    return kept
