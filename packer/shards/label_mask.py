"""`LabelMask`: labels are ignored where the first picture has no data, if their rules say so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from packer.pixels.label_rules import IGNORE, LabelRules
from packer.recipe.field_rule import FieldRule
from packer.recipe.source import Lines
from packer.shards.kinds import Decoded, FieldKind
from packer.shards.kinds.picture import PictureKind


@dataclass(frozen=True)
class LabelMask:
    """The kind of the first picture, and the numbers of the labels that it masks."""

    picture: PictureKind
    labels: tuple[int, ...]

    @classmethod
    def of(cls, rules: Sequence[FieldRule], kinds: Sequence[FieldKind]) -> LabelMask | None:
        """Return the mask of fields with these rules; None if no label is ignored, or every pixel has data."""
        labels = tuple(
            number
            for number, rule in enumerate(rules)
            if isinstance(rule.read, LabelRules) and rule.read.no_data == IGNORE
        )
        picture = kinds[0]
        return cls(picture, labels) if labels and isinstance(picture, PictureKind) and rules[0].field.no_data else None

    def applied(self, fields: Sequence[Decoded]) -> list[Decoded]:
        """Return the fields of a row, their labels ignored where the picture has no data."""
        return [
            self._masked(decoded, fields[0]) if number in self.labels else decoded
            for number, decoded in enumerate(fields)
        ]

    def in_strip(self, label: Decoded, picture: Lines, strip: slice) -> Decoded:
        """Return a strip of a label, ignored where these lines of the picture have no data. Strips come in order."""
        return self._masked(label, self.picture.decode(picture.lines(strip.start, strip.stop)))

    def _masked(self, label: Decoded, picture: Decoded) -> Decoded:
        mask = self.picture.data_mask(picture)
        return label if mask is None else Decoded(label.pixels.ignored_outside(mask), label.size)
