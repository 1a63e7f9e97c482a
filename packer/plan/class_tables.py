"""The class tables of fields other than the label."""

from __future__ import annotations

from packer.classes.load import load_class_table, named_classes
from packer.errors import UsageError
from packer.pixels.field_options import Classes, FieldOfClasses, FieldOptions, MultilabelField
from readers.contract.classes import ClassTable

BACKGROUNDS = ("background", "_background_", "unlabeled", "unlabelled", "void")
"""Categories, in any case, that mean: no object. The first one is the class that there is if no category says so."""


def table_of(field: FieldOfClasses) -> ClassTable:
    """Return the class table that a field names."""
    if field.classes is None:
        raise UsageError(f"--field {field.name}: needs classes: their names, their number, or a class table")
    table = load_class_table(None, table_or_values(field.classes))
    assert table is not None, "a table that is named is there"
    return table


def table_or_values(classes: Classes) -> str | ClassTable | None:
    """Return the classes as `load_class_table` takes them."""
    return named_classes(classes) if isinstance(classes, tuple) else classes


def parts_table(options: MultilabelField, label: ClassTable | None) -> ClassTable:
    """Return the classes of overlapping objects: their own, or the classes of the label without the background."""
    if options.classes is not None or label is None:
        return table_of(options)
    classes = tuple(seg_class for seg_class in label.classes if seg_class.name.casefold() not in BACKGROUNDS)
    if not classes:
        raise UsageError(f"--field {options.name}: the label has no class of objects")
    return ClassTable(classes)


def classes_of(field: FieldOptions) -> tuple[str, ...]:
    """Return the names of the classes that have a file each; only the kind multilabel has these."""
    return table_of(field).names if isinstance(field, MultilabelField) else ()
