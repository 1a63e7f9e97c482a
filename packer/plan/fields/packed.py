"""A field of a pack that the rows of a build come from: no rules read it, and it keeps its form."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from packer.decoding.header import Header
from packer.plan.fields.planned_field import PlannedField
from readers.contract.fields import Field


@dataclass(frozen=True)
class PackedField(PlannedField):
    """A field in the form of a pack, or in the form that this build asks for."""

    packed: Field = field(kw_only=True)

    def check(self, header: Header) -> None:
        """Accept every header: the rows were checked when they were packed."""

    def stored(self, sides: tuple[int | None, ...] | None) -> Field:
        return replace(self.packed, shape=(*self.packed.planes, *(sides or (None, None))), optional=False)
