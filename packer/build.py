"""Building: run the plan, judge the rejects, publish."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

from packer.commit import commit
from packer.engines import TASK_TIMEOUT, build_shards
from packer.errors import PackError, RejectedError, TooManyRejectsError
from packer.plan import Plan
from packer.target import prepare_target
from readers.contract.manifest import Manifest
from readers.contract.receipt import Receipt

Progress = Callable[[int], None]
"""Called with the number of pairs that were just done."""


@dataclass(frozen=True)
class Limits:
    """How many bad pairs a build puts up with: none, or with `skip` any number up to `most`, in pairs or as a share."""

    skip: bool = False
    most: float | None = None

    def allows(self, rejects: int, pairs: int) -> bool:
        if not self.skip:
            return rejects == 0
        return self.most is None or rejects <= (self.most if self.most >= 1 or self.most == 0 else self.most * pairs)


@dataclass(frozen=True)
class Summary:
    """What a build did. Every pair is a row or a reject."""

    manifest: Manifest
    pairs: int
    rows: int
    rejects: tuple[tuple[str, str, str], ...]
    """Split, key and reason of each."""
    seconds: float


def build(plan: Plan, limits: Limits, workers: int, progress: Progress, task_timeout: int = TASK_TIMEOUT) -> Summary:
    """Build every shard of the plan and publish them; raises, and publishes nothing, where the rejects are too many."""
    started = time.monotonic()
    if plan.rejects and not limits.allows(len(plan.rejects), plan.pairs):
        raise _too_many(plan.rejects, plan, limits, "by their headers alone; pixels come after these")
    plan.check_disk()
    out = plan.request.out
    prepare_target(out)
    receipts: list[Receipt | None] = [None] * len(plan.specs)
    with closing(build_shards(plan.specs, plan.request.raw, out, workers, task_timeout)) as shards:
        for number, receipt in shards:
            receipts[number] = receipt
            progress(len(receipt.sources))
    done = [receipt for receipt in receipts if receipt is not None]
    rejects = tuple((one.split, reject.key, reject.reason) for one in done for reject in one.rejects)
    rows = sum(receipt.rows for receipt in done)
    if rows + len(rejects) != plan.pairs:
        raise PackError(
            f"{plan.pairs} pairs went in, {rows} rows and {len(rejects)} rejects came out: please report this"
        )
    if not limits.allows(len(rejects), plan.pairs) or rows == 0:
        raise _too_many([reason for _, _, reason in rejects], plan, limits)
    manifest = commit(out, plan.recipe, done)
    return Summary(manifest, plan.pairs, rows, rejects, time.monotonic() - started)


def all_cores() -> int:
    """The cores this process may use, which on a shared machine are fewer than there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _too_many(reasons: Sequence[str], plan: Plan, limits: Limits, seen: str = "nothing was published") -> PackError:
    told = f"{len(reasons)} of {plan.pairs} pairs are bad"
    if not limits.skip:
        return RejectedError(f"{told} ({seen}); mend them, or leave them out with --on-bad skip", reasons)
    share = limits.most is not None and 0 < limits.most < 1
    most = "" if limits.most is None else f", over --max-bad {limits.most:{'.6g' if not share else '.4%'}}"
    return TooManyRejectsError(f"{told}{most} ({seen})", reasons)
