"""What is no class: values, colours and classes that move out of a class table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from packer.classes.values import MOST_SAID, parse_colour, parse_values
from packer.errors import UsageError, first_of
from readers.contract.classes import ClassTable, Colour


def ignoring(table: ClassTable, ignore: Sequence[str], where: str = "--ignore") -> ClassTable:
    """Move what `ignore` names out of the classes: a class by its name, a value, a range of values, or a colour."""
    said = 0
    for text in ignore:
        gone = [one for one in table.classes if one.name == text]
        values = None if "," in text else parse_values(text)
        if gone:
            table = replace(
                table,
                classes=tuple(one for one in table.classes if one not in gone),
                ignored_values=(*table.ignored_values, *gone[0].values),
                ignored_colours=(*table.ignored_colours, *gone[0].colours),
            )
        elif values is not None:
            said += sum(map(len, values))
            if said > MOST_SAID:
                raise UsageError(f"{where} lists the same values again and again")
            table = _without(table, values=tuple(value for some in values for value in some))
        elif (colour := parse_colour(text)) is not None:
            table = _without(table, colours=(colour,))
        else:
            known = ", ".join(first_of(table.names, 20))
            raise UsageError(f"{where} {text}: is no class ({known}), no value and no colour such as #000000")
    if not table.classes:
        raise UsageError(f"{where} leaves no class")
    return replace(
        table,
        ignored_values=tuple(dict.fromkeys(table.ignored_values)),
        ignored_colours=tuple(dict.fromkeys(table.ignored_colours)),
    )


def _without(table: ClassTable, values: tuple[int, ...] = (), colours: tuple[Colour, ...] = ()) -> ClassTable:
    """Ignore values or colours. A class that loses its last value, or its last colour, is ignored altogether."""
    classes = []
    gone_values, gone_colours = dict.fromkeys(values), dict.fromkeys(colours)
    for one in table.classes:
        kept = replace(
            one,
            values=tuple(v for v in one.values if v not in gone_values),
            colours=tuple(c for c in one.colours if c not in gone_colours),
        )
        if bool(kept.values) == bool(one.values) and bool(kept.colours) == bool(one.colours):
            classes.append(kept)
        else:
            gone_values |= dict.fromkeys(kept.values)
            gone_colours |= dict.fromkeys(kept.colours)
    return ClassTable(tuple(classes), (*table.ignored_values, *gone_values), (*table.ignored_colours, *gone_colours))
