"""`packer build`: raw folder in, packed data set out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from packer.build import Limits, Summary, build
from packer.cli.configured import EFFECTIVE, ConfiguredCommand
from packer.cli.log import FORMATS, LOG, TEXT
from packer.cli.metrics import measured
from packer.cli.progress import progress
from packer.cli.values import BytesType, ClassesType, LimitType, RangeType, SharesType, SizeType, bytes_text, shape_text
from packer.config.last_build import keep_config
from packer.decoding.rules import ALPHAS, MOST_PIXELS
from packer.errors import TargetError, UsageError
from packer.pairs.find import PairingRules
from packer.pixels.label_codec import AUTO, CODECS, DIVISORS, UNKNOWNS
from packer.pixels.resize import EDGES, FITS, INTERPOLATIONS
from packer.plan.make_plan import make_plan
from packer.plan.plan import Plan
from packer.plan.request import MTIME, TASK_TIMEOUT, TRUSTS, Request
from packer.publish.generation import current_manifest
from packer.publish.lock import locked
from packer.publish.target import check_target, is_ours
from packer.recipe.recipe import IMAGE_DTYPES, LABEL_FORMS, Recipe, changed_recipe
from packer.workers import Engine, open_engine
from readers.contract.manifest import STORAGES
from readers.machine import usable_cores

MOST_NAMED = 20


@click.command("build", cls=ConfiguredCommand, short_help="Pack a raw folder.")
@click.argument("raw", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--config",
    metavar="FILE",
    expose_value=False,
    help="A TOML file of these options by their long names, and [[class]] tables. What is given here counts more.",
)
@click.option(
    "--preset",
    metavar="NAME",
    expose_value=False,
    help="How a public data set is paired and read, such as voc; `packer presets` lists them. --config counts more.",
)
@click.option(
    "--print-config", is_flag=True, expose_value=False, help="Print what would be used, for --config, and stop."
)
@click.option(
    "--format", "storage", type=click.Choice(STORAGES), default="npy", show_default=True, help="How shards are stored."
)
@click.option(
    "--size",
    type=SizeType(),
    help="Stored height x width, or native: each picture's own. Default: the one size that all pictures have.",
)
@click.option(
    "--fit",
    type=click.Choice(FITS),
    help="How pictures of other shapes fit --size (default: stretch); tile cuts them up. Padding is ignored in labels.",
)
@click.option("--overlap", type=click.IntRange(0), default=0, help="Of --fit tile: pixels that neighbours share.")
@click.option(
    "--edge",
    type=click.Choice(EDGES),
    default="pad",
    show_default=True,
    help="Of --fit tile: pad the last tile of a side, or shift it to end where the picture ends.",
)
@click.option(
    "--interpolation",
    type=click.Choice(INTERPOLATIONS),
    default="area",
    show_default=True,
    help="Images only: area and cubic average exactly when shrinking. Labels are always nearest.",
)
@click.option(
    "--labels",
    type=click.Choice(LABEL_FORMS),
    default="onehot",
    show_default=True,
    help="Store planes (C,H,W), or the compact index (H,W). Readers give either from either.",
)
@click.option(
    "--image-dtype",
    type=click.Choice(list(IMAGE_DTYPES)),
    default="uint8",
    show_default=True,
    help="Floats are scaled to 0..1.",
)
@click.option(
    "--image-range",
    type=RangeType(),
    help="Which numbers of the image files become 0 and 1; for images of 16 bits or float.",
)
@click.option(
    "--alpha",
    type=click.Choice(ALPHAS),
    default="refuse",
    show_default=True,
    help="What to do with images that have transparent pixels; drop keeps the colours as they are stored.",
)
@click.option(
    "--max-pixels",
    type=click.IntRange(1, 1 << 30),
    default=MOST_PIXELS,
    show_default=True,
    help="Refuse larger pictures.",
)
@click.option(
    "--classes",
    type=ClassesType(),
    help="Class table (CSV, TOML, JSON, label map), or the classes' values: 12 is 0-11; 1-150; 0,255. "
    "Default: class_dict.csv in RAW.",
)
@click.option(
    "--ignore",
    multiple=True,
    metavar="VALUE|COLOUR|NAME",
    help="What is no class: 255, 0-6, #000000, or a class of the table. Repeatable.",
)
@click.option(
    "--label-codec",
    type=click.Choice(CODECS),
    default=AUTO,
    show_default=True,
    help="How label files are read. auto: by value or by colour, whichever the class table has.",
)
@click.option(
    "--threshold", type=click.IntRange(1, 65535), help="Of --label-codec binary: from this gray on it is foreground."
)
@click.option(
    "--divisor",
    type=click.Choice([str(divisor) for divisor in DIVISORS]),
    default=str(DIVISORS[0]),
    show_default=True,
    help="Of --label-codec instance: class = id // divisor (1000: Cityscapes; 256: KITTI, Mapillary).",
)
@click.option(
    "--palettes-differ",
    is_flag=True,
    help="Of --label-codec index: only the index counts, although a colour is one index here and another there.",
)
@click.option(
    "--unknown",
    type=click.Choice(UNKNOWNS),
    default="error",
    show_default=True,
    help="What a value or colour of no class is; nearest: the class of the nearest colour.",
)
@click.option(
    "--image",
    metavar="TEMPLATE",
    help="Where images are, such as 'left/{split}/{key}_img.png'. Default: by the layout.",
)
@click.option("--label", metavar="TEMPLATE", help="Where labels are, such as 'gt/{split}/{key}_gt.png'.")
@click.option(
    "--missing",
    type=click.Choice(["error", "skip"]),
    default="error",
    show_default=True,
    help="What an image without a label is, a label without an image, or a listed name without files.",
)
@click.option(
    "--lists",
    metavar="PATH",
    help="Split lists in RAW: a folder of <split>.txt, or a path such as 'splits/{split}.txt'. Lines are keys, image "
    "paths, or an image's and a label's path.",
)
@click.option(
    "--pairs",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="A CSV or TSV of all pairs: image,label[,split][,key], paths below RAW or beside FILE.",
)
@click.option(
    "--split",
    type=SharesType(),
    help="Draw splits by a hash of each key, such as 80/10/10 or train=90,val=10: shares hold on average, and a pair "
    "never moves.",
)
@click.option(
    "--split-by",
    metavar="CAPTURE",
    help="With --split: draw by a capture of --image, such as patient, so that its pairs stay together.",
)
@click.option(
    "--on-bad",
    type=click.Choice(["fail", "skip"]),
    default="fail",
    show_default=True,
    help="What to do with a pair that cannot be packed.",
)
@click.option(
    "--max-bad",
    type=LimitType(),
    help="With --on-bad skip: publish nothing if more are bad (exit 3). Default: any number.",
)
@click.option("--workers", type=click.IntRange(1), help="Cores to use. Default: all.")
@click.option(
    "--task-timeout",
    type=click.IntRange(1),
    default=TASK_TIMEOUT,
    show_default=True,
    metavar="SECONDS",
    help="The longest that one pair may take; one that takes longer is bad.",
)
@click.option(
    "--shard-size",
    "shard_bytes",
    type=BytesType(),
    default="128MiB",
    show_default=True,
    help="About how large a shard is; at most twice that.",
)
@click.option(
    "--trust",
    type=click.Choice(TRUSTS),
    default=MTIME,
    show_default=True,
    help="What tells that a raw file is as it was: its size and time, or always its content.",
)
@click.option("--retry-bad", is_flag=True, help="Build shards again that have bad pairs, though nothing changed.")
@click.option("--near-duplicates", is_flag=True, help="Also look for images that are nearly the same across splits.")
@click.option(
    "--log-format",
    type=click.Choice(FORMATS),
    default=TEXT,
    show_default=True,
    help="What stderr gets: lines for people, or JSON lines with the id of the run.",
)
@click.option(
    "--metrics-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write metrics for Prometheus' textfile collector there, also when the build fails.",
)
@click.option("--dry-run", is_flag=True, help="Print the plan and stop.")
@click.option("--json", "as_json", is_flag=True, help="Print the plan or the summary as JSON.")
@click.option("--quiet", is_flag=True, help="No progress.")
def build_command(**options: Any) -> None:
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
      packer build --dry-run raw/ out/

    \b
    Layouts that need no options (--image and --label say any other):
      images/ + labels/ (masks/, annotations/), also with train/ val/ test/ inside or around
      train/ + train_labels/ (trainannot/), and VOC (JPEGImages/SegmentationClass/ImageSets)
      split lists in splits/, lists/ or RAW itself (train.txt, val.txt) are read where folders tell no split
    """
    as_json, dry_run, quiet = options.pop("as_json"), options.pop("dry_run"), options.pop("quiet")
    LOG.form, metrics_file = options.pop("log_format"), options.pop("metrics_file")
    request, limits = requested(options)
    check_target(request.out)
    if dry_run:
        plan = make_plan(request)
        click.echo(json.dumps(_plan_json(plan), indent=1) if as_json else _plan_text(plan))
        return
    with (
        measured(metrics_file) as measure,
        changing(request.out),
        open_engine(request.workers, request.task_timeout) as engine,
    ):
        plan = make_plan(request, engine=engine)
        summary = run_build(plan, limits, quiet, engine)
        measure(summary)
    click.echo(
        json.dumps(_summary_json(summary, plan.pairing.missing), indent=1)
        if as_json
        else summary_text(summary, len(plan.pairing.missing), request.out)
    )


def requested(options: dict[str, Any]) -> tuple[Request, Limits]:
    """What the options ask for."""
    options["workers"] = options["workers"] or usable_cores()
    limits = Limits(options.pop("on_bad") == "skip", options.pop("max_bad"))
    if limits.most is not None and not limits.skip:
        raise UsageError("--max-bad: needs --on-bad skip; without it, one bad pair is too many")
    rules = PairingRules(**{field.name: options.pop(field.name) for field in fields(PairingRules)})
    return Request(pairing=rules, divisor=int(options.pop("divisor")), **options), limits


def changing(out: Path) -> AbstractContextManager[None]:
    """Hold the lock of a pack from the first look at it; one that is not there yet is locked once it is."""
    return locked(out) if is_ours(out) else nullcontext()


def run_build(plan: Plan, limits: Limits, quiet: bool, engine: Engine) -> Summary:
    """Build, with words before and after; the configuration that was in effect is kept beside the pack."""
    if not quiet:
        for line in _advice(plan):
            LOG.say("note", line)
    with progress("packing", plan.pieces, "rows", quiet) as advance:
        try:
            summary = build(plan, limits, advance, engine)
        except KeyboardInterrupt:
            LOG.published = current_manifest(plan.request.out) != plan.current
            raise
    LOG.published = True
    for name in plan.pairing.missing:
        LOG.say("left out", f"left out {name}")
    for split, key, reason in summary.rejects:
        LOG.say("left out", f"left out {split}/{key}: {reason}", split=split, key=key, reason=reason)
    for line in summary.findings.lines():
        LOG.say("finding", f"finding   {line}")
    effective = click.get_current_context().meta.get(EFFECTIVE)
    if effective is not None:
        try:
            keep_config(plan.request.out, effective)
        except TargetError as error:
            raise TargetError(f"{error}; generation {summary.manifest.generation} is published all the same") from error
    return summary


def _plan_json(plan: Plan) -> dict[str, Any]:
    return {
        "layout": plan.pairing.layout,
        "pairs": dict(Counter(pair.split for pair in plan.pairing.pairs)),
        "rows": plan.rows,
        "rejects": list(plan.rejects),
        "missing": list(plan.pairing.missing),
        "notes": list(plan.pairing.notes),
        "sizes": {f"{height}x{width}": count for (height, width), count in plan.sizes.items()},
        "fields": [field.to_json() for field in plan.recipe.fields],
        "classes": list(plan.recipe.classes.names),
        "shards": len(plan.specs),
        "reused_shards": len(plan.reused),
        "bytes": plan.bytes,
        "bytes_with_labels_index": plan.index_bytes,
        "free_bytes": plan.free_bytes,
        "recipe": plan.recipe.to_json(),
    }


def _plan_text(plan: Plan) -> str:
    facts = _plan_json(plan)
    fields = [
        f"{field['name']} {field['dtype']} {shape_text(field['shape'])} {field['encoding']}"
        for field in facts["fields"]
    ]
    lines = [
        f"layout    {facts['layout']}",
        *_templates_text(plan.recipe),
        "pairs     " + ", ".join(f"{split} {count}" for split, count in facts["pairs"].items()),
        f"rejects   {len(plan.rejects)}",
        *(f"          {reason}" for reason in plan.rejects),
        f"missing   {len(plan.pairing.missing)}",
        *(f"          {name}" for name in plan.pairing.missing),
        "sizes     " + _first([f"{size} ({count})" for size, count in facts["sizes"].items()]),
        "fields    " + "; ".join(fields),
        f"classes   {len(facts['classes'])}: " + _first(facts["classes"]),
        f"shards    {facts['shards']}, of which {facts['reused_shards']} are there already",
        f"bytes     {bytes_text(plan.bytes)} in {plan.rows} rows",
        f"free      {bytes_text(plan.free_bytes)}" + (" - not enough" if plan.needed_bytes > plan.free_bytes else ""),
    ]
    return "\n".join([*lines, *_advice(plan)])


def _templates_text(recipe: Recipe) -> list[str]:
    if not recipe.image_template:
        return []
    return [f"          --image '{recipe.image_template}' --label '{recipe.label_template}'"]


def _first(names: list[str]) -> str:
    return ", ".join(names[:MOST_NAMED]) + (f", … ({len(names)} in all)" if len(names) > MOST_NAMED else "")


def _advice(plan: Plan) -> list[str]:
    """What a user should know before, not after."""
    advice = [f"note      {note}" for note in plan.pairing.notes]
    old = plan.current
    if old is not None and old.recipe != plan.recipe.to_json():
        what = f"generation {old.generation} ({old.storage}, {len(old.classes)} classes, {old.rows} rows)"
        keys = ", ".join(key for key, _, _ in changed_recipe(old.recipe, plan.recipe))
        advice.append(f"note      another recipe than that of {what}, which stays beside the new one: {keys} changed")
    if plan.index_bytes is not None:
        advice.append(
            f"note      label planes are most of this pack: --labels index needs {bytes_text(plan.index_bytes)} "
            f"instead of {bytes_text(plan.bytes)}, and readers still give one-hot"
        )
    return advice


def _summary_json(summary: Summary, missing: Sequence[str]) -> dict[str, Any]:
    manifest = summary.manifest
    return {
        "run": LOG.run,
        "generation": manifest.generation,
        "pairs": summary.pairs,
        "rows": summary.rows,
        "reused_rows": summary.reused,
        "missing": list(missing),
        "rejects": [{"split": split, "key": key, "reason": reason} for split, key, reason in summary.rejects],
        "rejects_by_reason": dict(Counter(reason for _, _, reason in summary.rejects)),
        "splits": {split.name: split.rows for split in manifest.splits},
        "shards": manifest.shards,
        "bytes": manifest.bytes,
        "findings": summary.findings.to_json(),
        "seconds": round(summary.seconds, 3),
        "stages": {name: round(seconds, 3) for name, seconds in summary.stages.items()},
    }


def summary_text(summary: Summary, missing: int, out: Path) -> str:
    manifest = summary.manifest
    alone = f", {missing} without partner" if missing else ""
    rows = ", ".join(f"{split.name} {split.rows}" for split in manifest.splits)
    return (
        f"{out}: generation {manifest.generation}, {summary.rows} rows ({rows}) of {summary.pairs} pairs in "
        f"{manifest.shards} shards, {bytes_text(manifest.bytes)}, {len(summary.rejects)} left out{alone}, "
        f"{summary.reused} reused, {summary.seconds:.1f} s ({summary.pieces / max(summary.seconds, 1e-9):.0f} rows/s)"
    )
