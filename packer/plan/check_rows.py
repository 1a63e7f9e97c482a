"""Check a raw folder for a build: pairs, classes, headers, sizes and a decoded sample. All problems at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from packer.classes.load import load_class_table
from packer.config.options import MTIME
from packer.errors import BadPair, InputError, Problem, first_of
from packer.pixels.choices import NATIVE
from packer.pixels.label_rules import BINARY, BINARY_CLASSES, INSTANCE, LabelRules, resolve
from packer.pixels.resize import Geometry
from packer.plan.check_labels import SAMPLE_SIZE, check_palettes, no_classes
from packer.plan.problems import BEFORE, Refusals, problem_of, too_many
from packer.plan.request import Request
from packer.plan.reuse import PreviousBuild
from packer.plan.sample import LabelSampler
from packer.publish.manifest_size import check_manifest_size
from packer.recipe.read_rules import ReadRules
from packer.recipe.recipe import Recipe, tools_of
from packer.recipe.row_ref import RowRef
from packer.runtime import Timer
from packer.shards.formats import writer
from packer.shards.stamps import ShardStamps
from packer.sources.open_source import FoundRows
from packer.workers.engine import Engine
from packer.workers.inspect import LabelCounts
from readers.contract.classes import ClassTable
from readers.contract.tiles import Size


@dataclass(frozen=True)
class CheckedRows:
    """The pairs of a raw folder, how they will be packed, and what is known about each before it is packed."""

    found: FoundRows
    previous: PreviousBuild
    recipe: Recipe
    sizes: Sequence[Size | None]
    """The size of each pair; None if its headers are bad."""
    unchanged: Sequence[bool]
    """For each pair: is it in a shard of this recipe, with files of the same size and times?"""
    bad: Mapping[int, str]
    """The reason of each bad pair, by its index."""
    sampled: int
    """The number of pairs that were decoded."""


def check_rows(request: Request, stamps: Sequence[ShardStamps], engine: Engine, timer: Timer) -> CheckedRows:
    """Check everything that a build can know before it packs. Raise one error with all problems that stop it."""
    with timer.step("find"):
        divisor = request.divisor if request.label_codec == INSTANCE else 1
        found, refusal = request.source.find_rows(
            request.raw,
            request.out,
            request.max_pixels,
            lambda source, refs: LabelSampler(source, engine, request.max_pixels).pixels(refs, divisor),
        )
    refs, refusals = found.refs, Refusals(refusal)
    sampler = LabelSampler(found.source, engine, request.max_pixels)
    classes = refusals.attempt(lambda: _classes(request, sampler, refs))
    rules = _read_rules(request, classes)
    previous = PreviousBuild(request.out, found.source, refs, stamps, request.trust)
    with timer.step("check"):
        sizes, bad = _check_heads(found, previous, rules)
    geometry = refusals.attempt(lambda: _geometry(request, sizes, [problem_of(refs[i], bad[i]) for i in bad]))
    recipe = None
    if classes is not None and geometry is not None:
        recipe = refusals.attempt(partial(_recipe, request, found, classes, rules, geometry))
        classes = classes if recipe is not None else None  # too large for every message to a worker
    unchanged = [False] * len(refs) if recipe is None else previous.unchanged(recipe.fingerprint())
    with timer.step("audit"):
        new = [index for index in _untrusted(request, unchanged) if sizes[index] is not None]
        sample = sampler.inspect([refs[i] for i in new], SAMPLE_SIZE, classes, rules, images=True)
        sample = {new[index]: counts for index, counts in sample.items()}
        refusals.attempt(lambda: _check_palettes(request, refs, sample, rules.label.codec))
    bad |= {index: counts.bad for index, counts in sample.items() if counts.bad is not None}
    rejected = too_many([(refs[index], reason) for index, reason in bad.items()], request.limits, len(refs), BEFORE)
    refusals.check(rejected if any(sizes) or geometry is not None else None)
    assert recipe is not None, "without a recipe the build is refused"
    return CheckedRows(found, previous, recipe, sizes, unchanged, bad, len(sample))


def _classes(request: Request, sampler: LabelSampler, refs: Sequence[RowRef]) -> ClassTable:
    classes = load_class_table(request.raw, request.classes, request.ignore)
    if classes is None and request.label_codec == BINARY:
        classes = BINARY_CLASSES
    if classes is None:
        raise no_classes(sampler, request.raw, refs)
    return classes


def _read_rules(request: Request, classes: ClassTable | None) -> ReadRules:
    label = LabelRules(request.label_codec, request.unknown, request.threshold, request.divisor)
    if classes is not None:
        label = resolve(label, classes)
    return ReadRules.of(request.image_range, request.alpha, request.max_pixels, request.decode, label)


def _recipe(
    request: Request,
    found: FoundRows,
    classes: ClassTable,
    rules: ReadRules,
    geometry: Geometry,
) -> Recipe:
    recipe = Recipe(
        storage=request.storage,
        classes=classes,
        geometry=geometry,
        image_dtype=request.image_dtype,
        labels=request.labels,
        image_rules=rules.image,
        label_rules=rules.label,
        shard_bytes=request.shard_bytes,
        image_template=found.source.templates[0],
        label_template=found.source.templates[1],
        tools=tools_of(found.source, geometry, writer(request.storage).tool()),
    )
    check_manifest_size(recipe, (ref.split for ref in found.refs))
    return recipe


def _geometry(request: Request, sizes: Sequence[Size | None], problems: Sequence[Problem]) -> Geometry:
    if NATIVE in (request.size, request.fit):
        return Geometry(None, NATIVE, request.interpolation)
    size = request.size if isinstance(request.size, tuple) else _common_size(sizes, problems)
    return Geometry(size, request.fit or "stretch", request.interpolation, request.overlap, request.edge)


def _check_heads(
    found: FoundRows, previous: PreviousBuild, rules: ReadRules
) -> tuple[list[Size | None], dict[int, str]]:
    """Return the size of each row, None for a bad one, and the reasons of the bad ones by their index."""
    sizes, bad = previous.sizes(rules.judged), {}
    unknown = [index for index, size in enumerate(sizes) if size is None]
    refs = [found.refs[index] for index in unknown]
    for index, ref, heads in zip(unknown, refs, found.source.heads(refs), strict=True):
        if isinstance(heads, str):
            bad[index] = heads
            continue
        try:
            rules.check(ref, heads)
        except BadPair as reason:
            bad[index] = str(reason)
        else:
            sizes[index] = heads[0].size
    return sizes, bad


def _untrusted(request: Request, unchanged: Sequence[bool]) -> list[int]:
    """Return the pairs of which a sample is decoded, by their index."""
    return [index for index, same in enumerate(unchanged) if not same or request.trust != MTIME]


def _check_palettes(request: Request, refs: Sequence[RowRef], sample: Mapping[int, LabelCounts], codec: str) -> None:
    if not request.palettes_differ:
        check_palettes(refs, sample, codec, request.label_codec)


def _common_size(sizes: Sequence[Size | None], problems: Sequence[Problem]) -> Size:
    """Return the size of all pictures. If they differ, the user must choose one."""
    counts = Counter(size for size in sizes if size is not None)
    if not counts:
        raise InputError("every pair is bad; fix the files", problems)
    if len(counts) > 1:
        raise InputError(
            "the pictures have several sizes (height x width); choose one, such as --size 512x512, and --fit stretch, "
            "letterbox, crop-or-pad, shorter-side or tile; or keep the size of each picture: --size native",
            first_of(counts.most_common(), 20, "sizes", lambda item: f"{size_text(item[0])}: {item[1]} pairs"),
        )
    return next(iter(counts))


def size_text(size: Size) -> str:
    """Return a size as options write it."""
    return f"{size[0]}x{size[1]}"
