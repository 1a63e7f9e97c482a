"""Finding the pairs of a raw folder: by key, never by position; everything that has no partner is named."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from packer.errors import InputError
from packer.layouts import Layout, find_layouts
from packer.template import OTHER_PICTURES, PICTURES, Template
from readers.contract.manifest import ALL, NAME


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
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass
class _Found:
    """What the templates match: for each split and key the image paths and the label paths."""

    images: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    labels: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    strays: list[str] = field(default_factory=list)


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
    problems = [*_bad_splits(found), *found.strays, *_duplicates(found)]
    notes: list[str] = []
    if layout.lists is not None:
        found, missing = _by_lists(raw, layout.lists, found, notes)
    else:
        missing = list(_orphans(found))
    if not skip_missing:
        problems += missing
    if problems:
        hint = "; --missing skip leaves out what has no partner" if missing and not skip_missing else ""
        raise InputError(f"{raw}: {len(problems)} problems in the layout {layout.name}{hint}", problems)
    pairs = [
        Pair(split or ALL, key, paths[0], found.labels[split, key][0])
        for (split, key), paths in found.images.items()
        if (split, key) in found.labels
    ]
    if not pairs:
        raise InputError(f"{raw}: no image has a label in the layout {layout.name}", missing)
    return Pairing(layout, tuple(sorted(pairs)), tuple(missing), tuple(notes))


def list_files(raw: Path, leave_out: Path | None = None) -> list[str]:
    """Every file below `raw` but hidden ones, sorted; folders behind links are followed, each once."""
    if not raw.is_dir():
        raise InputError(f"{raw}: there is no such folder")
    files: list[str] = []
    seen: set[tuple[int, int]] = set()
    left_out = _identity(leave_out) if leave_out is not None and leave_out.is_dir() else None
    for folder, folders, names in os.walk(raw, followlinks=True, onerror=_cannot_list):
        identity = _identity(Path(folder))
        if identity in seen or identity == left_out:
            folders.clear()
            continue
        seen.add(identity)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        inside = Path(folder).relative_to(raw).as_posix()
        prefix = "" if inside == "." else f"{inside}/"
        files += [prefix + name for name in names if not name.startswith(".")]
    return sorted(files)


def _identity(folder: Path) -> tuple[int, int]:
    status = folder.stat()
    return status.st_dev, status.st_ino


def _cannot_list(error: OSError) -> None:
    raise InputError(f"{error.filename}: the folder cannot be listed ({error.strerror})") from error


def _layout(raw: Path, files: list[str], image: str | None, label: str | None) -> Layout:
    """The layout that the user named, or the only known one that fits."""
    if image and label:
        return Layout("given by --image and --label", Template(image), Template(label))
    if image or label:
        raise InputError("--image and --label go together: give both templates")
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
    return [*lines[:20], *([f"… and {len(lines) - 20} more folders"] if len(lines) > 20 else [])] or ["nothing"]


def _find(files: list[str], layout: Layout) -> _Found:
    found = _Found()
    folders = tuple(template.folder + "/" for template in (layout.image, layout.label) if template.folder)
    for path in files:
        image, label = layout.image.match(path), layout.label.match(path)
        if (image or label) and not path.isprintable():  # it would be garbled in every list and log from here on
            found.strays.append(f"{path!r}: the name is not printable UTF-8; rename the file")
            continue
        if image and label:  # a.png beside a_mask.png: the template that fixes more of the name is meant
            if layout.image.literal == layout.label.literal:
                found.strays.append(f"{path}: fits --image and --label alike")
            image, label = (image, None) if layout.image.literal > layout.label.literal else (None, label)
        if label:
            found.labels.setdefault(label, []).append(path)
        elif image:
            found.images.setdefault(image, []).append(path)
        elif layout.exclusive and path.startswith(folders):
            suffix = os.path.splitext(path)[1].lower()  # noqa: PTH122 - a text below the raw folder, not a path here
            if suffix in PICTURES:
                found.strays.append(f"{path}: does not fit --image {layout.image.text} or --label {layout.label.text}")
            elif suffix in OTHER_PICTURES:
                found.strays.append(f"{path}: is neither PNG nor JPEG; convert it")
    return found


def _bad_splits(found: _Found) -> Iterator[str]:
    """Names of splits that cannot be part of a file's name."""
    for split in sorted({split for split, _ in found.images if split}):
        if not NAME.fullmatch(split):
            yield f"the split {split!r} needs a name of letters, digits and ._- only"


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


def _by_lists(raw: Path, folder: str, found: _Found, notes: list[str]) -> tuple[_Found, list[str]]:
    """Keep what the lists of the splits name, as PASCAL VOC does: most of its images have no label."""
    lists = {path.stem: path for path in sorted((raw / folder).glob("*.txt")) if not path.name.startswith(".")}
    if len(lists) > 1:
        lists.pop("trainval", None)  # train and val again, in one
    kept, missing = _Found(), []
    for split, path in lists.items():
        for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), 1):
            if not line.strip():
                continue
            key = line.split()[0]
            images, labels = found.images.get(("", key)), found.labels.get(("", key))
            if images and labels:
                kept.images[split, key], kept.labels[split, key] = images, labels
            else:
                lacks = "no label" if images else "no image" if labels else "neither image nor label"
                missing.append(f"{folder}/{path.name}:{number}: {key} has {lacks}")
    listed = {key for _, key in kept.images}
    unlisted = sum(key not in listed for _, key in found.images)
    if unlisted:
        notes.append(f"{unlisted} images are in no list of {folder}/ and are left out")
    return kept, missing
