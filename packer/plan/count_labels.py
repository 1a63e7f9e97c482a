"""Count the pixels of all labels by class: --split-exact needs them before the rows have splits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from packer.pairs.split_exact import NOT_COUNTED, ClassPixels
from packer.pixels.field_options import ClassesField
from packer.pixels.label_rules import INSTANCE
from packer.plan.find_rows import find_rows
from packer.plan.row_search import RowSearch
from packer.plan.sample import LabelSampler
from packer.recipe.row_ref import RowRef
from packer.shards.inspect import LABEL_NUMBER
from packer.workers.pool import Pool


def count_labels(rows: RowSearch, label: ClassesField, out: Path, pool: Pool) -> Mapping[str, ClassPixels]:
    """Return the pixels of each label by class, by the path of its file. Nothing if the splits are not drawn by them.

    The pairs are found without splits for it. Problems of the pairs are reported when they are found again.
    """
    rules = rows.pairing
    if rules.split is None or not rules.has_label or rows.source is not None or rows.annotations is not None:
        return NOT_COUNTED
    undrawn = replace(rows, pairing=replace(rules, split=None, split_by=None, split_exact=False), only=())
    found_rows = find_rows(undrawn, out)
    refused = [
        split for split in found_rows.refs.splits if not (rules.split.is_drawn(split) or rules.split.stays(split))
    ]
    if found_rows.source.is_painted or refused:
        return NOT_COUNTED
    paths = [ref.parts[LABEL_NUMBER] for ref in found_rows.refs if rules.split.is_drawn(ref.split)]
    sampler = LabelSampler(found_rows.source, pool, found_rows.files.max_pixels)
    divisor = label.divisor if label.codec == INSTANCE else 1
    pixels = sampler.pixels([RowRef("", "", ("", path)) for path in paths], divisor)
    return dict(zip(paths, pixels, strict=True))
