"""The error of labels whose classes nothing names. A build that has a class table does not import this."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from packer.classes.load import PROPOSED_TABLES, TABLE_NAMES
from packer.config.preset_evidence import likely_presets
from packer.errors import InputError, first_of
from packer.pixels.label_advice import IGNORED, advice_on, class_values
from packer.plan.sample import SAMPLE_SIZE, LabelSampler
from packer.recipe.row_ref import RowRef

MOST_VALUES_SHOWN = 30


def no_classes(sampler: LabelSampler, raw: Path | None, refs: Sequence[RowRef]) -> InputError:
    """Return an error that shows the values in the labels and proposes a --classes option."""
    sample = sampler.inspect(refs, SAMPLE_SIZE)
    value_counts = Counter[int]()
    for label in sample.values():
        value_counts.update(label.values)
    summary = f"{raw}: no class table; put {TABLE_NAMES[0]} (name,r,g,b) there, or name one with --classes FILE"
    if raw is None:
        summary = (
            "no class table; name the classes in the order of their numbers: --classes FILE, with a name in each line, "
            'or classes=["cell", "wall"] in Python'
        )
    if not value_counts:
        return InputError(f"{summary}; packer probe shows what the labels hold")
    sizes = [label.size for label in sample.values() if label.size is not None]
    presets = likely_presets(value_counts, [str(raw), *(refs[index].parts[sampler.label] for index in sample)], sizes)
    advice = advice_on(value_counts, presets, has_palette=any(label.palette for label in sample.values()))
    if raw is not None and IGNORED not in class_values(value_counts):
        for path in (raw / name for name in PROPOSED_TABLES if (raw / name).is_file()):
            advice = f"perhaps --classes {path}{f' --ignore {IGNORED}' * (IGNORED in value_counts)}"
    values = ", ".join(first_of(sorted(value_counts), MOST_VALUES_SHOWN))
    return InputError(
        f"{summary}; {advice} (packer probe shows more)",
        [f"values in a sample of {len(sample)} of {len(refs)} labels: {values}"],
    )
