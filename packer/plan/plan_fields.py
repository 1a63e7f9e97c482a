"""Plan the fields of a build: their class tables, and the form that the first files show."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice

from packer.errors import BadPair
from packer.pixels.field_options import ClassesField, FieldOptions, MultilabelField
from packer.plan.packed_fields import packed_fields
from packer.plan.request import Request
from packer.plan.wanted_fields import table_of
from packer.recipe.planned_field import PlannedField, planned
from packer.sources.open_source import FoundRows
from readers.contract.classes import ClassTable
from readers.contract.fields import LABEL

FIRST = 16
"""The rows whose headers may decide what is stored, until one is good."""


def plan_fields(request: Request, found: FoundRows, table: ClassTable | None) -> tuple[PlannedField, ...]:
    """Return the fields of a build. `table` is that of the label. The first files decide what theirs are stored as."""
    if found.packed:
        return packed_fields(request, found.packed)
    fields = [planned(options, request.max_pixels, _table(options, table)) for options in request.fields]
    for number, field in enumerate(fields):
        if field.needs_header:
            fields[number] = _as_in_first(found, number, field)
    return tuple(fields)


def _table(options: FieldOptions, table: ClassTable | None) -> ClassTable | None:
    if options.name == LABEL or not isinstance(options, (ClassesField, MultilabelField)):
        return table
    return table_of(options)


def _as_in_first(found: FoundRows, number: int, field: PlannedField) -> PlannedField:
    """Return a field in the form of the first of its files that can be packed."""
    refs = list(islice((ref for ref in found.refs if ref.parts[number]), FIRST))
    for ref, heads in zip(refs, found.source.heads(refs), strict=True):
        if not isinstance(heads, str):
            with suppress(BadPair):
                return field.as_in(heads[sum(map(bool, ref.parts[:number]))])
    return field
