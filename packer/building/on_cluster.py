"""Build the shards of a plan on a cluster, whose machines see OUT and the raw files: a folder, or a store."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from packer.engines.build_task import build_task
from packer.engines.engine import Connection
from packer.engines.submit import submit_all
from packer.engines.task import BuiltShard, Task
from packer.errors import TargetError
from packer.plan.plan import Plan
from packer.plan.shared_plan import shared_plan
from packer.publish.bucket import Bucket
from packer.publish.target import PLANS
from packer.recipe.plan_folder import PLAN
from packer.workers.cluster_events import ClusterEvents
from readers.contract.errors import DamagedError, StoreError
from readers.contract.manifest import SHARDS
from readers.contract.receipt import SUFFIX, Receipt, shard_stem


def built_there(
    plan: Plan, connection: Connection, events: ClusterEvents, bucket: Bucket | None
) -> Generator[tuple[int, Receipt], None, None]:
    """Yield the number and the receipt of each shard when it is in OUT. The largest shards are built first."""
    specs = plan.new_specs
    if not specs:
        return
    out = str(plan.out.absolute()) if bucket is None else bucket.store.url
    with _plan_for_all(plan, bucket) as (location, sha256):
        tasks = (
            Task(location, sha256, number, out, None, plan.request.running.task_timeout)
            for number in sorted(specs, key=lambda number: -specs[number].weight)
        )
        for task, built in submit_all(connection, build_task, tasks, events):
            for key, reason in built.rejects:
                events.rejected(key, reason, built.host)
            yield task.shard, _receipt(plan.out.absolute(), specs[task.shard].split, built, bucket)


@contextmanager
def _plan_for_all(plan: Plan, bucket: Bucket | None) -> Iterator[tuple[str, str]]:
    """Write the plan to OUT/plans, and remove it at the end. Yield its folder or URL, and its SHA-256."""
    with shared_plan(plan) as shared:
        if bucket is None:
            yield str(shared.folder), shared.sha256
            return
        folder = f"{PLANS}/{shared.folder.name}"
        names = sorted((path.name for path in shared.folder.iterdir()), key=lambda name: name == PLAN)
        try:
            for name in names:
                bucket.put(f"{folder}/{name}")
            yield f"{bucket.store.url}/{folder}", shared.sha256
        finally:
            with suppress(StoreError):  # what is left over does no harm
                bucket.store.delete(f"{folder}/{name}" for name in names)


def _receipt(out: Path, split: str, built: BuiltShard, bucket: Bucket | None) -> Receipt:
    """Return the receipt of a shard that a worker of a cluster has built."""
    name = f"{SHARDS}/{shard_stem(split, built.fingerprint)}{SUFFIX}"
    path = out / name
    try:
        if bucket is not None:
            path.write_bytes(bucket.store.read(name)[0])
        receipt = Receipt.load(path)
    except (DamagedError, FileNotFoundError) as error:
        target = out if bucket is None else bucket.store.url
        raise TargetError(
            f"{error}, although {built.host} has just written it; all machines must see the same {target}"
        ) from error
    if receipt.digest != built.receipt:
        raise TargetError(f"{path}: is not the receipt that {built.host} has just written")
    return receipt
