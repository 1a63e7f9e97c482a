"""`FieldRule`: how a field of a row is found, read and stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from packer.decoding.rules import ImageRules
from packer.pixels.field_options import BY_KIND, ReadRule
from packer.pixels.jpeg_rules import JpegRules
from packer.pixels.label_rules import LabelRules
from readers.contract import VERSION
from readers.contract.field_entry import read_field
from readers.contract.fields import JPEG, RAW, Field, classes_field
from readers.contract.json_entry import Entry, fingerprint
from readers.contract.kinds import CLASSES, INDEX


@dataclass(frozen=True)
class FieldRule:
    """A field of a recipe. `read` are the rules of its kind, `template` is the pattern of its files, if it has one."""

    field: Field
    read: ReadRule
    template: str = ""
    jpeg: JpegRules | None = None
    """The rules of a field that is stored as JPEG."""

    @property
    def name(self) -> str:
        return self.field.name

    @property
    def stored_as(self) -> str:
        """The encoding with its options, such as `jpeg:95` or `tiles-jpeg:256x256:95`."""
        encoding = self.field.encoding_text
        return encoding if self.jpeg is None else f"{encoding}:{self.jpeg.option}"

    @property
    def image_rules(self) -> ImageRules:
        """The rules of a picture."""
        assert isinstance(self.read, ImageRules)
        return self.read

    @property
    def label_rules(self) -> LabelRules:
        """The rules of a field of classes."""
        assert isinstance(self.read, LabelRules)
        return self.read

    @property
    def judged(self) -> list[Any]:
        """Everything that decides whether the header of a file is good, as JSON."""
        if isinstance(self.read, LabelRules):
            return [self.field.kind, self.read.lossy]
        fill = [self.field.fill] if self.field.no_data else []
        return [self.field.kind, self.read.to_json(), self.field.dtype, self.field.planes, self.field.bands, *fill]

    def of_form(self, form: str) -> FieldRule:
        """Return the rule that stores the same classes in this form."""
        assert self.field.classes is not None, "only classes have these forms"
        field = classes_field(self.name, form, self.field.classes, self.field.sides)
        return replace(self, field=replace(field, encoding=self.field.encoding, tile=self.field.tile))

    @property
    def unscaled(self) -> FieldRule:
        """The rule that stores rows in their own sizes, unpacked. Classes are stored as an index."""
        rule = self.of_form(INDEX) if self.field.kind == CLASSES else self
        shape = (*rule.field.planes, *[None] * len(rule.field.sides))
        return replace(rule, field=replace(rule.field, shape=shape, encoding=RAW, tile=None), jpeg=None)

    def to_json(self) -> dict[str, Any]:
        jpeg = {} if self.jpeg is None else {JPEG: self.jpeg.to_json()}
        return {"field": self.field.to_json(), "read": self.read.to_json(), "from": self.template, **jpeg}

    @classmethod
    def from_json(cls, entry: Entry) -> FieldRule:
        field = read_field(entry.entry("field"))
        jpeg = JpegRules.from_json(entry.entry(JPEG)) if field.is_jpeg else None
        rule = cls(field, BY_KIND[field.kind].rules.from_json(entry.entry("read")), entry.text("from"), jpeg)
        entry.close()
        return rule


def judged(rules: Iterable[FieldRule], place: str, sides: str, resolution: float | None) -> str:
    """Return the fingerprint of everything that decides whether headers are good, and the sides of their rows."""
    facts = [VERSION, "same place up to axes, few bits", place, sides, *([] if resolution is None else [resolution])]
    return fingerprint([*facts, *(rule.judged for rule in rules)])[:32]
