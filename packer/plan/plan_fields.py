"""Plan the fields of a build: their class tables, and the form that most files have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from packer.classes.load import load_class_table
from packer.errors import BadPair, InputError, UsageError
from packer.pixels.field_options import FieldOfClasses, FieldOptions, MultilabelField
from packer.pixels.label_rules import BINARY, BINARY_CLASSES, IGNORE, LabelRules
from packer.plan.class_tables import parts_table, table_of, table_or_values
from packer.plan.field_choice import FieldChoice
from packer.plan.fields.by_kind import planned
from packer.plan.fields.planned_field import PlannedField
from packer.plan.found_rows import FoundRows
from packer.plan.problems import Problems
from packer.plan.sample import SAMPLE_SIZE, spread_indices
from readers.contract.classes import ClassTable
from readers.contract.fields import LABEL, RAW, VOLUME


@dataclass(frozen=True)
class PlannedFields:
    """The fields of a build. They are incomplete if the class table or another fact is not known."""

    fields: tuple[PlannedField, ...]
    label: int
    """The number of the label among the fields; 0 if there is none."""
    classes: ClassTable | None
    """The classes of the label."""
    lacks_table: bool
    """True if nothing names the classes of the label."""
    problems: tuple[InputError, ...]

    @property
    def are_known(self) -> bool:
        """True if a recipe can be made of the fields."""
        return bool(self.fields) and bool(self.label) == (self.classes is not None)


def plan_fields(found_rows: FoundRows, choice: FieldChoice) -> PlannedFields:
    """Return the fields of a build. A sample of headers decides the form of files that are stored unchanged."""
    names = [field.name for field in found_rows.packed or choice.all]
    label = names.index(LABEL) if LABEL in names else 0
    problems, table = Problems(), found_rows.classes if label else None
    if label and table is None:
        table = problems.attempt(_label_table, found_rows, choice)
    lacks_table = bool(label) and table is None and not problems.errors
    fields = problems.attempt(_planned_fields, found_rows, choice, table) or ()
    return PlannedFields(fields, label, table, lacks_table, tuple(problems.errors))


def _label_table(found_rows: FoundRows, choice: FieldChoice) -> ClassTable | None:
    """Return the classes of the label; None if nothing names them."""
    named = table_or_values(choice.label.classes) or found_rows.named()
    table = load_class_table(found_rows.raw, named, choice.ignore)
    return BINARY_CLASSES if table is None and choice.label.codec == BINARY else table


def _planned_fields(found_rows: FoundRows, choice: FieldChoice, table: ClassTable | None) -> tuple[PlannedField, ...]:
    if found_rows.packed:
        from packer.plan.packed_fields import packed_fields  # other builds do not need it

        fields: Sequence[PlannedField] = packed_fields(found_rows, choice)
    else:
        fields = _fields_of_files(found_rows, choice, table)
    encodings = dict(choice.encode)
    if twice := [name for name, count in Counter(name for name, _ in choice.encode).items() if count > 1]:
        raise UsageError(f"--encode {twice[0]}: is named twice; give each field one encoding")
    names = [field.name for field in fields]
    if unknown := encodings.keys() - set(names):
        name = min(unknown)
        raise UsageError(f"--encode {name}: there is no field {name!r}; the fields are {', '.join(names)}")
    sides = VOLUME if found_rows.source.gives_volumes else None
    if sides and any(isinstance(field.read, LabelRules) and field.read.no_data == IGNORE for field in fields):
        raise UsageError("--nodata-label ignore: is for pictures, and the rows are volumes; leave it out")
    return tuple(field.encoded(encodings.get(field.name, RAW), sides) for field in fields)


def _fields_of_files(found_rows: FoundRows, choice: FieldChoice, table: ClassTable | None) -> Sequence[PlannedField]:
    tables = [_table(options, table, found_rows.source.is_painted) for options in choice.all]
    files = found_rows.files
    fields = [planned(options, own_table, files) for options, own_table in zip(choice.all, tables, strict=True)]
    for number, field in enumerate(fields):
        if field.needs_header:
            fields[number] = _as_in_most(found_rows, number, field)
    return fields


def _table(options: FieldOptions, table: ClassTable | None, is_painted: bool) -> ClassTable | None:
    if is_painted and isinstance(options, MultilabelField) and not options.files:
        return parts_table(options, table)
    if options.name == LABEL or not isinstance(options, FieldOfClasses):
        return table
    return table_of(options)


def _as_in_most(found_rows: FoundRows, number: int, field: PlannedField) -> PlannedField:
    """Return a field in the form of the files of a sample: the form of most, or the largest.

    The sample is one of all rows, so that the rows of an earlier build do not decide, and no single odd file does.
    """
    every = found_rows.refs
    refs = [ref for ref in (every[index] for index in spread_indices(len(every), SAMPLE_SIZE)) if ref.parts[number]]
    refs = refs or list(islice((ref for ref in every if ref.parts[number]), SAMPLE_SIZE))
    forms = Counter[PlannedField]()
    for ref, heads in zip(refs, found_rows.source.heads(refs), strict=True):
        if not isinstance(heads, str):
            with suppress(BadPair):
                forms[field.as_in(heads[sum(map(bool, ref.parts[:number]))])] += 1
    return field.most(forms)
