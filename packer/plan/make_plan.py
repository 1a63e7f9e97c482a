"""Make the plan of a build: check the raw folder, cut shards, find those that exist already."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from packer.errors import UsageError
from packer.pixels.choices import FAST, MOST_PIXELS, NATIVE, TILE
from packer.pixels.resize import Geometry
from packer.plan.check_rows import CheckedRows, check_rows
from packer.plan.plan import Plan
from packer.plan.request import Request
from packer.publish.free_space import free_space
from packer.publish.generation import current_manifest, known_digests
from packer.recipe.cut import cut, parts_of
from packer.recipe.shard_spec import ShardSpec
from packer.runtime import Timer, no_collecting
from packer.shards.count_sizes import count_sizes
from packer.shards.stamps import load_stamps
from packer.workers.pool import Pool
from packer.workers.run import open_pool
from readers.contract.receipt_facts import AllReceipts
from readers.contract.tiles import picture_of, size_text


@no_collecting()
def make_plan(request: Request, distrusted: frozenset[str] = frozenset(), pool: Pool | None = None) -> Plan:
    """Find the pairs, check every header that is not known, and cut the shards. Distrusted ones are not reused.

    A pool that is given stays open. Without one, a new pool decodes the sample.
    """
    _check_options(request)
    with ExitStack() as stack:
        if pool is None:
            pool = stack.enter_context(open_pool(request.workers, request.task_timeout))
        if request.source.objects is not None:
            stack.enter_context(request.source.objects.named())
        return _plan(request, distrusted, pool)


def _plan(request: Request, distrusted: frozenset[str], pool: Pool) -> Plan:
    timer = Timer()
    stamps = [shard for shard in load_stamps(request.out) if shard.stem not in distrusted]
    checked = check_rows(request, stamps, pool, timer)
    fingerprint = checked.recipe.fingerprint()
    with timer.step("compare"):
        specs = tuple(_specs(checked))
        name = picture_of if checked.recipe.cuts_tiles else str
        reused = AllReceipts(known_digests(request.out), name)
        for index, spec in enumerate(specs):
            receipt = checked.previous.receipt(spec, fingerprint, request.retry_bad)
            if receipt is not None:
                reused.add(index, receipt)
    return Plan(
        request=request,
        recipe=checked.recipe,
        found=checked.found,
        specs=specs,
        reused=reused,
        unchanged=checked.unchanged,
        sizes=count_sizes(checked.sizes),
        bad=checked.bad,
        sampled=checked.sampled,
        free_bytes=free_space(request.out),
        current=current_manifest(request.out),
        seconds=timer.seconds,
    )


def _check_options(request: Request) -> None:
    """Refuse options that contradict each other or need others."""
    if request.source.gives_volumes and {request.size, request.fit} - {None, NATIVE}:
        instead = ", or --volumes, if the rows are pictures" if request.source.volumes else ""
        raise UsageError(
            f"--size and --fit: volumes keep their own sizes, and training crops them; leave them out{instead}"
        )
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
        raise UsageError(
            f"--overlap {request.overlap}: must be smaller than a tile, which is {size_text(request.size)}"
        )
    if isinstance(request.size, tuple) and request.size[0] * request.size[1] > MOST_PIXELS:
        raise UsageError(f"--size {size_text(request.size)}: is over the limit of {MOST_PIXELS} pixels")
    size = request.size if isinstance(request.size, tuple) else None
    scales = size is not None and Geometry(size, request.fit or "stretch", request.interpolation).tools
    if request.decode == FAST and not scales:
        raise UsageError("--decode fast: needs --size, a --fit that scales, and --interpolation area or cubic")


def _specs(checked: CheckedRows) -> Iterator[ShardSpec]:
    """The shards of each part of each split."""
    recipe, refs, start = checked.recipe, checked.found.refs, 0
    for split, count in refs.splits.items():
        for pieces in parts_of(refs, checked.sizes, range(start, start + count), recipe.geometry):
            yield from (ShardSpec(split, shard, recipe) for shard in cut(pieces, recipe))
        start += count
