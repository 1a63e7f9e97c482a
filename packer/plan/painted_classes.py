"""The classes of labels that are painted from annotations, and the number that each category gets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from packer.classes.ignore import with_ignored
from packer.classes.load import load_class_table, named_classes
from packer.errors import InputError, Problem, UsageError, counted, did_you_mean
from packer.pixels.field_options import ClassesField, FieldOptions, IdsField, MultilabelField
from packer.pixels.label_rules import AUTO, INDEX
from packer.plan.class_tables import BACKGROUNDS, parts_table, table_or_values
from packer.plan.field_choice import FieldChoice
from packer.plan.found_rows import FoundRows
from packer.plan.problems import nothing_painted
from packer.sources.annotated.annotated import AnnotatedSource, Brush, PaintedField
from readers.contract.classes import ClassTable, SegClass
from readers.contract.fields import LABEL

OUTLINES = "a label needs outlines"
NEVER = "__ignore__"
"""The category of LabelMe whose pixels are ignored."""
Objects = Mapping[str, tuple[int, str]]
"""The number of objects of each category, and a file that has some."""


def choose_classes(found_rows: FoundRows, choice: FieldChoice) -> FoundRows:
    """Return the rows with the classes and the rules of painting. Categories that are in no class are refused."""
    assert isinstance(found_rows.source, AnnotatedSource), "only annotations have painted fields"
    if choice.label.codec not in (AUTO, INDEX):
        raise UsageError(f"--label-codec {choice.label.codec}: reads label pictures; annotations are painted")
    painted = [(number, field) for number, field in enumerate(choice.all) if number and not field.files]
    source = replace(found_rows.source, painted=tuple(PaintedField(number, field.kind) for number, field in painted))
    if choice.reproject:
        source = source.reprojected()
    objects, sizes, outlines, lost = source.count(found_rows.refs)
    every = _numbered(
        load_class_table(found_rows.raw, table_or_values(choice.label.classes)) or _table(source.names, objects)
    )
    dropped = {name for name in choice.ignore if name in objects and name not in every.names}
    classes = with_ignored(every, [text for text in choice.ignore if text not in dropped])
    fields = tuple(PaintedField(number, field.kind, _planes(field, classes)) for number, field in painted)
    elsewhere = frozenset(name for field in fields for name in field.planes) - set(every.names)
    numbers = _numbers(every, classes, dropped)
    unknown = {name: objects[name] for name in sorted(objects) if name not in numbers and name not in elsewhere}
    refusal = None
    if unknown and choice.label.unknown == "ignore":
        numbers |= dict.fromkeys(unknown, every.ignore_index)
    elif unknown:
        refusal = _refusal(unknown, every)
    if lost and not outlines:
        refusal = nothing_painted({f"objects {reason}": count for reason, count in lost.items()}, OUTLINES)
    rules = choice.paint, choice.crowd, elsewhere
    brush = Brush(numbers, _uncovered(every), every.ignore_index, *rules)
    has_label = any(field.name == LABEL for _, field in painted)
    return replace(
        found_rows,
        source=replace(source, brush=brush, painted=fields, sizes=sizes),
        classes=classes if has_label else None,
        problems=found_rows.problems if refusal is None else (*found_rows.problems, refusal),
    )


def _planes(options: FieldOptions, classes: ClassTable) -> tuple[str, ...]:
    """Return the categories that a field has a plane for. Raise UsageError if it cannot be painted."""
    if isinstance(options, MultilabelField):
        return parts_table(options, classes).names
    if options.name != LABEL and not isinstance(options, IdsField):
        raise UsageError(
            f"--field {options.name}: needs the template of its files, such as {options.name}/{{key}}.png; "
            "annotations become the kinds ids and multilabel"
        )
    assert isinstance(options, (ClassesField, IdsField))
    return ()


def _table(names: Iterable[str], objects: Objects) -> ClassTable:
    """Return the classes of all categories: the background, the format's own list, others by name."""
    categories = list(dict.fromkeys((*names, *sorted(objects))))
    categories = [name for name in categories if name != NEVER]
    background = next((name for name in categories if name.casefold() in BACKGROUNDS), BACKGROUNDS[0])
    return named_classes([background, *(name for name in categories if name != background)])


def _numbered(table: ClassTable) -> ClassTable:
    """Return the classes with their place in the table as their value, and the number of what is ignored."""
    classes = (SegClass(seg_class.name, seg_class.colour, (number,)) for number, seg_class in enumerate(table.classes))
    return ClassTable(tuple(classes), (table.ignore_index,))


def _uncovered(every: ClassTable) -> int:
    """Return the number of pixels that no object covers: ignored, if no class is the background."""
    backgrounds = (seg_class.values[0] for seg_class in every.classes if seg_class.name.casefold() in BACKGROUNDS)
    return next(backgrounds, every.ignore_index)


def _numbers(every: ClassTable, classes: ClassTable, dropped: Iterable[str]) -> dict[str, int]:
    """Return the number of each category that is in a class, or ignored."""
    return {
        **dict.fromkeys(BACKGROUNDS, _uncovered(every)),
        **dict.fromkeys((*every.names, *dropped, NEVER), every.ignore_index),
        **{seg_class.name: seg_class.values[0] for seg_class in classes.classes},
    }


def _refusal(unknown: Objects, every: ClassTable) -> InputError:
    problems = [
        Problem(
            f"{counted(count, 'object')} of the category {name!r}{did_you_mean(name, every.names)}",
            "",
            (file,),
            kind=name,
        )
        for name, (count, file) in unknown.items()
    ]
    return InputError(
        f"annotations have categories that are in no class: {len(unknown)}; add them to --classes, or ignore "
        "their objects with --ignore NAME or --unknown ignore",
        problems,
    )
