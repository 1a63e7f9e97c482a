"""Guess from the pixels how labels are to be read, and list what the user must decide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from packer.classes.load import numbered_classes
from packer.errors import UsageError
from packer.pixels.label_advice import (
    ALL_IGNORED,
    NUMBERS_BESIDE_COLOURS,
    TRANSPARENT_GRAY,
    class_values,
    is_binary,
    is_gray_scale,
    soft_threshold,
)
from packer.pixels.label_rules import (
    ADE20K,
    AS_THE_TABLE_SAYS,
    BINARY,
    BINARY_CLASSES,
    COLOUR,
    DIVISORS,
    INDEX,
    INSTANCE,
    LabelRules,
    resolve,
)
from packer.plan.palettes import colour_name
from packer.probe.label_pixels import ade20k_class, instance_class, known_pixels, pixel_counts, shown_counts
from packer.probe.survey import LabelSurvey
from packer.shards.inspect import colour_parts
from readers.contract.classes import ClassTable, SegClass

MOST_CLASSES_GUESSED = 256
NAMES_OF_A_PALETTE = (
    "what are the names of the classes? The palette of the labels gives each a colour, and no file of the folder, "
    "such as labelmap.txt, names these colours"
)


@dataclass(frozen=True)
class LabelReading:
    """A way to read labels: rules and classes, the reasons in `why`, and in `doubts` what the user must decide."""

    rules: LabelRules
    classes: ClassTable | None
    why: tuple[str, ...]
    doubts: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    """Doubts about what the classes are. A build with the proposal stops until the user has decided them."""


def read_by_table(
    labels: LabelSurvey, table: ClassTable, source: str, rules: LabelRules = AS_THE_TABLE_SAYS
) -> LabelReading:
    """Read labels by a given class table; `source` names it in messages."""
    try:
        rules = resolve(rules, table)
    except UsageError as error:
        return LabelReading(rules, table, (), (str(error),))
    counts, by_colour = pixel_counts(labels, rules)
    known_counts = known_pixels(counts, table, by_colour)
    why, doubts = [f"read as {rules.codec}"], []
    if counts:
        share = 100 * known_counts.total() / counts.total()
        unit = "colours" if by_colour else "values"
        why.append(f"{len(known_counts)} of {len(counts)} {unit} are in {source} ({share:.2f} % of the pixels)")
    unknown = counts - known_counts
    if unknown and by_colour and labels.grays and not labels.palettes.indices:
        doubts.append(f"{NUMBERS_BESIDE_COLOURS} to {source}")
    elif unknown:
        shown = shown_counts(unknown, by_colour, counts.total())
        doubts.append(f"in no class: {shown}; add these to {source}, or use --ignore or --unknown ignore")
    if rules.codec == INDEX:
        doubts += _palette_doubts(labels)
        if labels.rgb:
            doubts.append(f"{labels.rgb} labels of the sample are RGB, and {source} has values only: add the colours")
    return LabelReading(rules, table, tuple(why), tuple(doubts))


def read_without_table(labels: LabelSurvey) -> LabelReading:
    """Guess a reading from the pixels alone. The names of its classes are placeholders."""
    if labels.lossy:
        why = "lossy compression such as JPEG blurs labels: they can only be read as binary with a threshold"
        return LabelReading(LabelRules(BINARY, threshold=128), BINARY_CLASSES, (why,))
    if not labels.values and not labels.colours:
        return LabelReading(LabelRules(), None, (), ("no label could be decoded",))
    reading = _guess_by_colours(labels) if labels.rgb else _guess_by_values(labels)
    doubts = (*reading.doubts, *_mixture_doubts(labels, reading), *_rare_class_doubts(labels, reading))
    return replace(reading, doubts=doubts)


def _mixture_doubts(labels: LabelSurvey, reading: LabelReading) -> Iterator[str]:
    """Warn that labels of several file types are read in one way."""
    kinds = {name for kind in labels.kinds for name in ("palette", "gray", "RGB") if f" {name}" in kind}
    if len(kinds) > 1 and reading.rules.codec == COLOUR:
        yield f"labels are {', '.join(sorted(kinds))}: all are read by their colour, gray value 7 as #070707"


def _rare_class_doubts(labels: LabelSurvey, reading: LabelReading) -> Iterator[str]:
    """Warn that classes guessed from a sample may be incomplete: a build would refuse the other values."""
    if reading.classes not in (None, BINARY_CLASSES) and labels.sampled < labels.total:
        yield (
            f"only {labels.sampled} of {labels.total} labels were decoded, so rare classes may be missing: "
            "--sample all finds them"
        )


def _guess_by_colours(labels: LabelSurvey) -> LabelReading:
    """Guess the reading of labels if some of them are RGB. Gray labels and palettes then count by their colours."""
    colours, _ = pixel_counts(labels, LabelRules(COLOUR))
    if _is_ade20k(colours):
        why = f"red is a multiple of 10 in all {len(colours)} colours and blue varies, as in the full ADE20K"
        values = sorted({ade20k_class(code) for code in colours})
        return LabelReading(
            LabelRules(ADE20K),
            _table_of_values(values),
            (why,),
            ("choose and name the classes",),
            (_renumbered(values),) if _moves(values) else (),
        )
    if labels.kinds and all("gray with alpha" in kind for kind in labels.kinds):
        return LabelReading(LabelRules(), None, (), (f"a label is {TRANSPARENT_GRAY}",))
    if labels.too_many or len(colours) > MOST_CLASSES_GUESSED:
        doubts = (
            f"too many colours for classes ({len(colours)} or more), perhaps because of blurred edges; the most "
            f"common: {shown_counts(colours, True)}",
            "list the colours of the classes with --classes FILE",
        )
        return LabelReading(LabelRules(COLOUR, "nearest"), None, (), doubts)
    classes = tuple(_class_of_colour(code) for code in sorted(colours, key=colour_name))
    return LabelReading(
        LabelRules(COLOUR),
        ClassTable(classes),
        (f"read as colour: {len(classes)} colours, found in no class table or preset",),
        ("name the classes and put them in the right order",),
    )


def _guess_by_values(labels: LabelSurvey) -> LabelReading:
    """Guess the reading of gray or palette labels."""
    values, present = labels.values, sorted(labels.values)
    if is_binary(present):
        questions = () if present[0] == 0 else (ALL_IGNORED,)
        return LabelReading(LabelRules(BINARY), BINARY_CLASSES, ("read as binary: two classes",), (), questions)
    threshold = None if labels.palettes.indices else soft_threshold(values)
    if threshold is not None:
        why = f"{len(present)} gray values, but nearly all pixels are {present[0]} or {present[-1]}: soft edges"
        return LabelReading(LabelRules(BINARY, threshold=threshold), BINARY_CLASSES, (why,))
    if present[-1] >= DIVISORS[0]:
        return _guess_instances(values)
    return _guess_classes(labels)


def _guess_classes(labels: LabelSurvey) -> LabelReading:
    """Make each value a class."""
    present = sorted(labels.values)
    classes = class_values(present)
    ignored = tuple(set(present) - set(classes))
    why = ["read as index; no class table or preset has these values"]
    why += ["palette labels are read by their index"] if labels.palettes.indices else []
    why += ["255 is ignored, because it is usually not a class"] if ignored else []
    why += ["the values are grays in equal steps, so 255 is a class"] if is_gray_scale(classes) else []
    doubts = [*_palette_doubts(labels), "name the classes"]
    dense = max(classes) < 2 * len(classes) + 8
    table = ClassTable(numbered_classes(range(max(classes) + 1) if dense else classes), ignored)
    questions = [] if dense else [_renumbered(classes)]
    if labels.palettes.indices and not labels.palettes.doubts and len(classes) > 2:
        questions.append(NAMES_OF_A_PALETTE)
    return LabelReading(LabelRules(INDEX), table, tuple(why), tuple(doubts), tuple(questions))


def _renumbered(values: list[int]) -> str:
    """Return the question whether the values that a sample happens to show are all classes."""
    moved = next(index for index, value in enumerate(values) if index != value)
    return (
        f"classes are renumbered: only the {len(values)} values of the sample are classes, so value {values[moved]} "
        f"becomes class {moved}; to keep the values unchanged, use --classes {max(values) + 1} or a preset"
    )


def _guess_instances(values: Counter[int]) -> LabelReading:
    """Split each value into class and instance."""
    thousands = any(value < 100 for value in values) and max(values) < 100 * DIVISORS[0]
    divisor = DIVISORS[0] if thousands else DIVISORS[1]
    classes = sorted({instance_class(value, divisor) for value in values})
    return LabelReading(
        LabelRules(INSTANCE, divisor=divisor),
        _table_of_values(classes),
        (f"read as instance: by their range, the values are class * {divisor} + instance",),
        (
            'check divisor (1000 or 256); if the values are classes, use label-codec = "index"',
            "name the classes",
        ),
        (_renumbered(classes),) if _moves(classes) else (),
    )


def _moves(values: list[int]) -> bool:
    return values != list(range(len(values)))


def _is_ade20k(colours: Counter[int]) -> bool:
    """Detect colours with the class in red and green and the instance in blue."""
    return len({code >> 16 for code in colours}) > 2 and all((code & 255) % 10 == 0 for code in colours)


def _table_of_values(values: list[int]) -> ClassTable:
    return ClassTable(numbered_classes(values))


def _class_of_colour(code: int) -> SegClass:
    red, green, blue, alpha = colour_parts(np.array([code], np.uint32))[0].tolist()
    name, colour = f"colour_{colour_name(code)[1:]}", (red, green, blue)
    return SegClass(name, colour, (), (colour if alpha == 255 else (*colour, alpha),))


def _palette_doubts(labels: LabelSurvey) -> list[str]:
    """Return the first reason against reading palettes by their index."""
    return [
        f"palettes differ: {reason}; if the colour is the class, give a table of colours"
        for reason in labels.palettes.doubts[:1]
    ]
