"""A field of ids: the object that each pixel belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from packer.decoding.header import Header
from packer.decoding.rules import FileRules
from packer.pixels.choices import NUMBERS
from packer.pixels.field_options import IdsField
from packer.pixels.id_codec import LARGE, IdCodec, id_dtype
from packer.pixels.number_rules import IdRules
from packer.plan.fields.planned_field import PlannedField
from readers.contract.classes import ClassTable
from readers.contract.fields import Field
from readers.contract.kinds import IDS, INDEX

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class PlannedIds(PlannedField):
    """Numbers of objects. The largest type among the files is stored."""

    options: IdsField
    read: IdRules

    @classmethod
    def of(cls, options: IdsField, table: ClassTable | None, files: FileRules) -> Self:
        return cls(options, IdRules(options.codec), dtype=NUMBERS[options.dtype] if options.dtype else None)

    @property
    def needs_header(self) -> bool:
        return self.dtype is None

    def as_in(self, header: Header) -> Self:
        return replace(self, dtype=id_dtype(header, self.read))

    def most(self, forms: Mapping[Self, int]) -> Self:
        return max(forms, key=lambda form: form.dtype or "", default=self)

    def check(self, header: Header) -> None:
        IdCodec(self.read, self.dtype or LARGE).check(header)

    def stored(self, sides: tuple[int | None, ...] | None) -> Field:
        return Field(self.name, IDS, INDEX, self.dtype or LARGE, sides or (None, None))


plan = PlannedIds.of
