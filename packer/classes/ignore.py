"""Move values, colours and classes of a class table to what it ignores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from packer.classes.values import MOST_LISTED, parse_colour, parse_values
from packer.errors import UsageError, did_you_mean, first_of
from readers.contract.classes import ClassTable, Colour


def with_ignored(table: ClassTable, ignore: Sequence[str], where: str = "--ignore") -> ClassTable:
    """Ignore everything that `ignore` names: a class by its name, a value, a range of values, or a colour."""
    listed = 0
    for text in ignore:
        named = [segclass for segclass in table.classes if segclass.name == text]
        values = None if "," in text else parse_values(text)
        if named:
            table = replace(
                table,
                classes=tuple(segclass for segclass in table.classes if segclass not in named),
                ignored_values=(*table.ignored_values, *named[0].values),
                ignored_colours=(*table.ignored_colours, *named[0].colours),
            )
        elif values is not None:
            listed += sum(map(len, values))
            if listed > MOST_LISTED:
                raise UsageError(f"{where} repeats the same values too often")
            table = _without(table, values=tuple(value for numbers in values for value in numbers))
        elif (colour := parse_colour(text)) is not None:
            table = _without(table, colours=(colour,))
        else:
            names = ", ".join(first_of(table.names, 20))
            wrong = f"is not a class ({names}), a value or a colour such as #000000"
            raise UsageError(f"{where} {text}: {wrong}{did_you_mean(text, table.names)}")
    if not table.classes:
        raise UsageError(f"{where} leaves no class")
    return replace(
        table,
        ignored_values=tuple(dict.fromkeys(table.ignored_values)),
        ignored_colours=tuple(dict.fromkeys(table.ignored_colours)),
    )


def _without(table: ClassTable, values: tuple[int, ...] = (), colours: tuple[Colour, ...] = ()) -> ClassTable:
    """Ignore values or colours. A class that loses its last value, or its last colour, is ignored with all others."""
    classes = []
    ignored_values, ignored_colours = dict.fromkeys(values), dict.fromkeys(colours)
    for segclass in table.classes:
        kept = replace(
            segclass,
            values=tuple(value for value in segclass.values if value not in ignored_values),
            colours=tuple(colour for colour in segclass.colours if colour not in ignored_colours),
        )
        if bool(kept.values) == bool(segclass.values) and bool(kept.colours) == bool(segclass.colours):
            classes.append(kept)
        else:
            ignored_values |= dict.fromkeys(kept.values)
            ignored_colours |= dict.fromkeys(kept.colours)
    return ClassTable(
        tuple(classes), (*table.ignored_values, *ignored_values), (*table.ignored_colours, *ignored_colours)
    )
