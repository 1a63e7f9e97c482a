"""The kinds of fields that can be planned, and what is asked of all fields of a row."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from packer.decoding.header import Header
from packer.decoding.raw_file import naming
from packer.decoding.rules import FileRules, ImageRules
from packer.pixels.field_options import FieldOptions, naming_option
from packer.pixels.label_rules import LabelRules
from packer.plan.fields.planned_field import PlannedField
from packer.recipe.read_rules import ReadRules
from packer.recipe.row_ref import RowRef
from readers.contract.classes import ClassTable
from readers.contract.fields import IMAGE, LABEL


def planned(options: FieldOptions, table: ClassTable | None, files: FileRules) -> PlannedField:
    """Return a field before its headers are known, and perhaps before its class table is.

    The module of this folder that has the name of the kind is imported now: most builds need two of them.
    """
    kind = import_module(f"packer.plan.fields.{options.kind}")
    field: PlannedField = kind.plan(options, table, files)
    return field


def check_headers(fields: Sequence[PlannedField], ref: RowRef, heads: Sequence[Header]) -> None:
    """Raise BadPair if a shard would certainly reject a row with these headers."""
    headers = iter(heads)
    for field, part in zip(fields, ref.parts, strict=False):
        if part:
            with naming(part), naming_option(field.name):
                field.check(next(headers))


def read_rules(fields: Sequence[PlannedField]) -> ReadRules | None:
    """Return the known rules for images and labels."""
    by_name = {field.name: field.read for field in fields}
    image, label = by_name.get(IMAGE), by_name.get(LABEL, LabelRules())
    return ReadRules(image, label) if isinstance(image, ImageRules) and isinstance(label, LabelRules) else None
