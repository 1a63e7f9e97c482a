"""What the user decides about images: how far numbers reach, what becomes of alpha, how large a picture may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from readers.contract.json_entry import Entry

ALPHAS = ("refuse", "drop")
MOST_PIXELS = 1 << 28
"""A header may claim any size; decoding one of 60,000 x 60,000 would take the machine down."""


@dataclass(frozen=True)
class ImageRules:
    """`image_range` is what becomes 0 and 1: of the numbers in the file, so of 8 bits it would be 0,255."""

    image_range: tuple[float, float] | None = None
    alpha: str = "refuse"
    max_pixels: int = MOST_PIXELS

    def to_json(self) -> dict[str, Any]:
        return {
            "image_range": None if self.image_range is None else list(self.image_range),
            "alpha": self.alpha,
            "max_pixels": self.max_pixels,
        }

    @classmethod
    def from_json(cls, entry: Entry) -> ImageRules:
        limits = entry.maybe("image_range", entry.numbers)
        if limits is not None and (len(limits) != 2 or not limits[0] < limits[1]):
            entry.problem("image_range", "expected a low and a higher number")
            limits = None
        rules = cls(
            image_range=None if limits is None else (limits[0], limits[1]),
            alpha=entry.choice("alpha", ALPHAS),
            max_pixels=entry.whole("max_pixels", least=1),
        )
        entry.close()
        return rules
