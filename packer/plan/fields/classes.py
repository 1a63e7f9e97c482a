"""A field of classes: one class for each pixel, such as the label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from packer.decoding.decode import check_label
from packer.decoding.header import Header
from packer.decoding.rules import FileRules
from packer.pixels.field_options import ClassesField
from packer.pixels.label_rules import LabelRules, resolve
from packer.plan.fields.planned_field import PlannedField
from readers.contract.classes import ClassTable
from readers.contract.fields import Field, classes_field

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class PlannedClasses(PlannedField):
    """Class numbers or colours. The class table may not be known yet."""

    options: ClassesField
    read: LabelRules

    @classmethod
    def of(cls, options: ClassesField, table: ClassTable | None, files: FileRules) -> Self:
        read = LabelRules(options.codec, options.unknown, options.threshold, options.divisor, options.nodata)
        return cls(options, read if table is None else resolve(read, table), table)

    @property
    def can_judge(self) -> bool:
        return self.classes is not None

    def check(self, header: Header) -> None:
        check_label(header, self.read.lossy)

    def stored(self, sides: tuple[int | None, ...] | None) -> Field:
        assert self.classes is not None, "without classes there is no recipe"
        return classes_field(self.name, self.options.form, self.classes, sides)


plan = PlannedClasses.of
