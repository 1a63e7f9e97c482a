"""Make the plan of a build: a chain of steps. Each takes values and returns one with its problems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from packer.config.options import MTIME
from packer.pairs.split_exact import NOT_COUNTED
from packer.pixels.resize import Geometry
from packer.plan.check_heads import CheckedHeads, check_heads, judged_by
from packer.plan.choose_shape import check_shape, choose_shape
from packer.plan.draw_blocks import draw_blocks
from packer.plan.fields.planned_field import PlannedField
from packer.plan.find_rows import find_rows
from packer.plan.found_rows import FoundRows
from packer.plan.inspect_sample import inspect_sample
from packer.plan.plan import Plan
from packer.plan.plan_fields import plan_fields
from packer.plan.problems import BEFORE, Problems, too_many
from packer.plan.request import Request
from packer.plan.reuse import PreviousBuild
from packer.publish.free_space import free_space
from packer.publish.generation import current_manifest, known_digests
from packer.publish.manifest_size import check_manifest_size
from packer.recipe.cut import cut, parts_of
from packer.recipe.recipe import Recipe, tools_of
from packer.recipe.shard_spec import ShardSpec
from packer.runtime import Timer, no_collecting
from packer.shards.count_sizes import count_sizes
from packer.shards.formats import writer
from packer.shards.stamps import load_stamps
from packer.workers.pool import Pool
from readers.contract.fields import VOLUME
from readers.contract.receipt_facts import AllReceipts
from readers.contract.tiles import picture_of


@no_collecting()
def make_plan(
    request: Request, distrusted: frozenset[str] = frozenset(), pool: Pool | None = None, parts: Path | None = None
) -> Plan:
    """Find the pairs, check every header that is not known, and cut the shards. Distrusted ones are not reused.

    A pool that is given stays open. Without one, a new pool decodes the sample. `parts` is the folder in which parts
    may have read headers before.
    """
    with opened(request, pool) as pool:
        return _plan(request, distrusted, pool, parts)


@contextmanager
def opened(request: Request, pool: Pool | None = None) -> Iterator[Pool]:
    """Check a request, and open what its plan needs."""
    check_shape(request)
    with ExitStack() as stack:
        if pool is None:
            pool = stack.enter_context(request.running.open_pool())
        if request.rows.objects is not None:
            stack.enter_context(request.rows.objects.named())
        yield pool


def _plan(request: Request, distrusted: frozenset[str], pool: Pool, parts: Path | None) -> Plan:
    """Take the steps of a plan, and raise one error with all problems that they found."""
    out, judgement, timer = request.store.out, request.judgement, Timer()
    stamps = [shard for shard in load_stamps(out) if shard.stem not in distrusted]
    if parts not in (None, out):
        stamps += load_stamps(parts)
    with timer.step("find"):
        found_rows = search(request, pool)
    fields = plan_fields(found_rows, request.fields)
    problems = Problems(*found_rows.problems, *fields.problems)
    if parts is not None and (judged := judged_by(found_rows, fields.fields, request.shape.resolution)):
        from packer.plan.header_blocks import HeaderBlocks  # a build has no parts

        HeaderBlocks(parts, found_rows, judged).check()
    previous = PreviousBuild(out, found_rows.source, found_rows.refs, stamps, judgement.trust)
    with timer.step("check"):
        heads = check_heads(found_rows, fields.fields, previous, request.shape.resolution, pool)
    geometry, recipe = problems.attempt(choose_shape, found_rows, heads, request.shape), None
    if geometry is not None and fields.are_known:
        recipe = problems.attempt(_recipe, found_rows, fields.fields, geometry, request)
        if recipe is None:
            fields = replace(fields, classes=None)  # too large for every message to a worker
    unchanged = np.zeros(len(found_rows.refs), np.bool_) if recipe is None else previous.unchanged(recipe.fingerprint())
    with timer.step("audit"):
        trusted = unchanged if judgement.trust == MTIME else np.zeros_like(unchanged)
        sample = inspect_sample(found_rows, fields, request.fields, heads, recipe, trusted, pool)
    problems.add(*sample.problems)
    bad = {**heads.bad, **sample.bad}
    pairs_are_known = geometry is not None or bool(heads.good.any())
    problems.check(too_many(found_rows.refs, bad, judgement.limits, BEFORE) if pairs_are_known else None)
    assert recipe is not None, "without a recipe the build is refused"
    with timer.step("compare"):
        if request.rows.blocks is not None:
            drawn = draw_blocks(found_rows, heads, request.rows.blocks, recipe.geometry)
            found_rows, unchanged = drawn.found_rows, unchanged[drawn.numbers]
            bad = {row: bad[number] for row, number in enumerate(drawn.numbers.tolist()) if number in bad}
            heads = CheckedHeads(heads.sizes[drawn.numbers], bad)
        specs = tuple(_specs(found_rows, heads, recipe))
        reused = _reused(request, previous, specs, recipe)
    return Plan(
        request=request,
        recipe=recipe,
        found_rows=found_rows,
        specs=specs,
        reused=reused,
        unchanged=unchanged,
        sizes=count_sizes(heads.sizes),
        bad=bad,
        sampled=sample.rows,
        free_bytes=free_space(out),
        current=current_manifest(out),
        seconds=timer.seconds,
    )


def search(request: Request, pool: Pool) -> FoundRows:
    """Find the rows, and what is known of them only from pixels or annotations. Few builds import these steps."""
    rows, fields, out, pixels = request.rows, request.fields, request.store.out, NOT_COUNTED
    if rows.pairing.split_exact:
        from packer.plan.count_labels import count_labels

        pixels = count_labels(rows, fields.label, out, pool)
    found_rows = find_rows(rows, out, pixels)
    if not (found_rows.source.sizes_are_known and found_rows.source.types_are_known):
        from packer.plan.measure_rows import measure_rows

        found_rows = measure_rows(found_rows, fields, request.shape, pool)
    if found_rows.source.is_painted:
        from packer.plan.painted_classes import choose_classes

        found_rows = choose_classes(found_rows, fields)
    return found_rows


def _recipe(found_rows: FoundRows, fields: Sequence[PlannedField], geometry: Geometry, request: Request) -> Recipe:
    """Return the recipe. Raise InputError if the manifest of the pack would be too large."""
    store, sides = request.store, VOLUME if found_rows.source.gives_volumes else geometry.size
    rules = tuple(
        field.rule(sides, template) for field, template in zip(fields, found_rows.source.templates, strict=True)
    )
    tools = tools_of(found_rows.source, geometry, rules, writer(store.format).tool())
    blocks = None if request.rows.blocks is None else request.rows.blocks.blocks
    recipe = Recipe(store.format, geometry, rules, store.shard_bytes, tools, blocks, found_rows.files.place)
    check_manifest_size(recipe, found_rows.refs.splits)
    return recipe


def _reused(request: Request, previous: PreviousBuild, specs: Sequence[ShardSpec], recipe: Recipe) -> AllReceipts:
    """Return the facts of the shards that exist already, by the index of their spec."""
    reused = AllReceipts(known_digests(request.store.out), picture_of if recipe.cuts_tiles else str)
    fingerprint = recipe.fingerprint()
    for index, spec in enumerate(specs):
        receipt = previous.receipt(spec, fingerprint, request.judgement.retry_bad)
        if receipt is not None:
            reused.add(index, receipt)
    return reused


def _specs(found_rows: FoundRows, heads: CheckedHeads, recipe: Recipe) -> Iterator[ShardSpec]:
    """Cut the rows of each part of each split into shards."""
    start = 0
    for split, count in found_rows.refs.splits.items():
        for pieces in parts_of(
            found_rows.refs, heads.sizes, range(start, start + count), recipe.geometry, recipe.blocks
        ):
            yield from (ShardSpec(split, shard, recipe) for shard in cut(pieces, recipe))
        start += count
