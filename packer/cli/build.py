"""`packer build`: raw folder in, packed data set out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from packer.cli.configured import SETTINGS, ConfiguredCommand
from packer.cli.loading import loading
from packer.cli.log import LOG
from packer.cli.output import show
from packer.cli.progress import shown
from packer.cli.publishing import publishing
from packer.errors import UsageError

if TYPE_CHECKING:
    from packer.building import Summary
    from packer.building.run_build import Builder
    from packer.config.config import Settings
    from packer.plan.plan import Plan

PART_OPTIONS = ("--plan", "--part", "--raw", "--allow-functions")


class BuildCommand(ConfiguredCommand):
    """A command that once built parts of a plan, too."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.NoSuchOption as error:
            if error.option_name in PART_OPTIONS:
                raise UsageError(
                    f"{error.option_name}: is an option of packer build-part, for a plan of packer plan"
                ) from None
            raise


@click.command("build", cls=BuildCommand)
@click.pass_context
def build_command(ctx: click.Context, /, **_: Any) -> None:
    """Decode, resize and encode the pairs of RAW once, and pack them into OUT.

    \b
    Examples:
      packer build --format lmdb raw/ out/
      packer build --format hdf5 --size 512x512 --labels index raw/ out/
      packer build --classes 21 --ignore 255 --size 512x512 --fit letterbox VOC2012/ out/
      packer build --image 'scans/{patient}/{key}.png' --label 'truth/{patient}/{key}.png' \\
                   --split 80/10/10 --split-by patient raw/ out/
      packer build --preset cityscapes --size 512x1024 --print-config > packer.toml
      packer build --config packer.toml --workers 8 cityscapes/ out/
      packer build --from out/ --size 256x256 --only val --format arrow small/
      packer build --from cells.h5 --image images --label labels --classes 2 out/
      packer build --dry-run raw/ out/

    \b
    Layouts that need no options (describe any other layout with --image and --label):
      images/ + labels/ (masks/, annotations/), also with train/ val/ test/ inside or around
      train/ + train_labels/ (trainannot/), and VOC (JPEGImages/SegmentationClass/ImageSets)
      split lists in splits/, lists/ or RAW itself (train.txt, val.txt) are used if the folders name no splits

    Options can also be set as environment variables: PACKER_WORKERS=8 is --workers 8.
    """
    settings: Settings = ctx.meta[SETTINGS]
    LOG.form = str(settings["log-format"])
    if settings["dry-run"]:
        _show_plan(settings)
    elif settings["follow"]:
        with loading():
            from packer.cli.follow import follow_folder
        follow_folder(settings, _build)
    else:
        _build(settings)


def _build(settings: Settings, builder: Builder | None = None, is_first: bool = True) -> Summary:
    """Build and publish a pack, with words on stderr and the summary on stdout."""
    with loading(workers=True):
        from packer.building import build_from
        from packer.cli.build_text import plan_notes, size_notes, summary_json, summary_text
        from packer.cli.metrics import measured
        from packer.plan.request import Request
        from packer.workers.cluster_events import ClusterEvents
        from readers.stores.open_store import open_store, url_of
    metrics_file = settings.get("metrics-file")
    out = str(settings["out"])
    url = url_of(out)
    quiet = bool(settings["quiet"])
    after: list[str] = []

    def rejected(key: str, reason: str, host: str) -> None:
        if not quiet:
            _log_reject(key, reason, host)

    def waits(seconds: float) -> None:
        _log_waiting(str(settings["engine"]), seconds)

    events = ClusterEvents(rejected, waits, _log_failure, _log_avoided)

    def planned(plan: Plan) -> None:
        if not quiet and is_first:
            log_notes(plan_notes(plan))
            after.extend(size_notes(plan))

    with measured(None if metrics_file is None else Path(str(metrics_file))) as measure:
        with publishing(Path(out) if url is None else open_store(url)):
            request = Request.from_settings(settings)
            summary = build_from(request, shown(quiet), planned, events, builder)
            measure(summary)
        log_summary(summary if builder is None else replace(summary, missing=()))
        log_notes(after)
        show(json.dumps(summary_json(summary), indent=1) if settings["json"] else summary_text(summary, out))
    return summary


def _show_plan(settings: Settings) -> None:
    with loading():
        from packer.building.plan_build import reusable
        from packer.cli.build_text import plan_json, plan_text
        from packer.plan.make_plan import make_plan
        from packer.plan.request import Request
        from readers.stores.open_store import is_url
    request = Request.from_settings(settings)
    with reusable(str(settings["out"]), request) as planned:
        plan = make_plan(planned)
    show(json.dumps(plan_json(plan), indent=1) if settings["json"] else plan_text(plan, not is_url(settings["out"])))


def _log_reject(key: str, reason: str, host: str) -> None:
    """Log a bad pair that a worker of a cluster has found, while the others still build."""
    LOG.say("bad pair", f"bad pair  {key}: {reason}", row=key, reason=reason, host=host)


def _log_failure(shard: int, why: str) -> None:
    """Log that a worker of a cluster has failed, also with --quiet: one that goes on failing must be repaired."""
    LOG.say("failed", f"failed    shard {shard}: {why}; it is tried again", shard=shard, reason=why)


def _log_avoided(host: str) -> None:
    """Log that a worker of a cluster gets no more shards, also with --quiet."""
    LOG.say("avoided", f"avoided   {host}: a worker failed three times in a row, and gets no more shards", host=host)


def _log_waiting(engine: str, seconds: float) -> None:
    """Log that a cluster has no workers, also with --quiet: the build would wait for them without a word."""
    scheme, _, address = engine.partition("://")
    start = f"dask worker tcp://{address}" if scheme == "dask" else "ray start --address=HEAD:6379"
    words = f"{engine} has had no workers for {seconds:.0f} s; the build goes on when some join, for example: {start}"
    LOG.say("waiting", f"waiting   {words}", engine=engine, seconds=round(seconds))


def log_notes(notes: list[str]) -> None:
    """Log advice."""
    for note in notes:
        LOG.say("note", note)


def log_summary(summary: Summary) -> None:
    """Log every pair that was left out, the first notes, and likely mistakes in the data."""
    for name in summary.missing:
        LOG.say("left out", f"left out {name}")
    for split, key, reason in summary.rejects:
        LOG.say("left out", f"left out {split}/{key}: {reason}", split=split, key=key, reason=reason)
    notes = summary.notes
    for split, key, note in notes.first:
        LOG.say("row note", f"note      {split}/{key}: {note}", split=split, key=key, note=note)
    if notes.rows > len(notes.first):
        LOG.say("row note", f"note      … and {notes.rows - len(notes.first)} more rows with notes")
    if notes.totals:
        LOG.say("note totals", f"note      in all rows: {', '.join(notes.sums)}", totals=dict(notes.totals))
    for line in summary.findings.lines():
        LOG.say("finding", f"finding   {line}")
