"""Building: run the plan, judge the rejects, publish."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from packer.data_checks import Findings, Seen, find
from packer.errors import PackError, RejectedError, TooManyRejectsError
from packer.plan.plan import Plan
from packer.publish.generation import commit
from packer.publish.lock import locked
from packer.publish.target import make_target, prepare_target, tidy
from packer.runtime import Stages
from packer.workers import Engine, build_shards, open_engine
from readers.contract.manifest import Manifest
from readers.contract.receipt import Receipt
from readers.contract.tiles import picture_of

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
    """What a build did. Every pair, or tile of one, is a row or a reject."""

    manifest: Manifest
    pairs: int
    pieces: int
    rows: int
    reused: int
    """Rows of shards that were there already."""
    rejects: tuple[tuple[str, str, str], ...]
    """Split, key and reason of each pair that is left out."""
    findings: Findings
    stages: Mapping[str, float]
    """Seconds, from the planning on."""

    @property
    def seconds(self) -> float:
        return sum(self.stages.values())


def build(plan: Plan, limits: Limits, progress: Progress, engine: Engine | None = None) -> Summary:
    """Build every shard of the plan and publish them. Raises, and publishes nothing, if there are too many rejects.

    An engine that is given has its workers ended when the shards are built; without one, a new engine builds them.
    """
    if engine is None:
        with open_engine(plan.request.workers, plan.request.task_timeout) as engine:
            return build(plan, limits, progress, engine)
    stages = Stages()
    if plan.rejects and not limits.allows(len(plan.rejects), plan.pairs):
        raise _too_many(
            plan.rejects, plan, limits, "by their headers and a sample of the labels; the rest comes after these"
        )
    plan.check_disk()
    request, out = plan.request, plan.request.out
    make_target(out)
    with locked(out):
        prepare_target(out)
        tidy(out)
        with stages.stage("build"):
            done = _build_shards(plan, progress, engine)
        rows, rejects = _judge(plan, limits, done)
        with stages.stage("publish"):
            manifest = commit(out, plan.recipe, done)
    with stages.stage("look back"):
        counts = dict(zip(manifest.classes.names, manifest.pixels.classes, strict=True))
        findings = find(_seen(done), plan.sizes, counts, manifest.pixels.ignored, request.near_duplicates)
    spent = {**plan.seconds, **stages.seconds}
    reused = sum(receipt.rows for receipt in plan.reused.values())
    return Summary(manifest, plan.pairs, plan.pieces, rows, reused, rejects, findings, spent)


def _build_shards(plan: Plan, progress: Progress, engine: Engine) -> list[Receipt]:
    """The receipts of all shards in order: of those that are there already, and of those that are built now."""
    request = plan.request
    receipts = dict(plan.reused)
    progress(sum(len(receipt.sources) for receipt in receipts.values()))
    numbers = list(plan.new_specs)
    specs = list(plan.new_specs.values())
    with closing(build_shards(specs, request.raw, request.out, engine)) as shards:
        for place, receipt in shards:
            receipts[numbers[place]] = receipt
            progress(len(receipt.sources))
    engine.close()  # the workers and their memory are not needed any more
    return [receipts[number] for number in range(len(plan.specs))]


def _judge(plan: Plan, limits: Limits, done: Sequence[Receipt]) -> tuple[int, tuple[tuple[str, str, str], ...]]:
    """The number of rows and the bad pairs, if there are not too many of these."""
    rows, rejected = sum(receipt.rows for receipt in done), sum(len(receipt.rejects) for receipt in done)
    if rows + rejected != plan.pieces:
        raise PackError(
            f"{plan.pieces} pairs or tiles went in, {rows} rows and {rejected} rejects came out: please report this"
        )
    rejects = _bad_pairs(done)
    if not limits.allows(len(rejects), plan.pairs) or rows == 0:
        raise _too_many([reason for _, _, reason in rejects], plan, limits)
    return rows, rejects


def _seen(receipts: Sequence[Receipt]) -> list[Seen]:
    """Every row and how its image looks."""
    return [
        Seen(receipt.split, key, look)
        for receipt in receipts
        for key, look in zip(receipt.keys, receipt.looks, strict=True)
    ]


def _bad_pairs(receipts: Sequence[Receipt]) -> tuple[tuple[str, str, str], ...]:
    """Every pair that is left out, once, also where each of its tiles is a reject."""
    bad = {(one.split, picture_of(reject.key)): reject.reason for one in receipts for reject in one.rejects}
    return tuple((split, key, reason) for (split, key), reason in bad.items())


def _too_many(reasons: Sequence[str], plan: Plan, limits: Limits, seen: str = "nothing was published") -> PackError:
    told = f"{len(reasons)} of {plan.pairs} pairs are bad"
    if not limits.skip:
        return RejectedError(f"{told} ({seen}); mend them, or leave them out with --on-bad skip", reasons)
    share = limits.most is not None and 0 < limits.most < 1
    most = "" if limits.most is None else f", over --max-bad {limits.most:{'.6g' if not share else '.4%'}}"
    return TooManyRejectsError(f"{told}{most} ({seen})", reasons)
