"""Read a sample of the labels before anything is packed: a wrong recipe shows at once, not after hours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from packer.classes.load import TABLE_NAMES
from packer.config.preset_evidence import likely_presets
from packer.errors import InputError, first_of
from packer.pixels.label_advice import advice_on
from packer.pixels.label_rules import BINARY, INDEX
from packer.plan.palettes import Palettes
from packer.plan.sample import LabelSampler
from packer.recipe.row_ref import RowRef
from packer.shards.inspect import LabelCounts, colour_parts

SAMPLE_SIZE = 16
MOST_NAMED = 20
MOST_VALUES_SHOWN = 30
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


def no_classes(sampler: LabelSampler, raw: Path | None, refs: Sequence[RowRef]) -> InputError:
    """Return an error that shows the values in the labels and proposes a --classes option."""
    sample = sampler.inspect(refs, SAMPLE_SIZE)
    found = Counter[int]()
    for label in sample.values():
        found.update(label.values)
    summary = f"{raw}: no class table; put {TABLE_NAMES[0]} (name,r,g,b) there, or name one with --classes FILE"
    if raw is None:
        summary = (
            "no class table; name the classes in the order of their numbers: --classes FILE, with a name in each line, "
            'or classes=["cell", "wall"] in Python'
        )
    if not found:
        return InputError(f"{summary}; packer probe shows what the labels hold")
    sizes = [label.size for label in sample.values() if label.size is not None]
    presets = likely_presets(found, [str(raw), *(refs[index].parts[sampler.label] for index in sample)], sizes)
    advice = advice_on(found, presets, has_palette=any(label.palette for label in sample.values()))
    values = ", ".join(first_of(sorted(found), MOST_VALUES_SHOWN))
    return InputError(
        f"{summary}; {advice} (packer probe shows more)",
        [f"values in a sample of {len(sample)} of {len(refs)} labels: {values}"],
    )
