"""Make the plan of a build: find pairs, check headers, read a sample of the labels, cut shards, find unchanged ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import groupby
from operator import attrgetter

from packer.classes.load import load_class_table
from packer.config.options import MTIME
from packer.decoding.decode import decoder_identity
from packer.decoding.pair_headers import check_pair
from packer.decoding.rules import MOST_PIXELS, ImageRules
from packer.errors import BadPair, InputError, UsageError, first_of
from packer.pairs.find import Pairing, find_pairs
from packer.pairs.pair import Pair
from packer.pixels.choices import NATIVE, TILE
from packer.pixels.label_rules import BINARY, BINARY_CLASSES, INSTANCE, LabelRules, resolve
from packer.pixels.resize import Geometry
from packer.plan.check_labels import check_labels, no_classes
from packer.plan.plan import Plan
from packer.plan.request import Request
from packer.plan.reuse import PreviousBuild
from packer.plan.sample import LabelSampler
from packer.publish.free_space import free_space
from packer.publish.generation import current_manifest
from packer.publish.manifest_size import check_manifest_size
from packer.recipe.cut import cut
from packer.recipe.piece import pieces
from packer.recipe.recipe import Recipe
from packer.recipe.shard_spec import ShardSpec
from packer.runtime import Timer, no_collecting
from packer.shards.build_shard import judged_by
from packer.shards.formats import writer
from packer.shards.stamps import load_stamps
from packer.workers.engine import Engine
from packer.workers.run import open_engine
from readers.contract.classes import ClassTable
from readers.contract.tiles import Size

CHECK_THREADS = 16
"""Reading headers waits for the disk, not for the processor."""


@no_collecting()
def make_plan(request: Request, distrusted: frozenset[str] = frozenset(), engine: Engine | None = None) -> Plan:
    """Find the pairs, check every header that is not known, and cut the shards. Distrusted ones are not reused.

    An engine that is given stays open. Without one, a new engine inspects the label sample.
    """
    _check_options(request)
    if engine is not None:
        return _plan(request, distrusted, engine)
    with open_engine(request.workers, request.task_timeout) as new_engine:
        return _plan(request, distrusted, new_engine)


def _plan(request: Request, distrusted: frozenset[str], engine: Engine) -> Plan:
    timer = Timer()
    with timer.step("find"):
        sampler = LabelSampler(request.raw, engine, request.max_pixels)
        count = partial(sampler.pixels, divisor=request.divisor if request.label_codec == INSTANCE else 1)
        pairing = find_pairs(request.raw, request.pairing, leave_out=request.out, count_pixels=count)
    classes = _classes(request, sampler, pairing)
    rules = resolve(LabelRules(request.label_codec, request.unknown, request.threshold, request.divisor), classes)
    image_rules = ImageRules(request.image_range, request.alpha, request.max_pixels)
    stamps = [shard for shard in load_stamps(request.out) if shard.stem not in distrusted]
    previous = PreviousBuild(request.out, request.raw, pairing.pairs, stamps, request.trust)
    with timer.step("check"):
        sizes, verdicts = _check_headers(request, pairing.pairs, previous, image_rules, rules)
    recipe = _recipe(request, pairing, classes, image_rules, rules, _geometry(request, sizes, verdicts))
    check_manifest_size(recipe, (pair.split for pair in pairing.pairs))
    fingerprint = recipe.fingerprint()
    unchanged = previous.unchanged(fingerprint)
    trusted = unchanged if request.trust == MTIME else [False] * len(unchanged)
    new = [
        pair for pair, size, skip in zip(pairing.pairs, sizes, trusted, strict=True) if size is not None and not skip
    ]
    with timer.step("audit"):
        verdicts += check_labels(sampler, new, classes, rules, request.label_codec, request.palettes_differ).values()
    with timer.step("compare"):
        specs = tuple(_specs(pairing.pairs, sizes, recipe))
        found = (previous.receipt(spec, fingerprint, request.retry_bad) for spec in specs)
        reused = {index: receipt for index, receipt in enumerate(found) if receipt is not None}
    counts = Counter(size for size in sizes if size is not None)
    return Plan(
        request=request,
        recipe=recipe,
        pairing=pairing,
        specs=specs,
        reused=reused,
        unchanged=tuple(unchanged),
        sizes=counts,
        rejects=tuple(verdicts),
        free_bytes=free_space(request.out),
        current=current_manifest(request.out),
        seconds=timer.seconds,
    )


def _classes(request: Request, sampler: LabelSampler, pairing: Pairing) -> ClassTable:
    classes = load_class_table(request.raw, request.classes, request.ignore)
    if classes is None and request.label_codec == BINARY:
        classes = BINARY_CLASSES
    if classes is None:
        raise no_classes(sampler, request.raw, pairing.pairs)
    return classes


def _recipe(
    request: Request,
    pairing: Pairing,
    classes: ClassTable,
    image_rules: ImageRules,
    label_rules: LabelRules,
    geometry: Geometry,
) -> Recipe:
    return Recipe(
        storage=request.storage,
        classes=classes,
        geometry=geometry,
        image_dtype=request.image_dtype,
        labels=request.labels,
        image_rules=image_rules,
        label_rules=label_rules,
        shard_bytes=request.shard_bytes,
        image_template=pairing.image_template,
        label_template=pairing.label_template,
        tools=(decoder_identity(), *geometry.tools, writer(request.storage).tool()),
    )


def _check_options(request: Request) -> None:
    """Refuse options that contradict each other or need others."""
    if request.fit == NATIVE and request.size not in (None, NATIVE):
        raise UsageError("--fit native: keeps the size of every picture, so it cannot be combined with --size")
    if request.size == NATIVE and request.fit not in (None, NATIVE):
        raise UsageError(
            f"--size native: keeps the size of every picture, so it cannot be combined with --fit {request.fit}"
        )
    if request.fit not in (None, "stretch", NATIVE) and request.size is None:
        raise UsageError(f"--fit {request.fit}: needs --size, the size to fit the pictures to")
    if (request.overlap or request.edge != "pad") and request.fit != TILE:
        raise UsageError("--overlap and --edge: need --fit tile")
    if isinstance(request.size, tuple) and request.overlap >= min(request.size):
        raise UsageError(f"--overlap {request.overlap}: must be smaller than a tile, which is {_shown(request.size)}")
    if isinstance(request.size, tuple) and request.size[0] * request.size[1] > MOST_PIXELS:
        raise UsageError(f"--size {_shown(request.size)}: is over the limit of {MOST_PIXELS} pixels")


def _geometry(request: Request, sizes: Sequence[Size | None], rejects: Sequence[str]) -> Geometry:
    if NATIVE in (request.size, request.fit):
        return Geometry(None, NATIVE, request.interpolation)
    size = request.size if isinstance(request.size, tuple) else _common_size(sizes, rejects)
    return Geometry(size, request.fit or "stretch", request.interpolation, request.overlap, request.edge)


def _specs(pairs: Sequence[Pair], sizes: Sequence[Size | None], recipe: Recipe) -> Iterator[ShardSpec]:
    """The shards of each split."""
    start = 0
    for split, members in groupby(pairs, key=attrgetter("split")):
        of_split = list(members)
        end = start + len(of_split)
        shards = cut(pieces(of_split, sizes[start:end], recipe.geometry), recipe)
        yield from (ShardSpec(split, shard, recipe) for shard in shards)
        start = end


def _check_headers(
    request: Request, pairs: Sequence[Pair], previous: PreviousBuild, image_rules: ImageRules, label_rules: LabelRules
) -> tuple[list[Size | None], list[str]]:
    """Return the size of each pair, None for a bad one, and the reasons of the bad ones."""
    sizes = previous.sizes(judged_by(image_rules, label_rules))

    def check(index: int) -> str | None:
        pair = pairs[index]
        try:
            sizes[index] = check_pair(request.raw, pair.image, pair.label, image_rules, label_rules.lossy)
        except BadPair as bad:
            return str(bad)
        return None

    unknown = [index for index, size in enumerate(sizes) if size is None]
    with ThreadPoolExecutor(CHECK_THREADS) as pool:
        return sizes, [reason for reason in pool.map(check, unknown) if reason is not None]


def _common_size(sizes: Sequence[Size | None], rejects: Sequence[str]) -> Size:
    """Return the size of all pictures. If they differ, the user must choose one."""
    counts = Counter(size for size in sizes if size is not None)
    if not counts:
        raise InputError("every pair is bad; fix the files", rejects)
    if len(counts) > 1:
        raise InputError(
            "the pictures have several sizes (height x width); choose one, such as --size 512x512, and --fit stretch, "
            "letterbox, crop-or-pad, shorter-side or tile; or keep the size of each picture: --size native",
            first_of(counts.most_common(), 20, "sizes", lambda item: f"{_shown(item[0])}: {item[1]} pairs"),
        )
    return next(iter(counts))


def _shown(size: Size) -> str:
    return f"{size[0]}x{size[1]}"
