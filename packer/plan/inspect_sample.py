"""Decode a sample of the rows before anything is packed: a wrong recipe shows at once, not after hours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from packer.errors import InputError
from packer.pixels.choices import TILE
from packer.pixels.label_rules import LabelRules
from packer.plan.check_heads import CheckedHeads
from packer.plan.check_labels import check_palettes
from packer.plan.field_choice import FieldChoice
from packer.plan.fields.by_kind import read_rules
from packer.plan.found_rows import FoundRows
from packer.plan.plan_fields import PlannedFields
from packer.plan.problems import Problems
from packer.plan.sample import SAMPLE_SIZE, LabelSampler, spread_indices
from packer.recipe.recipe import Recipe
from packer.recipe.row_ref import RowRef
from packer.shards.giant_rows import may_be_giant
from packer.shards.inspect import LABEL_NUMBER, LabelCounts
from packer.workers.pool import Pool
from readers.contract import giant
from readers.contract.fields import IMAGE, LABEL


@dataclass(frozen=True)
class InspectedSample:
    """The rows that were decoded."""

    bad: Mapping[int, str]
    """The reasons of rows that cannot be packed, by their index."""
    rows: int
    problems: tuple[InputError, ...]


def inspect_sample(
    found_rows: FoundRows,
    planned: PlannedFields,
    choice: FieldChoice,
    heads: CheckedHeads,
    recipe: Recipe | None,
    trusted: NDArray[np.bool_],
    pool: Pool,
) -> InspectedSample:
    """Decode a sample of the rows that are not `trusted`, as the recipe says, or as its known part says."""
    sampler = LabelSampler(found_rows.source, pool, found_rows.files.max_pixels, planned.label)
    problems = Problems()
    if planned.lacks_table:
        from packer.plan.no_classes import no_classes

        problems.add(no_classes(sampler, found_rows.raw, [ref for ref in found_rows.refs if ref.parts[planned.label]]))
    new = np.flatnonzero(~trusted & heads.good & _fits(recipe, heads))
    indices = new[spread_indices(len(new), SAMPLE_SIZE)].tolist()
    has_further = any(field.name not in (IMAGE, LABEL) for field in planned.fields)
    counts = sampler.inspect(
        [found_rows.refs[index] for index in indices],
        SAMPLE_SIZE,
        planned.classes,
        read_rules(planned.fields),
        images=True,
        recipe=recipe if has_further else None,
    )
    sample = dict(zip(indices, counts.values(), strict=True))
    problems.attempt(_check_palettes, found_rows.refs, sample, planned, choice)
    bad = {index: label.bad for index, label in sample.items() if label.bad is not None}
    return InspectedSample(bad, len(sample), tuple(problems.errors))


def _fits(recipe: Recipe | None, heads: CheckedHeads) -> NDArray[np.bool_]:
    """Return which rows fit into memory: a sample is decoded at once."""
    if recipe is None or not (recipe.geometry.fit == TILE or may_be_giant(recipe.fields)):
        return np.ones(len(heads.sizes), np.bool_)
    areas: NDArray[np.int64] = heads.sizes.astype(np.int64).prod(1)
    return areas * sum(field.pixel_bytes for field in recipe.fields) <= giant.GIANT


def _check_palettes(
    refs: Sequence[RowRef], sample: Mapping[int, LabelCounts], planned: PlannedFields, choice: FieldChoice
) -> None:
    rules = next((field.read for field in planned.fields if field.name == LABEL), None)
    if isinstance(rules, LabelRules) and not choice.palettes_differ:
        labelled = {index: counts for index, counts in sample.items() if refs[index].parts[LABEL_NUMBER]}
        check_palettes(refs, labelled, rules.codec, choice.label.codec)
