"""The end of every build: judge the shards, look back at the data, publish, and keep what later builds ask for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from packer.building.check_result import find, judge
from packer.building.remarks import keep_remarks_of
from packer.building.summary import Summary
from packer.config.config import Settings
from packer.config.last_build import NAME as LAST_BUILD
from packer.config.last_build import keep_settings
from packer.errors import TargetError
from packer.plan.expected import Expected
from packer.publish.generation import commit
from packer.publish.target import sync_shards
from packer.runtime import Timer
from readers.contract.errors import StoreError
from readers.contract.fields import Field
from readers.contract.kinds import CLASSES
from readers.contract.manifest import CELLS
from readers.contract.receipt_facts import AllReceipts

if TYPE_CHECKING:
    from packer.publish.bucket import Bucket


def finish(
    expected: Expected, receipts: AllReceipts, reused: int, out: Path, bucket: Bucket | None, timer: Timer
) -> Summary:
    """Publish the shards of a build if they may be published. `reused` rows are in shards that existed before."""
    rows, rejects = judge(expected, receipts)
    with timer.step("look back"):
        findings = find(expected, receipts)
        findings.check(expected.judgement.fail_on)
    with timer.step("publish"):
        if bucket is None:
            sync_shards(out)
            manifest = commit(out, expected.recipe, receipts)
            _add_cells(out, expected.recipe.fields, receipts)
        else:
            manifest = commit(bucket.store, expected.recipe, receipts, bucket.before)
    return Summary(
        manifest=manifest,
        pairs=expected.pairs,
        pieces=expected.pieces,
        rows=rows,
        reused=reused,
        missing=expected.missing,
        rejects=rejects,
        notes=receipts.notes,
        findings=findings,
        losses=receipts.losses,
        stages=timer.seconds,
    )


def _add_cells(out: Path, fields: Sequence[Field], receipts: AllReceipts) -> None:
    """Count the cells of reused shards that an older release built without."""
    names = {path.name.removesuffix(f".{CELLS}") for path in (out / CELLS).glob(f"*.{CELLS}")}
    labels = {field.name for field in fields if field.kind == CLASSES}
    shards = (facts for facts in receipts.values() if facts.rows)
    if not names.issuperset(f"{facts.stem}.{field}" for facts in shards for field in labels.intersection(facts.fields)):
        from packer.workers.add_cells import add_missing_cells  # it opens shards, and new builds need none

        add_missing_cells(out)


def keep_facts(summary: Summary, settings: Settings, out: Path, bucket: Bucket | None) -> None:
    """Keep the remarks of a build in its pack for reports, and its settings for `packer diff` and `packer repair`."""
    keep_remarks_of(out, summary)
    try:
        keep_settings(out, settings)
        if bucket is not None:
            bucket.put(LAST_BUILD)
    except (TargetError, StoreError, OSError) as error:
        raise TargetError(f"{error}; generation {summary.manifest.generation} was published") from error
