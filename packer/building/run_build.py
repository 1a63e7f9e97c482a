"""A build: plan, build the shards, judge the bad pairs, publish."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from packer.building.finish import finish, keep_facts
from packer.building.summary import Summary
from packer.config.options import LOCK
from packer.plan.expected import Expected
from packer.plan.make_plan import make_plan
from packer.plan.plan import Plan
from packer.plan.request import Input, Request, request_of
from packer.progress import Advance, Progress, no_progress
from packer.publish.free_space import SHARD_SLACK
from packer.publish.lock import locked
from packer.publish.pin import check_pin
from packer.publish.target import check_target, is_ours, locked_target, make_target, prepare_target, tidy
from packer.runtime import Timer
from packer.workers.jobs import Urgent, nothing_urgent
from packer.workers.pool import Pool
from packer.workers.run import build_shards
from readers.contract.receipt import Receipt
from readers.contract.receipt_facts import AllReceipts
from readers.stores.open_store import url_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from packer.config.build_options import BuildOptions
    from packer.publish.bucket import Bucket
    from packer.workers.cluster_events import ClusterEvents

Builder: TypeAlias = "Callable[[Plan, Pool], Shards]"
Shards: TypeAlias = Generator[tuple[int, Receipt], None, None]
"""The number and the receipt of each shard when it is finished. Closing it stops the rest."""


def build_pack(
    raw: Input,
    out: str | PathLike[str],
    *,
    progress: Progress = no_progress,
    **options: Unpack[BuildOptions],
) -> Summary:
    """Pack the image/label pairs of the folder `raw` into `out`, as `packer build` does. `raw` may also be
    another pack, or a source.

    Options of the command have underscores here: `build_pack("raw", "out", size=(512, 512), labels="index")`. Raises a
    PackError with every problem found, and then `out` is unchanged. An error after publishing says so.
    """
    return build_from(request_of(raw, out, **options), progress)


def build_from(
    request: Request,
    progress: Progress = no_progress,
    planned: Callable[[Plan], object] = lambda plan: None,
    events: ClusterEvents | None = None,
    builder: Builder | None = None,
) -> Summary:
    """Build what a request asks for; `planned` hears of the plan before anything is decoded, and with --engine `events`
    of what happens on the cluster. `builder` builds the shards on this machine.
    """
    settings = request.settings
    with ExitStack() as stack:
        bucket = stack.enter_context(bucket_of(request))
        if bucket is not None:
            request = request.into(bucket.folder)
        out, running = request.store.out, request.running
        check_target(out, request.rows.raw)
        stack.enter_context(locked_target(out))
        pool = stack.enter_context(running.open_pool())
        chosen: Builder = builder or built_here
        build_all: Callable[[Plan], Shards] = lambda plan: chosen(plan, pool)  # noqa: E731
        if running.engine is not None:
            from packer.building.on_cluster import built_there
            from packer.engines.connect import connect
            from packer.workers.cluster_events import ClusterEvents  # a build on this machine imports no engines

            connection = stack.enter_context(connect(running.engine))
            build_all = partial(built_there, connection=connection, events=events or ClusterEvents(), bucket=bucket)
        check_pin(out)
        plan = make_plan(request, pool=pool)
        planned(plan)
        with progress("packing", plan.pieces, "rows") as advance:
            summary = build(plan, advance, pool, build_all, bucket)
        keep_facts(summary, settings, out, bucket)
    return summary


def bucket_of(request: Request) -> AbstractContextManager[Bucket | None]:
    """Open the bucket that OUT names; None if it is a folder."""
    url, store = url_of(request.settings["out"]), request.store
    if url is None:
        return nullcontext()
    from packer.publish.bucket import open_bucket

    return open_bucket(url, store.scratch, request.running.workers, store.no_conditions == LOCK)


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
    out, expected = plan.out, Expected.of(plan)
    make_target(out)
    with locked(out):
        prepare_target(out)
        tidy(out)
        with timer.step("build"):
            receipts = _build_shards(plan, advance, builder or partial(built_here, pool=pool), bucket)
            pool.close()
        summary = finish(expected, receipts, plan.reused.rows, out, bucket, timer)
    return replace(summary, stages={**plan.seconds, **summary.stages})


def _build_shards(
    plan: Plan, advance: Advance, builder: Callable[[Plan], Shards], bucket: Bucket | None
) -> AllReceipts:
    """The facts of the receipts of all shards, reused and new."""
    receipts = plan.reused.copy()
    advance(receipts.pieces)
    with ExitStack() as stack:
        shards = stack.enter_context(closing(builder(plan)))
        if bucket is not None and plan.request.running.engine is None:  # else the machines of the cluster send theirs
            shards = stack.enter_context(closing(bucket.sent(shards)))
        for number, receipt in shards:
            receipts.add(number, receipt)
            advance(len(receipt.sources))
    if bucket is not None:
        bucket.finish()
    return receipts


def built_here(plan: Plan, pool: Pool, rewrite: bool = False, urgent: Urgent = nothing_urgent) -> Shards:
    """Build the shards of a plan in worker processes of this machine, the wanted ones first; with `rewrite`, also files
    that are there."""
    numbers, specs = list(plan.new_specs), list(plan.new_specs.values())
    indices = {number: index for index, number in enumerate(numbers)}

    def urgent_indices() -> Iterable[int]:
        return (indices[number] for number in urgent() if number in indices)

    with closing(build_shards(specs, plan.found_rows.source, plan.out, pool, rewrite, urgent_indices)) as shards:
        for index, receipt in shards:
            yield numbers[index], receipt
