"""A field of classes that may overlap: a file for each class, or one file of bits or bands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from packer.decoding.header import Header
from packer.decoding.rules import FileRules
from packer.pixels.field_options import CLASS, MultilabelField
from packer.pixels.multilabel_codec import MultilabelCodec
from packer.pixels.number_rules import MultilabelRules
from packer.plan.fields.planned_field import PlannedField
from readers.contract.classes import ClassTable
from readers.contract.fields import Field
from readers.contract.kinds import MULTILABEL, planes_of

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class PlannedMultilabel(PlannedField):
    """A plane of 0 and 1 for each class, or a bit for each."""

    options: MultilabelField
    read: MultilabelRules

    @classmethod
    def of(cls, options: MultilabelField, table: ClassTable | None, files: FileRules) -> Self:
        return cls(options, MultilabelRules(CLASS not in options.files), table)

    @property
    def table(self) -> ClassTable:
        assert self.classes is not None, "its table was read with its options"
        return self.classes

    def check(self, header: Header) -> None:
        MultilabelCodec(self.read, self.table).check(header)

    def stored(self, sides: tuple[int | None, ...] | None) -> Field:
        shape = (*planes_of(self.options.form, len(self.table)), *(sides or (None, None)))
        return Field(self.name, MULTILABEL, self.options.form, "|u1", shape, classes=self.table)


plan = PlannedMultilabel.of
