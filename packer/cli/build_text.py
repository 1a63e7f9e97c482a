"""The plan and the summary of `packer build`, as text and as JSON."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packer.cli.log import LOG
from packer.cli.output import join_lines
from packer.cli.text_table import text_table
from packer.cli.values import bytes_text, shape_text
from packer.errors import by_cause, counted, first_of, some_are
from packer.publish.free_space import free_memory
from packer.publish.pin import is_pinned
from readers.contract.fields import RAW
from readers.contract.tiles import size_text

if TYPE_CHECKING:
    from packer.building import Summary
    from packer.plan.plan import Plan

MOST_NAMED = 20


def plan_json(plan: Plan) -> dict[str, Any]:
    return {
        "layout": plan.found_rows.layout,
        "pairs": plan.found_rows.refs.splits,
        "unlabelled": plan.unlabelled,
        "rows": 0 if plan.refusal is not None else plan.rows,
        "rejects": list(plan.rejects),
        "problems": [problem.to_json() for problem in plan.problems],
        "sampled": {"pairs": plan.sampled, "bad": plan.sampled_bad},
        "refused": None if plan.refusal is None else first_line(plan.refusal),
        "missing": list(map(str, plan.found_rows.missing)),
        "notes": list(plan.found_rows.notes),
        "sizes": {size_text(size): count for size, count in plan.sizes.items()},
        "fields": [field.to_json() for field in plan.recipe.fields],
        "classes": [] if plan.recipe.classes is None else list(plan.recipe.classes.names),
        "shards": len(plan.specs),
        "reused_shards": len(plan.reused),
        "bytes": plan.bytes,
        "stored_bytes": None if plan.refusal is not None else plan.stored_bytes,
        "bytes_with_labels_index": plan.index_bytes,
        "free_bytes": plan.free_bytes,
        "free_memory": free_memory(),
        "encodings": [
            {
                "fields": dict(size.encodings),
                "bytes": size.bytes,
                "error": round(size.error, 4),
                "fits_memory": size.bytes <= free_memory(),
                "fits_disk": plan.fits_disk(size),
            }
            for size in ([] if plan.refusal is not None else plan.sizes_stored)
        ],
        "recipe": plan.recipe.to_json(),
    }


def plan_text(plan: Plan, on_disk: bool = True) -> str:
    """Return the lines of a plan. The shards of a pack that is not on a disk of this machine need no space there."""
    facts, recipe = plan_json(plan), plan.recipe
    fields = [
        f"{field.name} {field.dtype} {shape_text(field.shape)} {field.kind} {field.form}"
        + (f" as {field.encoding_text}" if field.is_encoded else "")
        for field in recipe.fields
    ]
    templates = " ".join(f"--{rule.name} '{rule.template}'" for rule in recipe.rules if rule.template)
    sizes = [f"{size} ({count})" for size, count in facts["sizes"].items()]
    lines = [f"layout    {facts['layout']}"]
    if templates:
        lines.append(f"          {templates}")
    lines.append("pairs     " + ", ".join(f"{split} {count}" for split, count in facts["pairs"].items()))
    if facts["unlabelled"]:
        lines.append(f"unlabelled {facts['unlabelled']}")
    lines += [
        f"rejects   {len(plan.rejects)}",
        *(f"          {problem}" for problem in plan.problems),
        f"missing   {len(plan.found_rows.missing)}",
        *(f"          {problem}" for problem in by_cause(plan.found_rows.missing)),
        "sizes     " + ", ".join(first_of(sizes, MOST_NAMED, "sizes")),
        "fields    " + "; ".join(fields),
        f"classes   {len(facts['classes'])}: " + ", ".join(first_of(facts["classes"], MOST_NAMED)),
        f"shards    {facts['shards']}; {facts['reused_shards']} of them exist already",
        _rows_line(plan),
    ]
    if on_disk:
        lines.append(_free_line(plan))
    lines += _encodings(facts, dict(plan.asked), on_disk)
    return join_lines([*lines, *plan_notes(plan), *size_notes(plan)])


def _free_line(plan: Plan) -> str:
    return f"free      {bytes_text(plan.free_bytes)}" + (" - not enough" if plan.needed_bytes > plan.free_bytes else "")


def _encodings(facts: dict[str, Any], asked: dict[str, str], on_disk: bool) -> list[str]:
    """Return a table of the bytes with several encodings, and where they fit."""
    if not facts["encodings"]:
        return []
    table = [["", "", "in memory", "on the disk"] if on_disk else ["", "", "in memory"]]
    for size in facts["encodings"]:
        names = ", ".join(f"{name}={encoding}" for name, encoding in size["fields"].items() if encoding != RAW) or RAW
        error = f"± {math.ceil(1000 * size['error']) / 10} %" if size["error"] else ""
        fits = ["fits" if size[where] else "does not fit" for where in ("fits_memory", "fits_disk")]
        words = f"{names}, as asked" if size["fields"] == asked else names
        table.append([words, f"{bytes_text(size['bytes'])} {error}".strip(), *fits[: 1 + on_disk]])
    memory = f"memory    {bytes_text(facts['free_memory'])} for a pack, next to a training"
    return [memory, *(f"{'' if number else 'encodings':10}{line}" for number, line in enumerate(text_table(table)))]


def _rows_line(plan: Plan) -> str:
    """The bytes and rows that a build would publish. They are an upper bound if the sample has bad pairs."""
    if plan.refusal is not None:
        return f"refused   a build publishes nothing: {first_line(plan.refusal)}"
    most = f"at most {bytes_text(plan.bytes)} in {counted(plan.rows, 'row')}"
    if plan.sampled_bad:
        return f"bytes     {most}, because {some_are(plan.sampled_bad, plan.sampled, 'decoded pair')} bad"
    if plan.stored_bytes is None:
        return f"bytes     {most}; {_why_unknown(plan)}"
    if plan.stored_bytes != plan.bytes:
        raw = f"{bytes_text(plan.bytes)} without encodings"
        return f"bytes     about {bytes_text(plan.stored_bytes)} in {counted(plan.rows, 'row')}; {raw}"
    return f"bytes     {most.removeprefix('at most ')}"


def _why_unknown(plan: Plan) -> str:
    """Return why the sample does not show the size of encoded rows."""
    sample = plan.size_sample
    if sample is None or not sample.bad:
        return "its rows are too large for a sample, so the size of encoded ones is not known"
    return f"no row of the sample could be packed: {sample.bad[0]}"


def first_line(error: Exception) -> str:
    """The summary of an error."""
    return str(error).partition("\n")[0]


def plan_notes(plan: Plan) -> list[str]:
    """Advice that helps before a build, not after it."""
    notes = [f"note      {note}" for note in plan.found_rows.notes]
    if is_pinned(plan.out):
        notes.append(f"note      the pack is pinned, so a build publishes nothing before packer unpin {plan.out}")
    old = plan.current
    if old is not None and old.recipe != plan.recipe.to_json():
        generation = (
            f"generation {old.generation} ({old.storage}, {len(old.classes)} classes, {counted(old.rows, 'row')})"
        )
        keys = ", ".join(key for key, _, _ in plan.recipe_changes)
        notes.append(f"note      the recipe differs from the recipe of {generation}, which is kept: {keys} changed")
    return notes


def size_notes(plan: Plan) -> list[str]:
    """Advice on the bytes of a new recipe. A build that repeats the recipe of the pack does not repeat the advice."""
    if plan.index_bytes is None or (plan.current is not None and plan.current.recipe == plan.recipe.to_json()):
        return []
    return [
        "note      label planes are most of this pack: --labels index needs "
        f"{bytes_text(plan.bytes - plan.index_bytes)} less, and readers still return one-hot"
    ]


def summary_json(summary: Summary) -> dict[str, Any]:
    manifest = summary.manifest
    return {
        "run": LOG.run,
        "generation": manifest.generation,
        "pairs": summary.pairs,
        "rows": summary.rows,
        "unlabelled": manifest.unlabelled,
        "reused_rows": summary.reused,
        "missing": list(summary.missing),
        "rejects": [{"split": split, "key": key, "reason": reason} for split, key, reason in summary.rejects],
        "rejects_by_reason": dict(Counter(reason for _, _, reason in summary.rejects)),
        "noted_rows": summary.notes.rows,
        "notes": [{"split": split, "key": key, "note": note} for split, key, note in summary.notes.first],
        "note_totals": dict(summary.notes.totals),
        "splits": {split.name: split.rows for split in manifest.splits},
        "shards": manifest.shards,
        "bytes": manifest.bytes,
        "losses": dict(summary.losses),
        "findings": summary.findings.to_json(),
        "seconds": round(summary.seconds, 3),
        "stages": {name: round(seconds, 3) for name, seconds in summary.stages.items()},
    }


def summary_text(summary: Summary, out: Path | str) -> str:
    manifest = summary.manifest
    missing = f", {len(summary.missing)} without partner" if summary.missing else ""
    notes = f", {summary.notes.rows} with a note" if summary.notes.rows else ""
    painted, objects = summary.notes.objects
    notes += f", {painted:,} of {objects:,} object{'s' * (objects != 1)} painted" if objects else ""
    rows = ", ".join(f"{split.name} {split.rows}" for split in manifest.splits)
    rows += f"; {manifest.unlabelled} without a label" if manifest.unlabelled else ""
    losses = (f"\nloss      {name} as JPEG: {words}" for name, words in summary.losses.items())
    return (
        f"{out}: generation {manifest.generation}, {counted(summary.rows, 'row')} ({rows}) of "
        f"{counted(summary.pairs, 'pair')} in {counted(manifest.shards, 'shard')}, {bytes_text(manifest.bytes)}, "
        f"{len(summary.rejects)} left out{missing}{notes}, "
        f"{summary.reused} reused, {summary.seconds:.1f} s ({summary.pieces / max(summary.seconds, 1e-9):.0f} rows/s)"
        + "".join(losses)
    )
