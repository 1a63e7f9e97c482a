"""The checks before packs are mixed: shares, fields and classes must fit together. All problems are named at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from readers.class_change import ClassChange, ClassNames
from readers.contract.classes import ClassTable, SegClass
from readers.contract.fields import LABEL, Field
from readers.contract.kinds import CLASSES, FLAG
from readers.dataset import SegDataset

MOST_PARTS = 1_000_000
"""A share is taken as a fraction with at most this denominator, so that 0.3 is 3/10 and 1 / 3 is a third."""


def unfit(name: str, dataset: SegDataset) -> list[str]:
    """Return why rows of a data set cannot be in batches."""
    transform = [f"{name}: has a transform for samples; open it without"] if dataset.transform is not None else []
    return [*transform, *([] if len(dataset) else [f"{name}: has no rows"])]


def share_problems(shares: Mapping[str, Any]) -> list[str]:
    problems = []
    for name, share in shares.items():
        is_number = isinstance(share, (int, float, Fraction)) and not isinstance(share, bool)
        if not is_number or not (math.isfinite(share) and share * MOST_PARTS >= 1):
            problems.append(f"{name}: the share {share!r} is no number from {1 / MOST_PARTS:g} on")
    return problems


def field_problems(datasets: Mapping[str, SegDataset]) -> list[str]:
    """Return in which fields the packs differ from the first."""
    first, *others = datasets
    expected = {field.name: _facts(field) for field in datasets[first].fields}
    problems = []
    for name in others:
        fields = {field.name: _facts(field) for field in datasets[name].fields}
        if list(fields) != list(expected):
            problems.append(f"{name}: the fields are {', '.join(fields)}, and {', '.join(expected)} of {first}")
            continue
        for field, facts in fields.items():
            problems += [
                f"{name}: {field} has {fact} {text}, and {expected[field].get(fact, 'none')} in {first}"
                for fact, text in facts.items()
                if text != expected[field].get(fact)
            ]
    return problems


def _facts(field: Field) -> dict[str, str]:
    """Return what must be equal for the rows of a field to be in one array. Labels are changed, so they may differ."""
    facts = {"the kind": field.kind, "sides": str(len(field.sides))}
    if field.kind == FLAG or field.name == LABEL:
        return facts
    facts |= {"the dtype": field.dtype, "planes": str(field.delivered_planes), "the range": str(field.range)}
    facts |= {"the number of pixels without data": str(field.fill) if field.no_data else "none"}
    if field.kind == CLASSES and field.classes is not None:
        facts["classes"] = ", ".join(field.classes.names)
    return facts


def common_classes(
    classes: str | ClassTable | Sequence[str] | None, datasets: Mapping[str, SegDataset]
) -> tuple[ClassTable, list[str]]:
    """Return the common list of classes, and what is wrong with it."""
    first = next(iter(datasets.values())).classes
    if classes is None:
        return first, []
    if isinstance(classes, str):
        is_pack = classes in datasets
        return (datasets[classes].classes if is_pack else first), [] if is_pack else [
            f"classes={classes!r}: {one_of(datasets)}"
        ]
    if isinstance(classes, ClassTable):
        return classes, []
    names = list(classes)
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        return first, [f"classes={classes!r}: expected the name of a pack, a ClassTable, or different names of classes"]
    return ClassTable(tuple(map(SegClass, names))), []


def changes_of(
    datasets: Mapping[str, SegDataset], common: ClassTable, mapping: Mapping[str, ClassNames]
) -> tuple[dict[str, ClassChange | None], list[str]]:
    """Return the change of the labels of each pack, and what is wrong with the mapping."""
    if not isinstance(mapping, Mapping):
        return {}, [f"mapping={mapping!r}: expected names of classes by the name of the pack"]
    problems = [f"mapping names {name!r}: {one_of(datasets)}" for name in mapping if name not in datasets]
    changes: dict[str, ClassChange | None] = {}
    for name, dataset in datasets.items():
        names = mapping.get(name, {})
        if not isinstance(names, Mapping):
            problems.append(f"{name}: mapping={names!r}: expected the name of a class, or None, by the name of a class")
        elif dataset.label is not None:
            changes[name], wrong = ClassChange.of(dataset.classes, common, names)
            problems += [f"{name}: {problem}" for problem in wrong]
        else:
            changes[name] = None
    return changes, problems


def ending(end: str | int, names: Sequence[str]) -> str | None:
    """Return the name of the pack that ends an epoch; None if there is none of this name or number."""
    if isinstance(end, str):
        return end if end in names else None
    return names[end] if type(end) is int and 0 <= end < len(names) else None


def one_of(datasets: Mapping[str, SegDataset]) -> str:
    return f"the packs are {', '.join(datasets)}"
