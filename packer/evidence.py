"""Evidence: which way of reading the labels of a folder its pixels speak for, and what the user must decide."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from packer.class_table import numbered_classes
from packer.errors import UsageError
from packer.labels import (
    ADE20K,
    AS_THE_TABLE_SAYS,
    AUTO,
    BINARY,
    BINARY_CLASSES,
    COLOUR,
    DIVISORS,
    INDEX,
    INSTANCE,
    LabelRules,
    settle,
)
from packer.lookup import UNKNOWN, Lookup
from packer.survey import LabelSurvey
from readers.contract.classes import ClassTable, SegClass

SOFT_SHARE = 0.9
"""Labels of which so many pixels are the darkest or the brightest value are binary ones with soft edges."""
IGNORE_VALUE = 255
MOST_LISTED = 12
MOST_CLASSES_GUESSED = 256


@dataclass(frozen=True)
class Reading:
    """A way to read labels: the rules and the classes, why, and in `doubts` what the user must decide."""

    rules: LabelRules
    classes: ClassTable | None
    why: tuple[str, ...]
    doubts: tuple[str, ...] = ()


def read_by_table(
    labels: LabelSurvey, table: ClassTable, source: str, rules: LabelRules = AS_THE_TABLE_SAYS
) -> Reading:
    """How labels are read by a class table that is given."""
    try:
        rules = settle(rules, table)
    except UsageError as error:
        return Reading(rules, table, (), (str(error),))
    if rules.codec not in (AUTO, INDEX, COLOUR):
        return Reading(rules, table, (f"--label-codec {rules.codec}",))
    why, doubts = [], []
    as_values = rules.codec == INDEX or (rules.codec == AUTO and not labels.colours)
    counts = labels.values if as_values or not labels.colours else labels.colours
    known = known_pixels(counts, table, by_colour=not as_values)
    if known:
        share = 100 * known.total() / counts.total()
        what = "values" if counts is labels.values else "colours"
        why.append(f"{len(known)} of {len(counts)} {what} are in {source} ({share:.2f} % of the pixels)")
    strays = counts - known
    if strays:
        named = listed(strays, counts is labels.colours)
        doubts.append(f"of no class: {named}; add to {source}, --ignore, or --unknown ignore")
    if rules.codec == INDEX and labels.moving:
        doubts.append(_moving(labels))
    return Reading(rules, table, tuple(why), tuple(doubts))


def known_pixels(counts: Counter[int], table: ClassTable, by_colour: bool) -> Counter[int]:
    """The counts of those values or colours that a table has; gray v is the colour (v,v,v) too."""
    lookup, codes = Lookup(table), np.array(sorted(counts), np.uint32)
    if not by_colour:
        index = lookup.values(codes.astype(np.uint16))
    elif len(codes) and codes[-1] < 256:
        index = lookup.colours(codes.astype(np.uint8)[None])[0]
    else:
        parts = codes[:, None] >> np.array([0, 8, 16], np.uint32) & 0xFF
        index = lookup.colours(parts.astype(np.uint8)[None])[0]
    return Counter({code: counts[code] for code in codes[index != UNKNOWN].tolist()})


def read_without_table(labels: LabelSurvey) -> Reading:
    """A reading from the pixels alone: a proposal, with names to be replaced by better ones."""
    if any(kind.startswith("jpeg") for kind in labels.kinds):
        why = "JPEG labels are blurred by their compression: only binary with a threshold can be read"
        return Reading(LabelRules(BINARY, threshold=128), BINARY_CLASSES, (why,))
    if labels.values:
        return _numbers(labels)
    if labels.colours:
        return _colours(labels)
    return Reading(LabelRules(), None, (), ("no label could be looked into",))


def _colours(labels: LabelSurvey) -> Reading:
    """RGB labels."""
    colours = labels.colours
    if _is_ade20k(colours):
        why = f"red is a multiple of 10 in all {len(colours)} colours, and blue counts: the full ADE20K's numbers"
        values = sorted({(code & 255) // 10 * 256 + (code >> 8 & 255) for code in colours})
        return Reading(LabelRules(ADE20K), _of_values(values), (why,), ("name the classes that are wanted",))
    if labels.too_many or len(colours) > MOST_CLASSES_GUESSED:
        doubt = f"{len(colours)} colours or more are no classes, edges may be blurred; the commonest: "
        doubts = (doubt + listed(colours, True), "give the classes' colours: --classes FILE")
        return Reading(LabelRules(COLOUR, "nearest"), None, (), doubts)
    classes = tuple(_coloured(code) for code in sorted(colours, key=_parts))
    return Reading(
        LabelRules(COLOUR),
        ClassTable(classes),
        (f"RGB labels of {len(classes)} colours",),
        ("name the classes, put them in the order wanted",),
    )


def _numbers(labels: LabelSurvey) -> Reading:
    """Gray labels, or palettes."""
    values, present = labels.values, sorted(labels.values)
    what = f"{'palette indices' if labels.palettes else 'gray values'} {listed(values, False)}"
    if len(present) <= 2 and present[0] == 0 and present[-1] in (0, 1, IGNORE_VALUE):
        return Reading(LabelRules(BINARY), BINARY_CLASSES, (f"{what}: two classes",))
    soft = (values[present[0]] + values[present[-1]]) / values.total() > SOFT_SHARE
    if soft and not labels.palettes and len(present) > MOST_LISTED and present[-1] <= IGNORE_VALUE:
        why = f"{len(present)} gray values, but nearly all pixels are {present[0]} or {present[-1]}: soft edges"
        return Reading(LabelRules(BINARY, threshold=present[-1] // 2 + 1), BINARY_CLASSES, (why,))
    if present[-1] >= DIVISORS[0]:
        return _instances(values, what)
    return _classes(labels, what)


def _classes(labels: LabelSurvey, what: str) -> Reading:
    """Each number is a class."""
    present = sorted(labels.values)
    ignored = (IGNORE_VALUE,) if IGNORE_VALUE in present and len(present) > 2 else ()
    classes = [value for value in present if value not in ignored]
    why = [what] + (["255 is no class, by custom"] if ignored else [])
    doubts = ["give the classes their names"]
    if labels.palettes:
        why.append("of a palette the index is read")
    if labels.moving:
        doubts.insert(0, _moving(labels))
    table = numbered_classes(range(max(classes) + 1) if max(classes) < 2 * len(classes) + 8 else classes)
    return Reading(LabelRules(INDEX), ClassTable(table, ignored), tuple(why), tuple(doubts))


def _instances(values: Counter[int], what: str) -> Reading:
    """Class and instance in one number."""
    thousands = any(value < 100 for value in values) and max(values) < 100 * DIVISORS[0]
    divisor = DIVISORS[0] if thousands else DIVISORS[1]
    classes = sorted({value if value < divisor == DIVISORS[0] else value // divisor for value in values})
    return Reading(
        LabelRules(INSTANCE, divisor=divisor),
        _of_values(classes),
        (f"{what}: class * {divisor} + instance, by their range",),
        ("check --divisor, 1000 or 256; if the numbers are classes, --label-codec index", "name the classes"),
    )


def _is_ade20k(colours: Counter[int]) -> bool:
    """(R//10)*256+G is the class and B the instance there."""
    return len({code >> 16 for code in colours}) > 2 and all((code & 255) % 10 == 0 for code in colours)


def _of_values(values: list[int]) -> ClassTable:
    return ClassTable(numbered_classes(values))


def _coloured(code: int) -> SegClass:
    colour = _parts(code)
    return SegClass("colour_{:02x}{:02x}{:02x}".format(*colour), colour, (), (colour,))


def _moving(labels: LabelSurvey) -> str:
    named = ", ".join(colour_name(code) for code in labels.moving[:MOST_LISTED])
    return (
        f"one colour is several indices in different files ({named}); if the colour is the class, give a colour table"
    )


def listed(counts: Counter[int], as_colours: bool) -> str:
    """The numbers, or the commonest colours, with their share of the pixels."""
    total = counts.total()
    chosen = [code for code, _ in counts.most_common(MOST_LISTED)]
    named = [
        f"{colour_name(code) if as_colours else code} ({100 * counts[code] / total:.3g} %)"
        for code in (chosen if as_colours else sorted(chosen))
    ]
    return ", ".join(named) + (f", … {len(counts)} in all" if len(counts) > MOST_LISTED else "")


def colour_name(code: int) -> str:
    return "#{:02x}{:02x}{:02x}".format(*_parts(code))


def _parts(code: int) -> tuple[int, int, int]:
    return code & 255, code >> 8 & 255, code >> 16 & 255
