"""The audit: a few labels are read before anything is packed, so that a wrong recipe shows at once, not after hours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from packer.glance import Glance
from packer.labels import INDEX, LabelRules

SAMPLE = 16

T = TypeVar("T")


@dataclass(frozen=True)
class Audit:
    """What a sample of the labels shows: verdicts by the pair's place, and colours that are not always one index."""

    bad: Mapping[int, str]
    moving: tuple[str, ...]


def sample(items: Sequence[T], most: int = SAMPLE) -> list[int]:
    """The places of about `most` items, evenly spread, the first and the last among them."""
    if len(items) <= most:
        return list(range(len(items)))
    return sorted({round(number * (len(items) - 1) / (most - 1)) for number in range(most)})


def judge(seen: Mapping[int, tuple[str, Glance]], rules: LabelRules) -> Audit:
    """What glances at labels show: by the place of the pair, the label's path and the glance."""
    bad = {place: glance.bad for place, (_, glance) in seen.items() if glance.bad is not None}
    first: dict[int, tuple[int, str]] = {}
    moving: dict[int, str] = {}
    for path, glance in seen.values():
        for index, code in glance.palette.items() if rules.codec == INDEX else ():
            before, where = first.setdefault(code, (index, path))
            if before != index:
                colour = f"#{code & 255:02x}{code >> 8 & 255:02x}{code >> 16:02x}"
                moving.setdefault(code, f"{colour} is index {before} in {where}, and index {index} in {path}")
    return Audit(bad, tuple(moving.values()))
