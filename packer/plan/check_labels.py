"""The audit: a few labels are read before anything is packed, so that a wrong recipe shows at once, not after hours."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from packer.classes.load import TABLE_NAMES
from packer.errors import InputError, first_of
from packer.pairs.pair import Pair
from packer.pixels.label_codec import BINARY, INDEX, LabelRules
from packer.plan.palettes import Palettes
from packer.plan.sample import Eyes
from packer.workers.inspect import Glance, colour_parts
from readers.contract.classes import ClassTable

SAMPLE = 16
MOST_NAMED = 20
NOT_SAID = "the labels' palettes differ, so index and colour cannot both be the class; which of them is it?"
BY_COLOUR = "If the colour: give a class table of colours (name,r,g,b)."


def audit(
    eyes: Eyes, pairs: Sequence[Pair], classes: ClassTable, rules: LabelRules, asked: str, palettes_differ: bool
) -> dict[int, str]:
    """What is bad in a sample of the labels, by the places of the pairs. `asked` is the codec that the user named.

    A palette can be read two ways: where the sample shows that they differ, the user must say which is meant, and a
    colour that moves from index to index speaks so much against the index that naming the codec is not enough.
    """
    seen = eyes.look(pairs, SAMPLE, classes, rules)
    if rules.codec in (INDEX, BINARY) and not palettes_differ:
        read = {place: glance for place, glance in seen.items() if rules.codec == INDEX or not _is_gray(glance)}
        palettes = Palettes((pairs[place].label, glance) for place, glance in read.items())
        if palettes.moving:
            raise InputError(
                f"{NOT_SAID} {BY_COLOUR} If the index, although one colour is several of them: --label-codec index "
                "--palettes-differ",
                first_of(palettes.moving.values(), MOST_NAMED),
            )
        if palettes.doubts and asked != INDEX:
            raise InputError(
                f"{NOT_SAID} {BY_COLOUR} If the index: --label-codec index", first_of(palettes.doubts, MOST_NAMED)
            )
    return {place: glance.bad for place, glance in seen.items() if glance.bad is not None}


def _is_gray(glance: Glance) -> bool:
    """Whether a palette shows grays only, which a binary label is read by, and not by its indices."""
    parts = colour_parts(np.array(list(glance.colours), np.uint32))
    return bool((parts[:, :3] == parts[:, :1]).all())


def no_classes(eyes: Eyes, raw: Path, pairs: Sequence[Pair]) -> InputError:
    """Show what the labels hold, so that the answer can be typed at once."""
    seen = eyes.look(pairs, SAMPLE)
    found = {value for glance in seen.values() for value in glance.values}
    summary = f"{raw}: no class table; put {TABLE_NAMES[0]} (name,r,g,b) there, or name one with --classes FILE"
    if not found:
        return InputError(f"{summary}; packer probe shows what the labels hold")
    classes = [value for value in found if value != 255]
    proposal = f"perhaps --classes {max(classes, default=0) + 1}" + (" --ignore 255" if 255 in found else "")
    if len(classes) < 2 <= len(found):
        proposal = f"perhaps --classes {','.join(map(str, sorted(found)))}"
    values = ", ".join(first_of(sorted(found), 30))
    return InputError(
        f"{summary}; the labels hold numbers, so a number of classes will do, {proposal} (packer probe tells more)",
        [f"values in a sample of {len(seen)} of {len(pairs)} labels: {values}"],
    )
