"""`LabelRules`: the ways to read label files, and whether they fit a class table. Light: numpy is not needed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from packer.errors import UsageError
from readers.contract.classes import ClassTable, SegClass
from readers.contract.json_entry import Entry

AUTO, INDEX, COLOUR, BINARY, ADE20K, INSTANCE = "auto", "index", "colour", "binary", "ade20k", "instance"
CODECS = (AUTO, INDEX, COLOUR, BINARY, ADE20K, INSTANCE)
UNKNOWNS = ("error", "ignore", "nearest")
DIVISORS = (1000, 256)
KEEP, IGNORE = "keep", "ignore"
NO_DATA_LABELS = (KEEP, IGNORE)
"""The choices for a label where the image has no data."""

BINARY_CLASSES = ClassTable(
    (SegClass("background", (0, 0, 0), (0,)), SegClass("foreground", (255, 255, 255), (1, 255)))
)
"""The classes of binary labels without a class table: 0, and 1 or 255."""


@dataclass(frozen=True)
class LabelRules:
    """The options for reading label files. `threshold` is for binary labels, `divisor` for instance ids."""

    codec: str = AUTO
    unknown: str = "error"
    threshold: int | None = None
    divisor: int = 1000
    no_data: str = KEEP

    @property
    def lossy(self) -> bool:
        """True if lossy compression is allowed: a threshold then separates the classes."""
        return self.codec == BINARY and self.threshold is not None

    def to_json(self) -> dict[str, Any]:
        return {
            "codec": self.codec,
            "unknown": self.unknown,
            "threshold": self.threshold,
            "divisor": self.divisor,
            **({} if self.no_data == KEEP else {"no_data": self.no_data}),
        }

    @classmethod
    def from_json(cls, entry: Entry) -> LabelRules:
        rules = cls(
            entry.choice("codec", CODECS),
            entry.choice("unknown", UNKNOWNS),
            entry.maybe("threshold", entry.whole),
            entry.whole("divisor", least=1),
            entry.choice("no_data", NO_DATA_LABELS) if entry.has("no_data") else KEEP,
        )
        entry.close()
        return rules


AS_THE_TABLE_SAYS = LabelRules()


def resolve(rules: LabelRules, table: ClassTable) -> LabelRules:
    """Replace the codec auto if the table allows only one. Raise UsageError if rules and table do not fit."""
    has_values = any(seg_class.values for seg_class in table.classes)
    has_colours = any(seg_class.colours for seg_class in table.classes)
    codec = rules.codec
    if codec == AUTO and has_values != has_colours:
        codec = INDEX if has_values else COLOUR
    if codec in (INDEX, ADE20K, INSTANCE) and not has_values:
        raise UsageError(f"--label-codec {codec}: needs values in the class table, which has only colours")
    if codec == COLOUR and not has_colours:
        raise UsageError("--label-codec colour: needs colours in the class table, which has only values")
    if rules.unknown == "nearest" and codec != COLOUR:
        raise UsageError(
            "--unknown nearest: works with --label-codec colour only, because class numbers have no distance"
        )
    if rules.threshold is not None and codec != BINARY:
        raise UsageError("--threshold: needs --label-codec binary")
    if codec == BINARY and rules.threshold is not None and len(table) != 2:
        raise UsageError(f"--threshold: needs a class table of two classes, this one has {len(table)}")
    if codec == BINARY and rules.threshold is None and not has_values:
        raise UsageError("--label-codec binary: needs values in the class table, or --threshold")
    return replace(rules, codec=codec)
