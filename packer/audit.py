"""The audit: a few labels are read before anything is packed, so that a wrong recipe shows at once, not after hours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from packer.errors import BadPair
from packer.labels import INDEX, LabelCodec, LabelRules
from packer.lookup import colour_codes
from packer.pairing import Pair
from packer.pictures.decode import decode_label
from packer.pictures.rules import MOST_PIXELS
from packer.rows import load_picture, naming
from readers.contract.classes import ClassTable

SAMPLE = 16
MOST_NAMED = 3

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


def audit(
    pairs: Sequence[Pair], raw: Path, classes: ClassTable, rules: LabelRules, max_pixels: int = MOST_PIXELS
) -> Audit:
    """Read a sample of the labels by these rules."""
    codec = LabelCodec(classes, rules, max_pixels)
    bad: dict[int, str] = {}
    seen: dict[int, tuple[int, str]] = {}
    moving: dict[int, str] = {}
    for place in sample(pairs):
        path = pairs[place].label
        try:
            with naming(path):
                data = load_picture(raw / path)
                codec.decode(data)
                shown = palette_entries(data, max_pixels) if rules.codec == INDEX else {}
        except BadPair as verdict:
            bad[place] = str(verdict)
            continue
        for index, code in shown.items():
            first, where = seen.setdefault(code, (index, path))
            if first != index:
                colour = f"#{code & 255:02x}{code >> 8 & 255:02x}{code >> 16:02x}"
                moving.setdefault(code, f"{colour} is index {first} in {where}, and index {index} in {path}")
    return Audit(bad, tuple(moving.values()))


def palette_entries(data: bytes, max_pixels: int) -> dict[int, int]:
    """The colour code of each index that a palette label uses; nothing for other labels."""
    colours = decode_label(data, as_index=False, lossy=True, max_pixels=max_pixels)
    if colours.ndim == 2 or colours.shape[2] != 3:
        return {}
    index = decode_label(data, as_index=True, lossy=True, max_pixels=max_pixels)
    if index.ndim != 2:
        return {}
    used, first = np.unique(index, return_index=True)
    codes = colour_codes(colours).reshape(-1)[first]
    return dict(zip(used.tolist(), codes.tolist(), strict=True))
