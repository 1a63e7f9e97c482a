"""The eyes of `packer build` and `packer probe`: they look at a sample of pairs, in workers that may die of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packer.decoding.rules import MOST_PIXELS
from packer.pairs.pair import Pair
from packer.pixels.label_codec import AS_THE_TABLE_SAYS, LabelRules
from packer.workers import glances
from packer.workers.inspect import Glance, Question
from readers.contract.classes import ClassTable


@dataclass(frozen=True)
class Eyes:
    """Where they look, with how many workers, and for how long at one pair."""

    raw: Path
    workers: int
    task_timeout: int
    max_pixels: int = MOST_PIXELS

    def look(
        self,
        pairs: Sequence[Pair],
        most: int,
        classes: ClassTable | None = None,
        rules: LabelRules = AS_THE_TABLE_SAYS,
        images: bool = False,
    ) -> dict[int, Glance]:
        """Glances at the labels of about `most` pairs, with their images or without, by the places of the pairs."""
        places = sample(len(pairs), most)
        questions = [
            Question(pair.label, pair.image if images else None, classes, rules, self.max_pixels)
            for pair in (pairs[place] for place in places)
        ]
        seen = glances(questions, self.raw, self.workers, self.task_timeout)
        return dict(zip(places, seen, strict=True))


def sample(count: int, most: int) -> list[int]:
    """About `most` of `count` places, evenly spread, the first and the last among them."""
    if count <= most:
        return list(range(count))
    if most == 1:
        return [0]
    return sorted({round(number * (count - 1) / (most - 1)) for number in range(most)})
