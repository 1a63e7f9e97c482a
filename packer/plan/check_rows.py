"""Check a raw folder for a build: pairs, classes, headers, sizes and a decoded sample. All problems at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from packer.classes.load import load_class_table, named_classes
from packer.config.options import MTIME
from packer.errors import BadPair, InputError, Problem, UsageError, counted, first_of
from packer.pixels.choices import NATIVE, TILE
from packer.pixels.label_rules import BINARY, BINARY_CLASSES, INSTANCE, LabelRules
from packer.pixels.resize import Geometry
from packer.plan.assume_size import assume_size
from packer.plan.check_labels import SAMPLE_SIZE, check_palettes, no_classes
from packer.plan.fields.by_kind import check_headers, read_rules
from packer.plan.fields.planned_field import PlannedField
from packer.plan.plan_fields import plan_fields
from packer.plan.problems import BEFORE, Refusals, problem_of, too_many
from packer.plan.request import Request
from packer.plan.reuse import PreviousBuild
from packer.plan.sample import LabelSampler, spread_indices
from packer.publish.manifest_size import check_manifest_size
from packer.recipe.field_rule import judged
from packer.recipe.recipe import Recipe, tools_of
from packer.recipe.ref_table import CHUNK
from packer.recipe.row_ref import RowRef
from packer.runtime import Timer
from packer.shards.count_sizes import count_sizes
from packer.shards.formats import writer
from packer.shards.giant_rows import may_be_giant
from packer.shards.inspect import LABEL_NUMBER, LabelCounts
from packer.shards.stamps import StoredStamps
from packer.sources.open_source import FoundRows
from packer.workers.pool import Pool
from readers.contract import giant
from readers.contract.classes import ClassTable
from readers.contract.fields import IMAGE, LABEL, VOLUME
from readers.contract.tiles import Size, picture_of, size_text


@dataclass(frozen=True)
class CheckedRows:
    """The pairs of a raw folder, how they will be packed, and what is known about each before it is packed."""

    found: FoundRows
    previous: PreviousBuild
    recipe: Recipe
    sizes: NDArray[np.uint32]
    """The sides of each row; all 0 if its headers are bad."""
    unchanged: NDArray[np.bool_]
    """For each row: is it in a shard of this recipe, and did it not change?"""
    bad: Mapping[int, str]
    """The reason of each bad pair, by its index."""
    sampled: int
    """The number of pairs that were decoded."""


def check_rows(request: Request, stamps: Sequence[StoredStamps], pool: Pool, timer: Timer) -> CheckedRows:
    """Check everything that a build can know before it packs. Raise one error with all problems that stop it."""
    with timer.step("find"):
        divisor = request.divisor if request.label_codec == INSTANCE else 1
        found, refusal = request.source.find_rows(
            request.raw,
            request.out,
            request.max_pixels,
            lambda source, refs: LabelSampler(source, pool, request.max_pixels).pixels(refs, divisor),
            request.slide_level,
        )
        found = assume_size(request, found, LabelSampler(found.source, pool, request.max_pixels))
        found, unknown = _with_painted_classes(request, found)
    refs, refusals = found.refs, Refusals(refusal, unknown)
    names = [field.name for field in found.packed or request.fields]
    label = names.index(LABEL) if LABEL in names else 0
    sampler = LabelSampler(found.source, pool, request.max_pixels, label)
    classes = refusals.attempt(lambda: found.classes or _classes(request, sampler, found)) if label else None
    fields = refusals.attempt(lambda: plan_fields(request, found, classes)) or ()
    previous = PreviousBuild(request.out, found.source, refs, stamps, request.trust)
    with timer.step("check"):
        sizes, bad = _check_heads(found, previous, fields)
    geometry = refusals.attempt(lambda: _geometry(request, found, sizes, [problem_of(refs[i], bad[i]) for i in bad]))
    recipe = None
    if fields and bool(label) == (classes is not None) and geometry is not None:
        recipe = refusals.attempt(partial(_recipe, request, found, fields, geometry))
        classes = classes if recipe is not None else None  # too large for every message to a worker
    unchanged = np.zeros(len(refs), np.bool_) if recipe is None else previous.unchanged(recipe.fingerprint())
    with timer.step("audit"):
        new = np.flatnonzero(_untrusted(request, unchanged) & _fits(recipe, sizes))
        chosen = new[spread_indices(len(new), SAMPLE_SIZE)].tolist()
        counts = _inspect(sampler, [refs[i] for i in chosen], fields, classes, recipe)
        sample = dict(zip(chosen, counts.values(), strict=True))
        refusals.attempt(lambda: _check_palettes(request, refs, sample, fields))
    bad |= {index: counts.bad for index, counts in sample.items() if counts.bad is not None}
    rejected = too_many([(refs[index], reason) for index, reason in bad.items()], request.limits, len(refs), BEFORE)
    refusals.check(rejected if sizes.any() or geometry is not None else None)
    assert recipe is not None, "without a recipe the build is refused"
    return CheckedRows(found, previous, recipe, sizes, unchanged, bad, len(sample))


def _fits(recipe: Recipe | None, sizes: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return which rows are good so far, and fit into memory: a sample is decoded at once."""
    good = sizes[:, 0] > 0
    if recipe is not None and recipe.geometry.fit == NATIVE and may_be_giant(recipe.fields):
        areas: NDArray[np.int64] = sizes.astype(np.int64).prod(1)
        good &= areas * sum(field.pixel_bytes for field in recipe.fields) <= giant.GIANT
    return good


def _with_painted_classes(request: Request, found: FoundRows) -> tuple[FoundRows, InputError | None]:
    """Return the rows with the classes that are painted, and the error of categories that are in no class."""
    if not found.source.is_painted:
        return found, None
    from packer.plan.painted_classes import choose_classes  # a build of label pictures imports no annotations

    return choose_classes(request, found)


def _inspect(
    sampler: LabelSampler,
    refs: Sequence[RowRef],
    fields: Sequence[PlannedField],
    classes: ClassTable | None,
    recipe: Recipe | None,
) -> dict[int, LabelCounts]:
    """Inspect a sample as the recipe says, or as far as it is known."""
    has_further = any(field.name not in (IMAGE, LABEL) for field in fields)
    further = recipe if has_further else None
    return sampler.inspect(refs, SAMPLE_SIZE, classes, read_rules(fields), images=True, recipe=further)


def _classes(request: Request, sampler: LabelSampler, found: FoundRows) -> ClassTable:
    given = request.classes or (named_classes(found.class_names) if found.class_names else None)
    classes = load_class_table(request.raw, given, request.ignore)
    if classes is None and request.label_codec == BINARY:
        classes = BINARY_CLASSES
    if classes is None:
        raise no_classes(sampler, request.raw, [ref for ref in found.refs if ref.parts[sampler.label]])
    return classes


def _recipe(request: Request, found: FoundRows, fields: Sequence[PlannedField], geometry: Geometry) -> Recipe:
    templates = found.source.templates
    sides = VOLUME if found.source.gives_volumes else geometry.size
    rules = tuple(field.rule(sides, template) for field, template in zip(fields, templates, strict=True))
    tools = tools_of(found.source, geometry, rules, writer(request.storage).tool())
    recipe = Recipe(request.storage, geometry, rules, request.shard_bytes, tools)
    check_manifest_size(recipe, found.refs.splits)
    return recipe


def _geometry(request: Request, found: FoundRows, sizes: NDArray[np.uint32], problems: Sequence[Problem]) -> Geometry:
    if found.source.gives_volumes or NATIVE in (request.size, request.fit):
        return Geometry(None, NATIVE, request.interpolation)
    size = request.size if isinstance(request.size, tuple) else _common_size(sizes, problems)
    _check_tiles(request, found, sizes, size)
    return Geometry(size, request.fit or "stretch", request.interpolation, request.overlap, request.edge)


def _check_tiles(request: Request, found: FoundRows, sizes: NDArray[np.uint32], size: Size) -> None:
    """Refuse to resize or cut the tiles of a pack: their keys name their positions in the pictures."""
    changes = request.fit == TILE or bool((sizes[sizes[:, 0] > 0] != size).any())
    if found.packed and changes and any(picture_of(ref.key) != ref.key for ref in found.refs):
        raise UsageError(
            "the rows of this pack are tiles, whose keys name their positions in the pictures; "
            "they keep their size: leave out --size and --fit, or build from the files"
        )


def _check_heads(
    found: FoundRows, previous: PreviousBuild, fields: Sequence[PlannedField]
) -> tuple[NDArray[np.uint32], dict[int, str]]:
    """Return the size of each row, zeros for a bad one, and the reasons of the bad ones by their index."""
    sizes, bad = previous.sizes(_judged(fields)), {}
    unknown = np.flatnonzero(sizes[:, 0] == 0)
    for first in range(0, len(unknown), CHUNK):
        some = unknown[first : first + CHUNK]
        refs = found.refs.take(some)
        for index, ref, heads in zip(some.tolist(), refs, found.source.heads(refs), strict=True):
            if isinstance(heads, str):
                bad[index] = heads
                continue
            try:
                check_headers(fields, ref, heads)
            except BadPair as reason:
                bad[index] = str(reason)
            else:
                sizes[index] = heads[0].size
    return sizes, bad


def _judged(fields: Sequence[PlannedField]) -> str:
    """Return the fingerprint of what decides whether headers are good; none if the label has no classes."""
    if not all(field.can_judge for field in fields):
        return ""
    return judged(field.rule(None, "") for field in fields)


def _untrusted(request: Request, unchanged: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the rows of which a sample is decoded."""
    return ~unchanged if request.trust == MTIME else np.ones_like(unchanged)


def _check_palettes(
    request: Request, refs: Sequence[RowRef], sample: Mapping[int, LabelCounts], fields: Sequence[PlannedField]
) -> None:
    rules = next((field.read for field in fields if field.name == LABEL), None)
    if isinstance(rules, LabelRules) and not request.palettes_differ:
        labelled = {index: counts for index, counts in sample.items() if refs[index].parts[LABEL_NUMBER]}
        check_palettes(refs, labelled, rules.codec, request.label_codec)


def _common_size(sizes: NDArray[np.uint32], problems: Sequence[Problem]) -> Size:
    """Return the size of all pictures. If they differ, the user must choose one."""
    counts = count_sizes(sizes)
    if not counts:
        raise InputError("every pair is bad; fix the files", problems)
    if len(counts) > 1:
        raise InputError(
            "the pictures have several sizes (height x width); choose one, such as --size 512x512, and --fit stretch, "
            "letterbox, crop-or-pad, shorter-side or tile; or keep the size of each picture: --size native",
            first_of(
                counts.most_common(), 20, "sizes", lambda item: f"{size_text(item[0])}: {counted(item[1], 'pair')}"
            ),
        )
    return next(iter(counts))
