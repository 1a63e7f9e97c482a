"""Evidence: which way of reading the labels of a folder its pixels speak for, and what speaks against it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from packer.errors import UsageError
from packer.labels import ADE20K, AUTO, BINARY, COLOUR, DIVISORS, INDEX, INSTANCE, LabelRules, settle
from packer.lookup import IGNORE, UNKNOWN, Lookup
from packer.survey import MOST_COLOURS, LabelSurvey
from readers.contract.classes import ClassTable, SegClass

SOFT_SHARE = 0.9
"""Labels of which so many pixels are the darkest or the brightest value are binary ones with soft edges."""
IGNORE_VALUE = 255
MOST_LISTED = 12


@dataclass(frozen=True)
class Reading:
    """A way to read labels: the rules, the classes, and why; `doubts` are what the user must decide."""

    rules: LabelRules
    classes: ClassTable | None
    why: tuple[str, ...]
    doubts: tuple[str, ...] = ()


def read_by_table(labels: LabelSurvey, table: ClassTable, source: str) -> Reading:
    """How labels are read by a class table that is given."""
    lookup = Lookup(table)
    try:
        rules = settle(LabelRules(), table)
    except UsageError as error:
        return Reading(LabelRules(), table, (), (str(error),))
    why, doubts = [], []
    for what, counts, known in (
        ("values", labels.values, lookup.knows_value),
        ("colours", labels.colours, lookup.knows_colour),
    ):
        relevant = rules.codec in (AUTO, INDEX if what == "values" else COLOUR)
        if not counts or not relevant:
            continue
        strays = {code: count for code, count in counts.items() if not known(code)}
        share = 100 * (1 - sum(strays.values()) / sum(counts.values()))
        why.append(f"{len(counts) - len(strays)} of {len(counts)} {what} are in {source} ({share:.2f} % of the pixels)")
        if strays:
            named = ", ".join(
                _named(what, code) for code in sorted(strays, key=lambda code: -strays[code])[:MOST_LISTED]
            )
            doubts.append(f"{what} of no class: {named}; add to {source}, --ignore, or --unknown ignore")
    if rules.codec == INDEX and labels.moving:
        doubts.append(_moving(labels))
    if not why:
        doubts.append(f"nothing in the labels can be read by {source}")
    return Reading(rules, table, tuple(why), tuple(doubts))


def read_without_table(labels: LabelSurvey) -> Reading:
    """A reading from the pixels alone: a proposal, with names to be replaced by better ones."""
    lossy = [kind for kind in labels.kinds if kind.startswith("jpeg")]
    if lossy:
        why = "JPEG labels are blurred by their compression: only binary with a threshold can be read"
        return Reading(LabelRules(BINARY, threshold=128), None, (why,))
    if labels.colours and not labels.values:
        return _colours(labels)
    if labels.values:
        return _numbers(labels)
    return Reading(LabelRules(), None, (), ("no label could be looked into",))


def _colours(labels: LabelSurvey) -> Reading:
    """RGB labels."""
    if _is_ade20k(labels.colours):
        why = f"red is a multiple of 10 in all {len(labels.colours)} colours: (R//10)*256+G, as in the full ADE20K"
        values = sorted({(code & 255) // 10 * 256 + (code >> 8 & 255) for code in labels.colours})
        return Reading(LabelRules(ADE20K), _of_values(values), (why,), ("name the classes that are wanted",))
    if len(labels.colours) > MOST_CLASSES_GUESSED:
        common = [code for code, _ in labels.colours.most_common(MOST_LISTED)]
        named = ", ".join(_named("colours", code) for code in common)
        doubt = f"{_many(labels.colours)} colours are too many for classes (blurred edges?); the commonest: {named}"
        return Reading(LabelRules(COLOUR, "nearest"), None, (), (doubt, "give the classes' colours: --classes FILE"))
    classes = [_coloured(code) for code in sorted(labels.colours, key=_bytes_of)]
    why = f"RGB labels of {len(classes)} colours"
    return Reading(LabelRules(COLOUR), ClassTable(tuple(classes)), (why,), ("name the classes, in the order wanted",))


def _numbers(labels: LabelSurvey) -> Reading:
    """Gray labels, or palettes."""
    values, palette = labels.values, bool(labels.colours)
    present = sorted(values)
    shown = ", ".join(map(str, present[:MOST_LISTED])) + (", …" if len(present) > MOST_LISTED else "")
    what = "palette indices" if palette else "gray values"
    if len(present) <= 2 and present[0] == 0 and present[-1] in (0, 1, IGNORE_VALUE):
        return Reading(LabelRules(BINARY), None, (f"{what} {shown}: two classes",))
    if not palette and len(present) > 2 and (values[present[0]] + values[present[-1]]) / values.total() > SOFT_SHARE:
        if len(present) > MOST_LISTED and present[-1] > 1:
            why = f"{len(present)} gray values, but nearly all pixels are {present[0]} or {present[-1]}: soft edges"
            return Reading(LabelRules(BINARY, threshold=max(1, present[-1] // 2 + 1)), None, (why,))
    if present[-1] >= DIVISORS[0]:
        return _instances(values, shown)
    classes = [value for value in present if value != IGNORE_VALUE or len(present) <= 2]
    ignored = (IGNORE_VALUE,) if IGNORE_VALUE in present and IGNORE_VALUE not in classes else ()
    count = max(classes, default=0) + 1
    why = [f"{what} {shown}"] + (["255 is what no class is, by custom"] if ignored else [])
    doubts = []
    if palette:
        why.append("of a palette the index counts; its colours move from file to file" if labels.moving else "palette")
    if palette and labels.moving:
        doubts.append(_moving(labels))
    table = ClassTable(tuple(SegClass(f"class_{value}", None, (value,)) for value in range(count)), ignored)
    return Reading(LabelRules(INDEX), table, tuple(why), tuple(doubts))


def _instances(values: Counter[int], shown: str) -> Reading:
    """Class and instance in one number."""
    thousands = all(value < 100 or value // 1000 < 100 for value in values)
    divisor = DIVISORS[0] if thousands and any(value % 1000 < 256 for value in values) else DIVISORS[1]
    classes = sorted({value if divisor == 1000 > value else value // divisor for value in values})
    why = f"numbers up to {max(values)} ({shown}): class * {divisor} + instance, by their range"
    return Reading(LabelRules(INSTANCE, divisor=divisor), _of_values(classes), (why,), ("check --divisor",))


def _is_ade20k(colours: Counter[int]) -> bool:
    reds = {code & 255 for code in colours}
    return len(colours) > 2 and all(red % 10 == 0 for red in reds) and len({code >> 16 for code in colours}) > 2


def _of_values(values: list[int]) -> ClassTable:
    return ClassTable(tuple(SegClass(f"class_{value}", None, (value,)) for value in values))


def _coloured(code: int) -> SegClass:
    colour = (code & 255, code >> 8 & 255, code >> 16 & 255)
    return SegClass("colour_{:02x}{:02x}{:02x}".format(*colour), colour, (), (colour,))


def _moving(labels: LabelSurvey) -> str:
    named = ", ".join(_named("colours", code) for code in labels.moving[:MOST_LISTED])
    return f"colours that are several indices in different files: {named}; if the colour is the class, give their table"


def _named(what: str, code: int) -> str:
    return (
        str(code) if what == "values" else "#{:02x}{:02x}{:02x}".format(code & 255, code >> 8 & 255, code >> 16 & 255)
    )


def _bytes_of(code: int) -> tuple[int, int, int]:
    return code & 255, code >> 8 & 255, code >> 16 & 255


def _many(colours: Counter[int]) -> str:
    return f"{MOST_COLOURS} or more" if len(colours) >= MOST_COLOURS else str(len(colours))


MOST_CLASSES_GUESSED = 256
_ = (IGNORE, UNKNOWN)
