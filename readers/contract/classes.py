"""The classes of a data set: their order, names and colours, and which source values become which class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from readers.contract.checked import Entry

Colour = tuple[int, int, int]

MOST_CLASSES = 65_534
"""An index label needs one number for each class and one for what is ignored, within 16 bits."""


@dataclass(frozen=True)
class SegClass:
    """One class: its name, the colour people draw it in, and the source values and colours that mean it."""

    name: str
    colour: Colour | None = None
    values: tuple[int, ...] = ()
    colours: tuple[Colour, ...] = ()


@dataclass(frozen=True)
class ClassTable:
    """The classes in order of their index, and the source values and colours that are to be ignored."""

    classes: tuple[SegClass, ...]
    ignored_values: tuple[int, ...] = ()
    ignored_colours: tuple[Colour, ...] = ()

    def __len__(self) -> int:
        return len(self.classes)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.classes)

    @property
    def index_dtype(self) -> str:
        """The smallest dtype that holds every class index and the ignore value."""
        return "|u1" if len(self.classes) <= 255 else "<u2"

    @property
    def ignore_index(self) -> int:
        """What an index label holds where there is no class: the largest number of its dtype."""
        return 255 if self.index_dtype == "|u1" else 65_535

    def to_json(self) -> dict[str, Any]:
        return {
            "classes": [
                {
                    "name": one.name,
                    "colour": None if one.colour is None else _hex(one.colour),
                    "values": list(one.values),
                    "colours": [_hex(colour) for colour in one.colours],
                }
                for one in self.classes
            ],
            "ignored_values": list(self.ignored_values),
            "ignored_colours": [_hex(colour) for colour in self.ignored_colours],
        }

    @classmethod
    def from_json(cls, entry: Entry) -> ClassTable:
        classes = []
        for one in entry.entries("classes"):
            drawn = one.maybe("colour", one.text)
            classes.append(
                SegClass(
                    name=one.text("name"),
                    colour=None if drawn is None else _colour(one, "colour", drawn),
                    values=one.wholes("values"),
                    colours=tuple(_colour(one, "colours", text) for text in one.texts("colours")),
                )
            )
            one.close()
        if not 1 <= len(classes) <= MOST_CLASSES:
            entry.problem("classes", f"expected 1 to {MOST_CLASSES} classes, found {len(classes)}")
        ignored = tuple(_colour(entry, "ignored_colours", text) for text in entry.texts("ignored_colours"))
        table = cls(tuple(classes), entry.wholes("ignored_values"), ignored)
        entry.close()
        return table


def _hex(colour: Colour) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


def _colour(entry: Entry, key: str, text: str) -> Colour:
    try:
        if len(text) != 7 or text[0] != "#":
            raise ValueError(text)
        red, green, blue = bytes.fromhex(text[1:])
    except ValueError:
        entry.problem(key, f"expected a colour such as '#00ff80', found {text!r}")
        return (0, 0, 0)
    return red, green, blue
