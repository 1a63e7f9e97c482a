"""Find the usual suffixes of file names in a known layout, such as `a.png` + `a_L.png`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from packer.pairs.folder_names import Folders
from packer.pairs.layouts import Layout, SplitKey
from packer.pairs.match import match_files
from packer.pairs.template import Template

LABEL_SUFFIXES = ("", "_L", "_label", "_labels", "_mask", "_masks", "_gt", "_seg", "_annotation")
IMAGE_SUFFIXES = ("", "_img", "_image")

FIRST_FILES = 10
"""The files of each folder that are compared first. If any have the same key, no other file is compared."""


def with_suffixes(layout: Layout, folders: Folders) -> Layout:
    """If no image and label share a key, try the usual suffixes of file names."""
    for files in ({folder: names[:FIRST_FILES] for folder, names in folders.items()}, folders):
        matches = match_files(files, layout)
        if not matches.images.keys().isdisjoint(matches.labels):
            return layout
    label_keys = {suffix: _without(suffix, matches.labels) for suffix in LABEL_SUFFIXES}
    for image_suffix in IMAGE_SUFFIXES:
        image_keys = _without(image_suffix, matches.images)
        for label_suffix in LABEL_SUFFIXES:
            if image_keys & label_keys[label_suffix]:
                return replace(
                    layout,
                    image=Template(layout.image.text + image_suffix),
                    label=Template(layout.label.text + label_suffix),
                )
    return layout


def _without(suffix: str, keys: Iterable[SplitKey]) -> set[SplitKey]:
    """Return the keys that end with a suffix, without this suffix."""
    return {(split, key.removesuffix(suffix)) for split, key in keys if key.endswith(suffix) and key != suffix}
