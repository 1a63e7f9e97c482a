"""A field of values: a measured number for each pixel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from packer.decoding.header import Header
from packer.decoding.rules import FileRules
from packer.pixels.choices import NUMBERS
from packer.pixels.field_options import ValuesField
from packer.pixels.number_rules import ValueRules
from packer.pixels.value_codec import SCALED, ValueCodec, value_dtype, value_fill
from packer.plan.fields.planned_field import PlannedField
from readers.contract.classes import ClassTable
from readers.contract.fields import Field
from readers.contract.kinds import INDEX, VALUES

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class PlannedValues(PlannedField):
    """Measured numbers in the type of their files, or in one that the user chose."""

    options: ValuesField
    read: ValueRules

    @classmethod
    def of(cls, options: ValuesField, table: ClassTable | None, files: FileRules) -> Self:
        rules = ValueRules(options.invalid, options.scale, options.interpolation)
        return cls(options, rules, dtype=NUMBERS[options.dtype] if options.dtype else None)

    @property
    def needs_header(self) -> bool:
        return self.dtype is None

    def as_in(self, header: Header) -> Self:
        return replace(self, dtype=value_dtype(header, self.read))

    def check(self, header: Header) -> None:
        dtype = self.dtype or SCALED
        ValueCodec(self.read, dtype, value_fill(self.read, dtype)).check(header)
        if self.options.dtype is None:
            self.check_form(header)

    def stored(self, sides: tuple[int | None, ...] | None) -> Field:
        dtype = self.dtype or SCALED
        return Field(self.name, VALUES, INDEX, dtype, sides or (None, None), fill=value_fill(self.read, dtype))


plan = PlannedValues.of
