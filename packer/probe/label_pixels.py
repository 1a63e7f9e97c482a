"""Count the label pixels of a sample by value or colour, and those that a class table knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from packer.errors import UsageError, first_of
from packer.pixels.class_lookup import UNKNOWN, Lookup
from packer.pixels.label_rules import ADE20K, AUTO, BINARY, COLOUR, DIVISORS, INDEX, INSTANCE, LabelRules, resolve
from packer.plan.palettes import colour_name
from packer.probe.survey import LabelSurvey
from packer.shards.inspect import colour_parts
from readers.contract.classes import ClassTable

MOST_SHOWN = 12


def pixel_counts(labels: LabelSurvey, rules: LabelRules) -> tuple[Counter[int], bool]:
    """Count pixels by the number that these rules read from a label; the second item is True if it is a colour."""
    if rules.codec == ADE20K:
        return _converted(labels.colours, ade20k_class), False
    if rules.codec == INSTANCE:
        return _converted(labels.values, lambda value: instance_class(value, rules.divisor)), False
    if rules.codec == BINARY and rules.threshold is not None:
        return Counter({0: labels.values.total()}), False
    if rules.codec == COLOUR or (rules.codec == AUTO and labels.colours):
        grays = Counter({value * 0x10101: count for value, count in labels.grays.items() if value < 256})
        return labels.colours + grays, True
    return labels.values, False


def ade20k_class(code: int) -> int:
    """Return the class (R // 10) * 256 + G of a colour code of the full ADE20K."""
    return (code & 255) // 10 * 256 + (code >> 8 & 255)


def instance_class(value: int, divisor: int) -> int:
    """Return the class of a value. In Cityscapes values below 1000 are classes without instances."""
    return value if value < divisor == DIVISORS[0] else value // divisor


def _converted(counts: Counter[int], convert: Callable[[int], int]) -> Counter[int]:
    converted: Counter[int] = Counter()
    for number, pixels in counts.items():
        converted[convert(number)] += pixels
    return converted


def known_pixels(counts: Counter[int], table: ClassTable, by_colour: bool) -> Counter[int]:
    """Return the counts of the values or colours in a class table."""
    lookup, codes = Lookup(table), np.array(sorted(counts), np.uint32)
    index = lookup.colours(colour_parts(codes)[None])[0] if by_colour else lookup.values(codes.astype(np.uint16))
    return Counter({code: counts[code] for code in codes[index != UNKNOWN].tolist()})


def known_share(labels: LabelSurvey, table: ClassTable, rules: LabelRules) -> float:
    """Return the share of the sampled pixels that are in a table, read by these rules: 0 to 1."""
    try:
        rules = resolve(rules, table)
        counts, by_colour = pixel_counts(labels, rules)
    except UsageError:
        return 0.0
    if labels.rgb and rules.codec in (INDEX, INSTANCE, BINARY):
        return 0.0  # no value can be read from an RGB label
    return known_pixels(counts, table, by_colour).total() / max(1, counts.total())


def shown_counts(counts: Counter[int], as_colours: bool, total: int | None = None) -> str:
    """Show the most common values or colours with their share of `total` pixels, or of these. Values are sorted."""
    total = total or counts.total()
    codes = [code for code, _ in counts.most_common()]
    if not as_colours:
        codes[:MOST_SHOWN] = sorted(codes[:MOST_SHOWN])

    def show(code: int) -> str:
        return f"{colour_name(code) if as_colours else code} ({100 * counts[code] / total:.3g} %)"

    return ", ".join(first_of(codes, MOST_SHOWN, show=show))
