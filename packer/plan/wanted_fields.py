"""The fields that a build is asked for: image and label as the options of a build describe them, and further fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

from packer.classes.load import load_class_table, named_classes
from packer.errors import UsageError
from packer.pixels.field_options import CLASS, ClassesField, FieldOptions, MultilabelField, PictureField
from readers.contract.classes import ClassTable
from readers.contract.field_entry import MOST_FIELDS
from readers.contract.fields import IMAGE, LABEL
from readers.contract.kinds import CLASSES, PICTURE

KINDS = {IMAGE: PICTURE, LABEL: CLASSES}
"""The kinds of the fields that a build has if none is named."""


def take_templates(values: MutableMapping[str, Any]) -> None:
    """Set --image and --label, which pair the files, to the templates of the fields with these names."""
    for field in values.get("named", ()):
        if field.kind != KINDS.get(field.name, field.kind):
            kind = KINDS[field.name]
            raise UsageError(f"--field {field.name}: is always of the kind {kind}; give the field another name")
        if field.name not in KINDS or not field.files:
            continue
        if values.setdefault(field.name, field.files) != field.files:
            raise UsageError(f"--field {field.name}: has other files than --{field.name}; give one of them")


def has_label(named: Sequence[FieldOptions]) -> bool:
    """Return whether rows have a label: not if `image` is among the named fields and `label` is not."""
    names = {field.name for field in named}
    return LABEL in names or IMAGE not in names


def further_files(named: Sequence[FieldOptions]) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Return the name, the template and the classes with a file each of the fields besides image and label."""
    return tuple(
        (field.name, field.files, classes_of(field) if CLASS in field.files else ())
        for field in named
        if field.name not in (IMAGE, LABEL)
    )


def table_of(field: ClassesField | MultilabelField) -> ClassTable:
    """Return the class table of a field other than the label."""
    if field.classes is None:
        raise UsageError(f"--field {field.name}: needs classes: their names, their number, or a class table")
    if isinstance(field.classes, tuple):
        return named_classes(field.classes)
    table = load_class_table(None, field.classes)
    assert table is not None, "a table that is named is there"
    return table


def classes_of(field: FieldOptions) -> tuple[str, ...]:
    """Return the names of the classes that have a file each; only the kind multilabel has these."""
    return table_of(field).names if isinstance(field, MultilabelField) else ()


def wanted_fields(values: Mapping[str, Any]) -> tuple[FieldOptions, ...]:
    """Return the fields in their order. If `image` is among the named ones, these are all."""
    named: Sequence[FieldOptions] = values["named"]
    fields = {field.name: field for field in named}
    if len(fields) < len(named):
        twice = next(name for name, count in Counter(field.name for field in named).items() if count > 1)
        raise UsageError(f"--field {twice}: is named twice")
    first: list[FieldOptions] = [fields.pop(IMAGE)] if IMAGE in fields else [_image(values)]
    if LABEL in fields:
        first.append(fields.pop(LABEL))
    elif has_label(named):
        first.append(_label(values))
    if len(first) + len(fields) > MOST_FIELDS:
        raise UsageError(f"--field: {len(first) + len(fields)} fields; a pack has at most {MOST_FIELDS}")
    return *first, *fields.values()


def _image(values: Mapping[str, Any]) -> PictureField:
    return PictureField(
        bands=values["bands"],
        range=values["image_range"],
        alpha=values["alpha"],
        dtype=values["image_dtype"],
        decode=values["decode"],
    )


def _label(values: Mapping[str, Any]) -> ClassesField:
    return ClassesField(
        form=values["labels"],
        codec=values["label_codec"],
        unknown=values["unknown"],
        threshold=values["threshold"],
        divisor=values["divisor"],
    )
