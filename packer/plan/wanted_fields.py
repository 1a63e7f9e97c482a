"""The fields that a build is asked for: image and label as the options of a build describe them, and further fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import fields
from typing import Any

from packer.classes.load import load_class_table, named_classes
from packer.errors import UsageError
from packer.pixels.field_options import BY_KIND, CLASS, FieldOfClasses, FieldOptions, MultilabelField
from readers.contract.classes import ClassTable
from readers.contract.field_entry import MOST_FIELDS
from readers.contract.fields import IMAGE, LABEL
from readers.contract.kinds import CLASSES, PICTURE

KINDS = {IMAGE: PICTURE, LABEL: CLASSES}
"""The kinds of the fields that a build has if none is named."""
OPTIONS = {
    IMAGE: {
        "files": "image",
        "bands": "bands",
        "range": "image_range",
        "alpha": "alpha",
        "dtype": "image_dtype",
        "decode": "decode",
    },
    LABEL: {
        "files": "label",
        "classes": "classes",
        "form": "labels",
        "codec": "label_codec",
        "unknown": "unknown",
        "threshold": "threshold",
        "divisor": "divisor",
    },
}
"""The option of a build that each option of the fields `image` and `label` sets."""
BACKGROUNDS = ("background", "_background_", "unlabeled", "unlabelled", "void")
"""Categories, in any case, that mean: no object. The first one is the class that there is if no category says so."""


def take_options(values: MutableMapping[str, Any]) -> None:
    """Set the options of a build that the named fields `image` and `label` set. Both must not say different things."""
    for field in values.get("named", ()):
        if field.kind != KINDS.get(field.name, field.kind):
            kind = KINDS[field.name]
            raise UsageError(f"--field {field.name}: is always of the kind {kind}; give the field another name")
        defaults = {each.name: each.default for each in fields(field)}
        for name, option in OPTIONS.get(field.name, {}).items():
            value, general = getattr(field, name), values.get(option)
            if value == defaults[name] or str(value) == str(general):
                continue
            if general is not None and str(general) != str(defaults[name]):
                flag = option.replace("_", "-")
                raise UsageError(f"--field {field.name}: has another {name} than --{flag} {general}; give one of them")
            values[option] = named_classes(value) if isinstance(value, tuple) and option == "classes" else value


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


def table_of(field: FieldOfClasses) -> ClassTable:
    """Return the class table of a field other than the label."""
    if field.classes is None:
        raise UsageError(f"--field {field.name}: needs classes: their names, their number, or a class table")
    if isinstance(field.classes, tuple):
        return named_classes(field.classes)
    table = load_class_table(None, field.classes)
    assert table is not None, "a table that is named is there"
    return table


def parts_table(options: MultilabelField, label: ClassTable | None) -> ClassTable:
    """Return the classes of overlapping objects: their own, or those of the label without the background."""
    if options.classes is not None or label is None:
        return table_of(options)
    classes = tuple(each for each in label.classes if each.name.casefold() not in BACKGROUNDS)
    if not classes:
        raise UsageError(f"--field {options.name}: the label has no class of objects")
    return ClassTable(classes)


def classes_of(field: FieldOptions) -> tuple[str, ...]:
    """Return the names of the classes that have a file each; only the kind multilabel has these."""
    return table_of(field).names if isinstance(field, MultilabelField) else ()


def wanted_fields(values: Mapping[str, Any]) -> tuple[FieldOptions, ...]:
    """Return the fields in their order. If `image` is among the named ones, these are all.

    Image and label are as the options of the build say, which `take_options` set.
    """
    named: Sequence[FieldOptions] = values["named"]
    by_name = {field.name: field for field in named}
    if len(by_name) < len(named):
        twice = next(name for name, count in Counter(field.name for field in named).items() if count > 1)
        raise UsageError(f"--field {twice}: is named twice")
    first = (IMAGE, LABEL) if has_label(named) else (IMAGE,)
    others = (field for name, field in by_name.items() if name not in KINDS)
    wanted = (*(_general(name, values) for name in first), *others)
    if len(wanted) > MOST_FIELDS:
        raise UsageError(f"--field: {len(wanted)} fields; a pack has at most {MOST_FIELDS}")
    return wanted


def _general(name: str, values: Mapping[str, Any]) -> FieldOptions:
    """Return the field `image` or `label` as the options of the build say. Its files and classes are elsewhere."""
    options = {each: values[option] for each, option in OPTIONS[name].items() if each not in ("files", "classes")}
    return BY_KIND[KINDS[name]](name, **options)
