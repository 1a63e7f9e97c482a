"""The classes of a data set: their order, names and colours, and the source values and colours of each class."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from readers.contract.json_entry import Entry

if TYPE_CHECKING:
    from readers.contract.palette import Palette

DrawnColour = tuple[int, int, int]
Colour = DrawnColour | tuple[int, int, int, int]
"""Red, green, blue, and alpha if a source colour is transparent."""

MOST_CLASSES = 65_534
"""An index label needs one number for each class and one for ignored pixels, within 16 bits."""


MOST_SHOWN = 6
"""The most names in the `repr` of a table."""


@dataclass(frozen=True)
class SegClass:
    """One class: its name, the colour to draw it in, and its values and colours in source labels."""

    name: str
    colour: DrawnColour | None = None
    values: tuple[int, ...] = ()
    colours: tuple[Colour, ...] = ()


@dataclass(frozen=True, repr=False)
class ClassTable:
    """The classes in order of their index, and the source values and colours to ignore."""

    classes: tuple[SegClass, ...]
    ignored_values: tuple[int, ...] = ()
    ignored_colours: tuple[Colour, ...] = ()

    def __len__(self) -> int:
        return len(self.classes)

    def __repr__(self) -> str:
        shown = [repr(segclass.name) for segclass in self.classes[:MOST_SHOWN]]
        more = [f"… {len(self) - MOST_SHOWN} more"] if len(self) > MOST_SHOWN else []
        classes = "class" if len(self) == 1 else "classes"
        return f"ClassTable({len(self)} {classes}: {', '.join([*shown, *more])}; ignore_index={self.ignore_index})"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(segclass.name for segclass in self.classes)

    @property
    def index_dtype(self) -> str:
        """The smallest dtype that holds every class index and the ignore value."""
        return "|u1" if len(self.classes) <= 255 else "<u2"

    @property
    def ignore_index(self) -> int:
        """The number of ignored pixels in an index label: the largest of its dtype."""
        return 255 if self.index_dtype == "|u1" else 65_535

    @cached_property
    def palette(self) -> Palette:
        """The colour of each class: the one in the table, or a generated one. `palette.lookup[label]` draws a label."""
        from readers.contract.palette import palette_of  # commands read manifests without numpy

        return palette_of([segclass.colour for segclass in self.classes], self.ignored_colours, self.ignore_index)

    def to_json(self) -> dict[str, Any]:
        return {
            "classes": [
                {
                    "name": segclass.name,
                    "colour": None if segclass.colour is None else _hex(segclass.colour),
                    "values": list(segclass.values),
                    "colours": [_hex(colour) for colour in segclass.colours],
                }
                for segclass in self.classes
            ],
            "ignored_values": list(self.ignored_values),
            "ignored_colours": [_hex(colour) for colour in self.ignored_colours],
        }

    @classmethod
    def from_json(cls, entry: Entry) -> ClassTable:
        classes = []
        for row in entry.entries("classes"):
            drawn = row.maybe("colour", row.text)
            classes.append(
                SegClass(
                    name=row.text("name"),
                    colour=None if drawn is None else _drawn(row, "colour", drawn),
                    values=row.wholes("values"),
                    colours=_colours(row, "colours"),
                )
            )
            row.close()
        if not 1 <= len(classes) <= MOST_CLASSES:
            entry.problem("classes", f"expected 1 to {MOST_CLASSES} classes, found {len(classes)}")
        table = cls(tuple(classes), entry.wholes("ignored_values"), _colours(entry, "ignored_colours"))
        entry.close()
        return table


def _hex(colour: Colour) -> str:
    return "#" + bytes(colour).hex()


def _drawn(entry: Entry, key: str, text: str) -> DrawnColour:
    colour = _colour(entry, key, text)
    if len(colour) == 4:
        entry.problem(key, f"expected a colour without alpha, found {text!r}")
    return colour[0], colour[1], colour[2]


def _colours(entry: Entry, key: str) -> tuple[Colour, ...]:
    return tuple(_colour(entry, key, text) for text in entry.texts(key))


def _colour(entry: Entry, key: str, text: str) -> Colour:
    """Read `#rrggbb`, or `#rrggbbaa` with an alpha below ff: there is one way to write each colour."""
    if re.fullmatch("#[0-9a-f]{6}", text):
        red, green, blue = bytes.fromhex(text[1:])
        return red, green, blue
    if re.fullmatch("#[0-9a-f]{8}", text) and not text.endswith("ff"):
        red, green, blue, alpha = bytes.fromhex(text[1:])
        return red, green, blue, alpha
    entry.problem(key, f"expected a colour such as '#00ff80' or '#00000000', found {text!r}")
    return (0, 0, 0)
