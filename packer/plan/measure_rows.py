"""Find the size of images that show it only when they are loaded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from packer.errors import InputError, UsageError, counted, first_of
from packer.pixels.choices import NATIVE, TILE
from packer.plan.field_choice import FieldChoice
from packer.plan.fields.by_kind import planned
from packer.plan.found_rows import FoundRows
from packer.plan.problems import problem_of
from packer.plan.request import ShapeChoice
from packer.plan.sample import SAMPLE_SIZE, LabelSampler, spread_indices
from packer.recipe.row_ref import RowRef
from packer.shards.inspect import LabelCounts
from packer.workers.pool import Pool
from readers.contract.tiles import Size, size_text

SEVERAL_PICTURES = (
    "the images have several sizes (height x width); choose one, such as size=(512, 512), or give Rows the "
    'size of each, sizes=..., and size="native" or fit="tile"'
)
SEVERAL_VOLUMES = (
    "the volumes have several sizes (depth x height x width); give Rows the size of each: Rows(keys, load, sizes=...)"
)


def measure_rows(found_rows: FoundRows, fields: FieldChoice, shape: ShapeChoice, pool: Pool) -> FoundRows:
    """Return the rows with the size that they are scaled to, or with the size of a sample, which all must then have.

    The sample is one of all rows, so that the rows of an earlier build do not decide. It also shows the types of fields
    that are stored unchanged.
    """
    rows = found_rows.source
    if not rows.sizes_are_known:
        for fit in (NATIVE, TILE):
            if fit in (shape.fit, shape.size):
                raise UsageError(
                    f"--fit {fit}: needs the size of each image before it is loaded: Rows(keys, load, sizes=...)"
                )
        if isinstance(shape.size, tuple):
            rows = rows.of_size(shape.size, scales=True)
    if rows.sizes_are_known and (rows.types_are_known or not _needs_types(found_rows, fields)):
        return replace(found_rows, source=rows)
    refs = [found_rows.refs[index] for index in spread_indices(len(found_rows.refs), SAMPLE_SIZE)]
    sample = LabelSampler(found_rows.source, pool, found_rows.files.max_pixels).heads(refs)
    if not rows.types_are_known:
        rows = rows.like(refs, [counts.heads for counts in sample])
    if not rows.sizes_are_known:
        rows = rows.of_size(_common_size(refs, sample), scales=False)
    return replace(found_rows, source=rows)


def _needs_types(found_rows: FoundRows, fields: FieldChoice) -> bool:
    """Return whether a field is stored unchanged."""
    return any(planned(field, None, found_rows.files).needs_header for field in fields.all)


def _common_size(refs: Sequence[RowRef], sample: Sequence[LabelCounts]) -> Size:
    sizes = Counter(counts.size for counts in sample if counts.size is not None)
    if not sizes:
        problems = [problem_of(refs[index], str(counts.bad)) for index, counts in enumerate(sample)]
        raise InputError(f"each row of a sample is bad ({counted(len(refs), 'row')})", problems)
    if len(sizes) > 1:
        are_volumes = len(next(iter(sizes))) == 3
        raise InputError(
            SEVERAL_VOLUMES if are_volumes else SEVERAL_PICTURES,
            first_of(sizes.most_common(), 20, "sizes", lambda item: f"{size_text(item[0])}: {item[1]} rows"),
        )
    return next(iter(sizes))
