"""Read a sample of the labels before anything is packed: a wrong recipe shows at once, not after hours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from packer.errors import InputError, first_of
from packer.pixels.label_rules import BINARY, INDEX
from packer.plan.palettes import Palettes
from packer.recipe.row_ref import RowRef
from packer.shards.inspect import LabelCounts, colour_parts

MOST_NAMED = 20
PALETTES_DIFFER = "the labels' palettes differ, so index and colour cannot both be the class; decide which one is"
BY_COLOUR = "If the colour: give a class table of colours (name,r,g,b)."


def check_palettes(refs: Sequence[RowRef], sample: Mapping[int, LabelCounts], codec: str, named_codec: str) -> None:
    """Refuse a sample of labels, by their index in `refs`, whose palettes contradict each other.

    `codec` reads the labels, and `named_codec` is the one that the user named. A palette can be read by index or by
    colour. If the two contradict each other in the sample, the user must decide. If one colour has several indices,
    naming the codec is not enough: the index is then probably wrong.
    """
    if codec in (INDEX, BINARY):
        by_index = {index: label for index, label in sample.items() if codec == INDEX or not _is_gray(label)}
        palettes = Palettes((refs[index].parts[1], label) for index, label in by_index.items())
        if palettes.moving:
            raise InputError(
                f"{PALETTES_DIFFER}. {BY_COLOUR} If the index, although one colour has several: --label-codec index "
                "--palettes-differ",
                first_of(palettes.moving.values(), MOST_NAMED),
            )
        if palettes.doubts and named_codec != INDEX:
            raise InputError(
                f"{PALETTES_DIFFER}. {BY_COLOUR} If the index: --label-codec index",
                first_of(palettes.doubts, MOST_NAMED),
            )


def _is_gray(label: LabelCounts) -> bool:
    """Return whether a palette has grays only. A binary label is then read by its grays, not by its indices."""
    parts = colour_parts(np.array(list(label.colours), np.uint32))
    return bool((parts[:, :3] == parts[:, :1]).all())
