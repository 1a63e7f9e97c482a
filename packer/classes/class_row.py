"""One row of a class table, and the checks of its cells: the same for text, JSON and TOML."""

from __future__ import annotations

from dataclasses import dataclass

from packer.classes.documents import describe
from packer.classes.values import MOST_VALUE, drawn, parse_colour, parse_train_id, parse_values
from readers.contract.classes import Colour, DrawnColour
from readers.contract.plain_text import odd_character

IGNORED_TRAIN_IDS = (-1, 255)
A_NAME = "a name"
A_VALUE = f"a value from 0 to {MOST_VALUE}, such as 7 or '8-10'"
A_COLOUR = "a colour such as '#00ff80' or '0 255 128'"
A_TRAIN_ID = f"a train id from 0 to {MOST_VALUE}, or 255 or -1 for ignored"


@dataclass(frozen=True)
class ClassRow:
    """One row or entry of a class table. Rows of one name, or of one train id, make one class."""

    where: str
    """The file with the line or key, such as `classes.csv:3`."""
    name: str
    colour: DrawnColour | None = None
    values: tuple[range, ...] = ()
    colours: tuple[Colour, ...] = ()
    train_id: int | None = None
    ignored: bool = False

    @property
    def owner(self) -> str | int | None:
        """The name or train id that all rows of a class share; None for ignored rows."""
        if self.ignored:
            return None
        return self.name if self.train_id is None else self.train_id


def class_row(
    where: str,
    name: str,
    colour: Colour | None,
    values: tuple[range, ...] = (),
    train_id: int | None = None,
    ignored: bool = False,
) -> ClassRow:
    """Return a row whose one colour marks its pixels in labels and also draws the class."""
    ignored = ignored or train_id in IGNORED_TRAIN_IDS
    return ClassRow(
        where,
        name,
        None if colour is None else drawn(colour),
        values,
        () if colour is None else (colour,),
        None if ignored else train_id,
        ignored,
    )


def check_name(where: str, item: object, problems: list[str]) -> str:
    """Return a name, or an empty text and one more problem."""
    if isinstance(item, str) and item.strip():
        if code := odd_character(item):
            problems.append(f"{where}: the name of a class has the character {code}; rename it")
        return item
    problems.append(expected(where, A_NAME, item))
    return ""


def check_values(where: str, item: object, problems: list[str]) -> tuple[range, ...]:
    """Return values, or none and one more problem."""
    values = parse_values(item)
    if values is None:
        problems.append(expected(where, A_VALUE, item))
    return values or ()


def check_colour(where: str, item: object, problems: list[str]) -> Colour | None:
    """Return a colour, or None and one more problem."""
    colour = parse_colour(item)
    if colour is None:
        problems.append(expected(where, A_COLOUR, item))
    return colour


def check_train_id(where: str, item: object, problems: list[str]) -> int | None:
    """Return a train id, or None and one more problem."""
    train_id = parse_train_id(item)
    if train_id is None:
        problems.append(expected(where, A_TRAIN_ID, item))
    return train_id


def expected(where: str, kind: str, item: object) -> str:
    """Return the message for an item that is missing (None) or wrong."""
    return f"{where}: expected {kind}" + ("" if item is None else f", found {describe(item)}")
