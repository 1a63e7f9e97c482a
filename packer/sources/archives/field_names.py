"""The names that images and labels have in tables and records."""

from __future__ import annotations

from collections.abc import Sequence

from packer.errors import BadPair, first_of
from packer.sources.container import Names

IMAGES = (
    *("image", "images", "img", "picture", "photo", "rgb", "pixel_values", "jpg", "png", "image/encoded", "image_raw"),
)
LABELS = (
    *("label", "labels", "mask", "masks", "annotation", "annotations", "segmentation", "segmentation_mask", "seg"),
    *("labelmap", "gt", "target", "seg.png", "label.png", "mask.png", "label/encoded", "mask/encoded", "label_raw"),
    *("mask_raw", "image/segmentation/class/encoded"),
)
IMAGE_WORDS = "images?|imgs?|rgb|pictures?|photos?"
LABEL_WORDS = "labels?|masks?|seg|segmentations?|annotations?|gt|targets?"
"""Words in keys and in names of files that say what these are, as patterns."""
MOST_LISTED = 12


def image_and_label(names: Names, pictures: Sequence[str], every: Sequence[str], noun: str) -> tuple[str, str]:
    """Return the names of image and label: those that are given, or those that say it, of the names of pictures."""
    listed = f"it has {', '.join(first_of(every, MOST_LISTED))}"
    for option, name in (("image", names.image), ("label", names.label)):
        if name is not None and name not in pictures:
            raise BadPair(f"has no {noun} of pictures --{option} {name}; {listed}")
    labels = [names.label] if names.label else [name for name in pictures if name.lower() in LABELS]
    images = [names.image] if names.image else [name for name in pictures if name.lower() in IMAGES]
    if len(labels) == 1 and not images:
        images = [name for name in pictures if name not in labels]
    if len(images) == 1 and not labels:
        labels = [name for name in pictures if name not in images]
    if len(images) != 1 or len(labels) != 1 or images == labels:
        raise BadPair(f"does not say which {noun}s are image and label; name them: --image, --label; {listed}")
    return images[0], labels[0]
