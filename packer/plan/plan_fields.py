"""Plan the fields of a build: their class tables, and the form that most files have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice

from packer.errors import BadPair, UsageError
from packer.pixels.field_options import FieldOfClasses, FieldOptions, MultilabelField
from packer.plan.check_labels import SAMPLE_SIZE
from packer.plan.fields.by_kind import planned
from packer.plan.fields.planned_field import PlannedField
from packer.plan.request import Request
from packer.plan.sample import spread_indices
from packer.plan.wanted_fields import parts_table, table_of
from packer.sources.open_source import FoundRows
from readers.contract.classes import ClassTable
from readers.contract.fields import LABEL, RAW, VOLUME


def plan_fields(request: Request, found: FoundRows, table: ClassTable | None) -> tuple[PlannedField, ...]:
    """Return the fields of a build. `table` is that of the label. A sample decides what is stored."""
    if found.packed:
        from packer.plan.packed_fields import packed_fields  # other builds do not need it

        fields: Sequence[PlannedField] = packed_fields(request, found.packed)
    else:
        fields = _fields_of_files(request, found, table)
    encodings = dict(request.encode)
    if twice := [name for name, count in Counter(name for name, _ in request.encode).items() if count > 1]:
        raise UsageError(f"--encode {twice[0]}: is named twice; give each field one encoding")
    if unknown := encodings.keys() - {field.name for field in fields}:
        name = min(unknown)
        there = [field.name for field in fields]
        raise UsageError(f"--encode {name}: there is no field {name!r}; the fields are {', '.join(there)}")
    sides = VOLUME if found.source.gives_volumes else None
    return tuple(field.encoded(encodings.get(field.name, RAW), sides) for field in fields)


def _fields_of_files(request: Request, found: FoundRows, table: ClassTable | None) -> Sequence[PlannedField]:
    tables = [_table(options, table, found.source.is_painted) for options in request.fields]
    fields = [
        planned(options, request.max_pixels, each, request.slide_level)
        for options, each in zip(request.fields, tables, strict=True)
    ]
    for number, field in enumerate(fields):
        if field.needs_header:
            fields[number] = _as_in_most(found, number, field)
    return fields


def _table(options: FieldOptions, table: ClassTable | None, is_painted: bool) -> ClassTable | None:
    if is_painted and isinstance(options, MultilabelField) and not options.files:
        return parts_table(options, table)
    if options.name == LABEL or not isinstance(options, FieldOfClasses):
        return table
    return table_of(options)


def _as_in_most(found: FoundRows, number: int, field: PlannedField) -> PlannedField:
    """Return a field in the form of the files of a sample: that of most, or the largest.

    The sample is one of all rows, so that the rows of an earlier build do not decide, and no single odd file does.
    """
    every = found.refs
    refs = [ref for ref in (every[index] for index in spread_indices(len(every), SAMPLE_SIZE)) if ref.parts[number]]
    refs = refs or list(islice((ref for ref in every if ref.parts[number]), SAMPLE_SIZE))
    forms = Counter[PlannedField]()
    for ref, heads in zip(refs, found.source.heads(refs), strict=True):
        if not isinstance(heads, str):
            with suppress(BadPair):
                forms[field.as_in(heads[sum(map(bool, ref.parts[:number]))])] += 1
    return field.most(forms)
