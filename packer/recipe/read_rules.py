"""`ReadRules`: the rules for the images and the labels of a recipe."""

from __future__ import annotations

from dataclasses import dataclass

from packer.decoding.rules import ImageRules
from packer.pixels.label_rules import LabelRules


@dataclass(frozen=True)
class ReadRules:
    """The rules for images and those for labels."""

    image: ImageRules
    label: LabelRules
