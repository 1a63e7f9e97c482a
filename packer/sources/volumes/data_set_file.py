"""`DataSetFile`: dataset.json of nnU-Net and the Medical Segmentation Decathlon: names of channels and classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packer.classes.documents import parse_json, read_text
from packer.classes.values import distinct_colours
from packer.decoding.arrays import MOST_VALUE
from packer.errors import SettingsError
from readers.contract.classes import ClassTable, SegClass
from readers.contract.field_entry import LONGEST_BAND
from readers.contract.plain_text import odd_character

NAME = "dataset.json"
IGNORE = "ignore"
"""The label whose pixels nnU-Net does not train on."""


@dataclass(frozen=True)
class DataSetFile:
    """The names in the file, read when they are asked for; none if there is no file, or no names in it."""

    path: Path
    document: Mapping[str, Any]

    @classmethod
    def of(cls, folder: Path) -> DataSetFile:
        """Read the file of a folder of volumes."""
        path = folder / NAME
        if not path.is_file():
            return cls(path, {})
        document = parse_json(path, read_text(path))
        if not isinstance(document, dict):
            raise SettingsError(f"{path}: expected a table with labels and channel_names")
        return cls(path, document)

    @property
    def channels(self) -> tuple[str, ...]:
        """The names of the channels by their numbers."""
        return _channels(self.path, self.document.get("channel_names", self.document.get("modality")))

    @property
    def classes(self) -> ClassTable | None:
        """The classes of the labels."""
        return _classes(self.path, self.document.get("labels"))

    def names_of(self, channels: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the channels of a case, which files with these texts have. Numbers count from 0 in the
        file; other texts are names themselves. Without texts, one file has the channels in their order."""
        if not all(map(str.isdecimal, channels)):
            return tuple(channels)
        names, numbers = self.channels, list(map(int, channels))
        return tuple(names[number] for number in numbers or range(len(names)) if number < len(names))


def _channels(path: Path, names: Any) -> tuple[str, ...]:
    """Return the names of the channels, which have the numbers 0, 1, 2 and so on."""
    if not isinstance(names, Mapping) or set(names) != {str(number) for number in range(len(names))}:
        return ()
    channels = tuple(names[str(number)] for number in range(len(names)))
    for name in channels:
        if not isinstance(name, str) or not name.strip() or len(name) > LONGEST_BAND or odd_character(name):
            raise SettingsError(f"{path}: the channel {name!r} has no name of 1 to {LONGEST_BAND} plain characters")
    return channels if len(set(channels)) == len(channels) else ()


def _classes(path: Path, labels: Any) -> ClassTable | None:
    """Return the classes: nnU-Net writes the name first, the Decathlon the number. None if regions overlap."""
    if not isinstance(labels, Mapping) or not labels:
        return None
    by_number = all(isinstance(name, str) for name in labels.values())
    entries = list(labels.items()) if by_number else [(number, name) for name, number in labels.items()]
    if any(isinstance(number, list) for number, _ in entries):
        return None  # regions of several numbers, which a label of one class for each pixel cannot have
    values: dict[int, str] = {}
    for number, name in entries:
        value = int(number) if str(number).isdecimal() and len(str(number)) < 6 else -1
        if not 0 <= value <= MOST_VALUE or value in values or not name.strip() or odd_character(name):
            raise SettingsError(f"{path}: labels: {name[:60]!r} with the number {number!r} is not a class of its own")
        values[value] = name
    ignored = tuple(value for value, name in values.items() if name == IGNORE)
    kept = sorted((value, name) for value, name in values.items() if name != IGNORE)
    if len({name for _, name in kept}) < len(kept) or not kept:
        raise SettingsError(f"{path}: labels: two classes have one name, or there is no class")
    colours = distinct_colours(len(kept))
    classes = tuple(SegClass(name, colour, (value,)) for (value, name), colour in zip(kept, colours, strict=True))
    return ClassTable(classes, ignored_values=ignored)
