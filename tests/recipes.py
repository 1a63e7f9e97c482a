"""Recipes that tests make without a raw folder."""

from __future__ import annotations

from packer.decoding.rules import ImageRules
from packer.pixels.label_rules import LabelRules
from packer.pixels.resize import Geometry
from packer.recipe.field_rule import FieldRule
from packer.recipe.recipe import Recipe
from readers.contract.classes import ClassTable, SegClass
from readers.contract.fields import classes_field, picture_field

CLASSES = ClassTable((SegClass("a", values=(0,)), SegClass("b", values=(1,))))


def plain_recipe(geometry: Geometry, shard_bytes: int) -> Recipe:
    """Return a recipe of RGB images and labels of two classes, in the format npy."""
    image = FieldRule(picture_field("image", "|u1", geometry.size), ImageRules())
    label = FieldRule(classes_field("label", "index", CLASSES, geometry.size), LabelRules())
    return Recipe("npy", geometry, (image, label), shard_bytes, ("tool",))
