"""Hints for a raw folder in which no pairs were found: its contents, and options that may help."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from packer.errors import counted, first_of
from packer.pairs.candidates import UNWRITABLE
from packer.pairs.folder_names import by_folder
from packer.pairs.split_lists import usual_lists
from packer.pairs.suggest import suggest_templates
from packer.pairs.suggest_channels import suggest
from packer.pairs.template import OTHER_PICTURES, PICTURES, conversion

MOST_FOLDERS = 20
CHANNEL = re.compile(r"(?P<folder>(?:.*/)?imagesTr)/(?P<case>[^/]+)_\d{4}\.\w+")
"""A channel of a case in the form of nnU-Net."""
VOLUMES = (".nii", ".nii.gz", ".mha", ".mhd", ".nrrd", ".nhdr")


def unknown_layout_hints(files: list[str]) -> list[str]:
    """Return options that may fit a folder without a known layout, then its contents."""
    channels = list(_channels(files))
    perhaps = channels or [*_templates(files, 2), *_lone_pair(files), *_lists(files), *_volumes(files)]
    return [*perhaps, *_unpackable(files), "Found:", *_contents(files)]


def no_common_key_hint(files: list[str]) -> str:
    """Return the advice for images and labels that have no key in common."""
    advice = "no image and label have the same key: describe how their names differ with --image and --label"
    return ", ".join([advice, *_templates(files, 1)])


def _templates(files: list[str], most: int) -> list[str]:
    return [f"perhaps {suggestion}" for suggestion in suggest(files)[:most]]


def _channels(files: list[str]) -> Iterator[str]:
    """Name cases of nnU-Net whose channels have a file each."""
    channels = [match for path in files if (match := CHANNEL.fullmatch(path))]
    cases = Counter(match["case"] for match in channels)
    if cases and max(cases.values()) > 1:
        images, (case, count) = channels[0]["folder"], cases.most_common(1)[0]
        labels = images.removesuffix("imagesTr") + "labelsTr"
        yield (
            f"{images} has the form of nnU-Net with several channels, such as {count} of {case}; --image "
            f"'{images}/{{key}}_{{channel}}' --label '{labels}/{{key}}' makes them bands of one picture"
        )


def _lone_pair(files: list[str]) -> Iterator[str]:
    """Explain why an image and a label whose names share nothing are not a pair."""
    pictures = [path for path in files if path.lower().endswith(PICTURES)]
    if len(pictures) == 2 and not suggest_templates(files):
        yield (
            f"{' and '.join(pictures)} share no key in their names: rename them, such as images/1.png and "
            "labels/1.png, or list them in a table for --pairs"
        )


def _lists(files: list[str]) -> list[str]:
    return [
        f"perhaps --lists '{lists.text}', if its lines name images and labels"
        for lists in usual_lists(by_folder(files))
    ]


def _volumes(files: list[str]) -> Iterator[str]:
    """Count volumes, which are another source of rows."""
    if count := sum(path.lower().endswith(VOLUMES) for path in files):
        yield f"{counted(count, 'file')} {'is a volume' if count == 1 else 'are volumes'}: give this folder with --from"


def _unpackable(files: list[str]) -> Iterator[str]:
    """Count pictures of types that cannot be packed: they may be the images or labels."""
    suffixes = Counter(path[path.rfind(".") :].lower() for path in files if path.lower().endswith(OTHER_PICTURES))
    for suffix, count in sorted(suffixes.items()):
        yield f"{counted(count, 'file')} with the suffix {suffix} cannot be packed; {conversion(suffix)}"


def _contents(files: Iterable[str]) -> list[str]:
    """List the folders, each with the number of its files and an example."""
    folders: dict[str, list[str]] = {}
    for path in files:
        folder, _, name = path.rpartition("/")
        folders.setdefault(folder or ".", []).append(name)
    lines = [
        f"{folder}/  {counted(len(names), 'file')}, such as {names[0]}" for folder, names in sorted(folders.items())
    ]
    return first_of([UNWRITABLE.sub("?", line) for line in lines], MOST_FOLDERS, "folders") or ["nothing"]
