"""A build: plan, build the shards, judge the bad pairs, publish."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import replace
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from packer.build.judge import find, judge
from packer.build.remarks import keep_remarks_of
from packer.build.summary import Summary
from packer.config.config import Settings
from packer.config.effective import effective, from_python
from packer.config.last_build import NAME as LAST_BUILD
from packer.config.last_build import keep_settings
from packer.config.options import LOCK
from packer.errors import TargetError
from packer.plan.expected import Expected
from packer.plan.make_plan import make_plan
from packer.plan.plan import Plan
from packer.plan.request import Input, Request, is_from, raw_or_source
from packer.progress import Advance, Progress, no_progress
from packer.publish.bucket import Bucket, open_bucket
from packer.publish.free_space import SHARD_SLACK
from packer.publish.generation import commit
from packer.publish.lock import locked
from packer.publish.pin import check_pin
from packer.publish.target import check_target, is_ours, locked_target, make_target, prepare_target, tidy
from packer.runtime import Timer
from packer.workers.pool import Pool
from packer.workers.run import build_shards, open_pool
from readers.contract.errors import StoreError
from readers.contract.receipt import Receipt
from readers.contract.receipt_facts import AllReceipts
from readers.stores.open_store import url_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from packer.build.there import Rejected
    from packer.config.build_options import BuildOptions
    from packer.engines.submit import Waits

Shards: TypeAlias = Generator[tuple[int, Receipt], None, None]
"""The number and the receipt of each shard, as it is finished. Closing it stops the rest."""


def build_pack(
    raw: Input,
    out: str | PathLike[str],
    *,
    progress: Progress = no_progress,
    **options: Unpack[BuildOptions],
) -> Summary:
    """Pack the image/label pairs of the folder `raw` into `out`, as `packer build` does. `raw` may also be
    another pack, or a source.

    The options are those of the command, with underscores: `build_pack("raw", "out", size=(512, 512), labels="index")`.
    Raises a PackError with every problem found, and then `out` is unchanged. An error after publishing says so.
    """
    folder, source = raw_or_source(raw)
    name = "from" if folder is not None and is_from(folder) else "raw"
    settings = effective(from_python({**options, name: folder, "out": fspath(out)}))
    return build_from(settings, progress, request=Request.from_settings(settings, source))


def build_from(
    settings: Settings,
    progress: Progress = no_progress,
    planned: Callable[[Plan], object] = lambda plan: None,
    request: Request | None = None,
    rejected: Rejected = lambda key, reason, host: None,
    waits: Waits = lambda seconds: None,
) -> Summary:
    """Build with these effective settings; `planned` hears of the plan before anything is decoded.

    A `request` of these settings may have a source, which settings cannot name. With --engine, `rejected` hears of
    the first bad pairs of each shard while others are built, and `waits` of a cluster that has no workers.
    """
    request = request or Request.from_settings(settings)
    with ExitStack() as stack:
        bucket = stack.enter_context(bucket_of(str(settings["out"]), request))
        if bucket is not None:
            request = replace(request, out=bucket.folder)
        check_target(request.out, request.raw)
        stack.enter_context(locked_target(request.out))
        pool = stack.enter_context(open_pool(request.workers, request.task_timeout))
        builder = partial(built_here, pool=pool)
        if request.engine is not None:
            from packer.build.there import Cluster, built_there  # a build on this machine imports no engines
            from packer.engines.connect import connect

            connection = stack.enter_context(connect(request.engine))
            there = Cluster(connection, rejected, waits)
            builder = partial(built_there, settings=settings, cluster=there, bucket=bucket)
        check_pin(request.out)
        plan = make_plan(request, pool=pool)
        planned(plan)
        return build_plan(plan, settings, progress, pool, builder, bucket)


def bucket_of(out: str, request: Request) -> AbstractContextManager[Bucket | None]:
    """Open the bucket that OUT names; None if it is a folder."""
    url = url_of(out)
    if url is None:
        return nullcontext()
    return open_bucket(url, request.scratch, request.workers, request.no_conditions == LOCK)


def build_plan(
    plan: Plan,
    settings: Settings,
    progress: Progress,
    pool: Pool,
    builder: Callable[[Plan], Shards] | None = None,
    bucket: Bucket | None = None,
) -> Summary:
    """Build a plan and keep its settings in the pack, for `packer diff` and `packer repair`."""
    with progress("packing", plan.pieces, "rows") as advance:
        summary = build(plan, advance, pool, builder, bucket)
    keep_remarks_of(plan.request.out, summary)
    try:
        keep_settings(plan.request.out, settings)
        if bucket is not None:
            bucket.put(LAST_BUILD)
    except (TargetError, StoreError, OSError) as error:
        raise TargetError(f"{error}; generation {summary.manifest.generation} was published") from error
    return summary


def lock_if_there(out: Path) -> AbstractContextManager[None]:
    """Hold the lock of a pack. A new pack has no folder yet; `build` locks it when it makes the folder."""
    return locked(out) if is_ours(out) else nullcontext()


def build(
    plan: Plan,
    advance: Advance,
    pool: Pool,
    builder: Callable[[Plan], Shards] | None = None,
    bucket: Bucket | None = None,
) -> Summary:
    """Build every shard of the plan and publish them. Too many rejects are an error, and nothing is published.

    The pool is closed when the shards are built: its workers and their memory are not needed any more.
    """
    timer = Timer()
    if plan.refusal is not None:
        raise plan.refusal
    if bucket is None:
        plan.check_disk()
    else:
        bucket.check_scratch(plan.largest_bytes + SHARD_SLACK)
    out, expected = plan.request.out, Expected.of(plan)
    make_target(out)
    with locked(out):
        prepare_target(out)
        tidy(out)
        with timer.step("build"):
            receipts = _build_shards(plan, advance, builder or partial(built_here, pool=pool), bucket)
            pool.close()
        rows, rejects = judge(expected, receipts)
        with timer.step("look back"):
            findings = find(expected, receipts)
            findings.check(plan.request.fail_on)
        with timer.step("publish"):
            target = (out, None) if bucket is None else (bucket.store, bucket.before)
            manifest = commit(target[0], plan.recipe, receipts, target[1])
    return Summary(
        manifest=manifest,
        pairs=plan.pairs,
        pieces=plan.pieces,
        rows=rows,
        reused=plan.reused.rows,
        missing=tuple(map(str, plan.found.missing)),
        rejects=rejects,
        notes=receipts.notes,
        findings=findings,
        losses=receipts.losses,
        stages={**plan.seconds, **timer.seconds},
    )


def _build_shards(
    plan: Plan, advance: Advance, builder: Callable[[Plan], Shards], bucket: Bucket | None
) -> AllReceipts:
    """The facts of the receipts of all shards, reused and new."""
    receipts = plan.reused.copy()
    advance(receipts.pieces)
    with ExitStack() as stack:
        shards = stack.enter_context(closing(builder(plan)))
        if bucket is not None and plan.request.engine is None:  # else the machines of the cluster send theirs
            shards = stack.enter_context(closing(bucket.sent(shards)))
        for number, receipt in shards:
            receipts.add(number, receipt)
            advance(len(receipt.sources))
    if bucket is not None:
        bucket.finish()
    return receipts


def built_here(plan: Plan, pool: Pool, rewrite: bool = False) -> Shards:
    """Build the shards of a plan in worker processes of this machine; with `rewrite`, also files that are there."""
    numbers, specs = list(plan.new_specs), list(plan.new_specs.values())
    with closing(build_shards(specs, plan.found.source, plan.request.out, pool, rewrite)) as shards:
        for index, receipt in shards:
            yield numbers[index], receipt
