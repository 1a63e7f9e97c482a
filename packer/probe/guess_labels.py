"""Evidence: which way of reading the labels of a folder its pixels speak for, and what the user must decide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from packer.classes.load import numbered_classes
from packer.errors import UsageError, first_of
from packer.pixels.class_lookup import UNKNOWN, Lookup
from packer.pixels.label_codec import (
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
from packer.plan.palettes import colour_name
from packer.probe.survey import LabelSurvey
from packer.workers.inspect import colour_parts
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
    counts, by_colour = source_counts(labels, rules)
    known = known_pixels(counts, table, by_colour)
    why, doubts = [f"read as {rules.codec}"], []
    if counts:
        share = 100 * known.total() / counts.total()
        what = "colours" if by_colour else "values"
        why.append(f"{len(known)} of {len(counts)} {what} are in {source} ({share:.2f} % of the pixels)")
    strays = counts - known
    if strays:
        doubts.append(f"of no class: {listed(strays, by_colour)}; add to {source}, --ignore, or --unknown ignore")
    if rules.codec == INDEX:
        doubts += _palette_doubts(labels)
    return Reading(rules, table, tuple(why), tuple(doubts))


def known_share(labels: LabelSurvey, table: ClassTable, rules: LabelRules) -> float:
    """Which share of the pixels that were looked at a table has, read by these rules: 0 to 1."""
    try:
        counts, by_colour = source_counts(labels, settle(rules, table))
    except UsageError:
        return 0.0
    return known_pixels(counts, table, by_colour).total() / max(1, counts.total())


def source_counts(labels: LabelSurvey, rules: LabelRules) -> tuple[Counter[int], bool]:
    """Pixels by what these rules take from a label, and whether that is a colour."""
    if rules.codec == ADE20K:
        return _joined(labels.colours, lambda code: (code & 255) // 10 * 256 + (code >> 8 & 255)), False
    if rules.codec == INSTANCE:
        return _joined(labels.values, lambda value: instance_class(value, rules.divisor)), False
    if rules.codec == BINARY and rules.threshold is not None:
        return Counter({0: labels.values.total()}), False
    if rules.codec == COLOUR or (rules.codec == AUTO and labels.colours):
        grays = Counter({value * 0x10101: count for value, count in labels.values.items() if value < 256})
        return labels.colours + (Counter() if labels.palettes.indices else grays), True
    return labels.values, False


def instance_class(value: int, divisor: int) -> int:
    """Cityscapes' ids below 1000 are classes without instance; KITTI's and Mapillary's always have one."""
    return value if value < divisor == DIVISORS[0] else value // divisor


def _joined(counts: Counter[int], to: Callable[[int], int]) -> Counter[int]:
    joined: Counter[int] = Counter()
    for one, pixels in counts.items():
        joined[to(one)] += pixels
    return joined


def known_pixels(counts: Counter[int], table: ClassTable, by_colour: bool) -> Counter[int]:
    """The counts of those values or colours that a table has."""
    lookup, codes = Lookup(table), np.array(sorted(counts), np.uint32)
    index = lookup.colours(colour_parts(codes)[None])[0] if by_colour else lookup.values(codes.astype(np.uint16))
    return Counter({code: counts[code] for code in codes[index != UNKNOWN].tolist()})


def read_without_table(labels: LabelSurvey) -> Reading:
    """A reading from the pixels alone: a proposal, with names to be replaced by better ones."""
    if any(kind.startswith("jpeg") for kind in labels.kinds):
        why = "JPEG labels are blurred by their compression: only binary with a threshold can be read"
        return Reading(LabelRules(BINARY, threshold=128), BINARY_CLASSES, (why,))
    if not labels.values and not labels.colours:
        return Reading(LabelRules(), None, (), ("no label could be looked into",))
    reading = _numbers(labels) if labels.values else _colours(labels)
    return replace(reading, doubts=(*reading.doubts, *_rare(labels, reading)))


def _rare(labels: LabelSurvey, reading: Reading) -> Iterator[str]:
    """That classes made of what was seen lack what was not: a build would refuse it."""
    if reading.classes not in (None, BINARY_CLASSES) and labels.looked_into < labels.kinds.total():
        yield (
            f"only {labels.looked_into} of {labels.kinds.total()} labels were decoded, so rare classes may be missing: "
            "--sample all finds them"
        )


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
    classes = tuple(_coloured(code) for code in sorted(colours, key=colour_name))
    return Reading(
        LabelRules(COLOUR),
        ClassTable(classes),
        (f"read as colour: {len(classes)} colours, which no class table and no preset tells",),
        ("give the classes their names, and put them in the order wanted",),
    )


def _numbers(labels: LabelSurvey) -> Reading:
    """Gray labels, or palettes."""
    values, present = labels.values, sorted(labels.values)
    if len(present) <= 2 and present[0] == 0 and present[-1] in (0, 1, IGNORE_VALUE):
        return Reading(LabelRules(BINARY), BINARY_CLASSES, ("read as binary: two classes",))
    soft = (values[present[0]] + values[present[-1]]) / values.total() > SOFT_SHARE
    if soft and not labels.palettes.indices and len(present) > MOST_LISTED and present[-1] <= IGNORE_VALUE:
        why = f"{len(present)} gray values, but nearly all pixels are {present[0]} or {present[-1]}: soft edges"
        return Reading(LabelRules(BINARY, threshold=present[-1] // 2 + 1), BINARY_CLASSES, (why,))
    if present[-1] >= DIVISORS[0]:
        return _instances(values)
    return _classes(labels)


def _classes(labels: LabelSurvey) -> Reading:
    """Each number is a class."""
    present = sorted(labels.values)
    ignored = (IGNORE_VALUE,) if IGNORE_VALUE in present and len(present) > 2 else ()
    classes = [value for value in present if value not in ignored]
    why = ["read as index; no class table and no preset tells these values"]
    why += ["of a palette the index counts"] if labels.palettes.indices else []
    why += ["255 is no class, by custom"] if ignored else []
    doubts = [*_palette_doubts(labels), "give the classes their names"]
    table = numbered_classes(range(max(classes) + 1) if max(classes) < 2 * len(classes) + 8 else classes)
    return Reading(LabelRules(INDEX), ClassTable(table, ignored), tuple(why), tuple(doubts))


def _instances(values: Counter[int]) -> Reading:
    """Class and instance in one number."""
    thousands = any(value < 100 for value in values) and max(values) < 100 * DIVISORS[0]
    divisor = DIVISORS[0] if thousands else DIVISORS[1]
    classes = sorted({instance_class(value, divisor) for value in values})
    return Reading(
        LabelRules(INSTANCE, divisor=divisor),
        _of_values(classes),
        (f"read as instance: the numbers are class * {divisor} + instance, by their range",),
        (
            'check divisor, 1000 or 256; if the numbers are classes, label-codec = "index"',
            "give the classes their names",
        ),
    )


def _is_ade20k(colours: Counter[int]) -> bool:
    """(R//10)*256+G is the class and B the instance there."""
    return len({code >> 16 for code in colours}) > 2 and all((code & 255) % 10 == 0 for code in colours)


def _of_values(values: list[int]) -> ClassTable:
    return ClassTable(numbered_classes(values))


def _coloured(code: int) -> SegClass:
    red, green, blue, alpha = colour_parts(np.array([code], np.uint32))[0].tolist()
    name, colour = f"colour_{colour_name(code)[1:]}", (red, green, blue)
    return SegClass(name, colour, (), (colour if alpha == 255 else (*colour, alpha),))


def _palette_doubts(labels: LabelSurvey) -> list[str]:
    """What speaks against reading the index of palettes."""
    return [
        f"palettes differ, {told}; if the colour is the class, give a table of colours"
        for told in labels.palettes.doubts[:1]
    ]


def listed(counts: Counter[int], as_colours: bool) -> str:
    """The numbers, or the commonest colours, with their share of the pixels."""
    total = counts.total()
    codes = [code for code, _ in counts.most_common()]
    if not as_colours:
        codes[:MOST_LISTED] = sorted(codes[:MOST_LISTED])

    def show(code: int) -> str:
        return f"{colour_name(code) if as_colours else code} ({100 * counts[code] / total:.3g} %)"

    return ", ".join(first_of(codes, MOST_LISTED, show=show))
