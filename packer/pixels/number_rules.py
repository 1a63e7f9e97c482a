"""The rules for reading fields whose numbers are neither colours nor classes: ids, values, and bits of classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from readers.contract.json_entry import Entry

INDEX, PANOPTIC, ADE20K = "index", "panoptic", "ade20k"
ID_CODECS = (INDEX, PANOPTIC, ADE20K)
"""An id is the number of a pixel; red + 256 green + 65536 blue; or the instance in ADE20K's blue band."""
NEAREST, LINEAR = "nearest", "linear"
VALUE_INTERPOLATIONS = (NEAREST, LINEAR)


@dataclass(frozen=True)
class IdRules:
    """The codec of the objects in a file."""

    codec: str = INDEX

    def to_json(self) -> dict[str, Any]:
        return {"codec": self.codec}

    @classmethod
    def from_json(cls, entry: Entry) -> IdRules:
        rules = cls(entry.choice("codec", ID_CODECS))
        entry.close()
        return rules


@dataclass(frozen=True)
class ValueRules:
    """The rules for measured values. `invalid` is the number in the file where nothing was measured; without it, the
    number that the file names for pixels without data. NaN always is one.

    The other numbers are multiplied by `scale`. Sizes change by the nearest pixel, or linearly over the valid ones.

    A field of floating-point numbers has NaN where nothing was measured, and in padding. A field of whole numbers has
    `invalid` there; if it is None, 0, or -32768 if the numbers are signed. A pixel with this number counts as not
    measured, in statistics and in means, whatever the file meant by it: padding and measurements would look alike.
    """

    invalid: float | None = None
    scale: float = 1
    interpolation: str = NEAREST

    def to_json(self) -> dict[str, Any]:
        return {"invalid": self.invalid, "scale": self.scale, "interpolation": self.interpolation}

    @classmethod
    def from_json(cls, entry: Entry) -> ValueRules:
        rules = cls(
            entry.maybe("invalid", entry.number),
            entry.number("scale"),
            entry.choice("interpolation", VALUE_INTERPOLATIONS),
        )
        entry.close()
        return rules


@dataclass(frozen=True)
class MultilabelRules:
    """A file for each class, in the order of the table; or one file whose bits, or bands, are the classes."""

    one_file: bool = False

    def to_json(self) -> dict[str, Any]:
        return {"one_file": self.one_file}

    @classmethod
    def from_json(cls, entry: Entry) -> MultilabelRules:
        rules = cls(entry.truth("one_file"))
        entry.close()
        return rules
