"""`packer probe`: what a raw folder is, and the configuration that would pack it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from packer.cli.build import build_command
from packer.cli.values import ClassesType, CountType
from packer.config.config import to_toml
from packer.errors import InputError
from packer.pairs.find import PairingRules
from packer.plan.palettes import colour_name
from packer.plan.request import TASK_TIMEOUT
from packer.probe.guess_labels import listed
from packer.probe.probe import Probe, ProbeRequest, probe
from packer.probe.survey import Survey
from packer.publish.atomic import put_text
from readers.contract.classes import ClassTable
from readers.machine import usable_cores

MOST_NAMED = 10


@click.command("probe", short_help="Look at a raw folder and propose a configuration.")
@click.argument("raw", type=click.Path(path_type=Path))
@click.option("--image", metavar="TEMPLATE", help="Where images are, if no layout fits; as for build.")
@click.option("--label", metavar="TEMPLATE", help="Where labels are; as for build.")
@click.option("--lists", metavar="PATH", help="Lists of the splits; as for build.")
@click.option("--pairs", metavar="FILE", type=click.Path(path_type=Path), help="A CSV of pairs; as for build.")
@click.option("--classes", type=ClassesType(), help="Class table to judge the labels by; as for build.")
@click.option("--ignore", multiple=True, metavar="VALUE|COLOUR|NAME", help="What is no class; as for build.")
@click.option(
    "--sample",
    type=CountType(),
    default="64",
    show_default=True,
    help="How many pairs to decode; headers are read of all.",
)
@click.option("--near-duplicates", is_flag=True, help="Also look for images that are nearly the same across splits.")
@click.option("--workers", type=click.IntRange(1), help="Cores to use. Default: all.")
@click.option(
    "--task-timeout",
    type=click.IntRange(1),
    default=TASK_TIMEOUT,
    show_default=True,
    metavar="SECONDS",
    help="The longest that one pair may take.",
)
@click.option("--write", type=click.Path(path_type=Path, dir_okay=False), help="Write the proposal to this TOML file.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def probe_command(raw: Path, as_json: bool, write: Path | None, **options: Any) -> None:
    """Look at RAW: layout, pairs, kinds, sizes, what the labels hold, what is odd; and how it would be packed.

    \b
    Example:
      packer probe raw/
      packer probe --write packer.toml raw/
      packer build --config packer.toml raw/ out/
    """
    if write is not None and write.exists():
        raise InputError(f"{write}: is there already; name another file, or remove it")
    image, label, lists, pairs = (options.pop(name) for name in ("image", "label", "lists", "pairs"))
    options["workers"] = options["workers"] or usable_cores()
    found = probe(ProbeRequest(raw, PairingRules(image, label, lists, pairs), **options), build_command.keys())
    click.echo(json.dumps(_json(found), indent=1, ensure_ascii=False) if as_json else "\n".join(_page(raw, found)))
    if found.pairing is None:
        raise InputError(found.why_not or f"{raw}: nothing pairs")
    if write is not None:
        put_text(_toml(found), write)
        click.echo(f"wrote {write}; next: packer build --config {write} {raw} out/", err=True)


def _toml(found: Probe) -> str:
    """The proposal with what is left to decide above it."""
    comments = ["# Proposed by packer probe.", *(f"# To decide: {doubt}" for doubt in found.doubts)]
    return "\n".join(comments) + "\n" + to_toml(found.settings)


def _page(raw: Path, found: Probe) -> Iterator[str]:
    """The answer for people."""
    yield f"folder    {raw}: {found.files} files"
    if found.pairing is not None:
        yield from _pairs_lines(found)
    yield from (
        f"perhaps   --image '{one.image}' --label '{one.label}'  ({one.pairs} pairs, {one.unmatched} without partner)"
        for one in (found.proposals if found.pairing is None else ())
    )
    if found.survey is None or found.reading is None:
        return
    yield from _survey_lines(found.survey)
    yield f"reading   {'; '.join(found.reading.why) or 'unknown'}"
    yield from (
        f"preset    {one.name} knows {100 * one.share:.2f} % of the label pixels"
        + (f", and its templates find {one.pairs} pairs" if one.pairs else ", all in its colours")
        for one in found.presets
    )
    yield from (f"odd       {line}" for line in _odd(found))
    yield from (f"decide    {doubt}" for doubt in found.doubts)
    yield "proposal  (all of it: --write packer.toml)"
    short = {name: value for name, value in found.settings.items() if not isinstance(value, ClassTable)}
    yield from (f"          {line}" for line in to_toml(short).splitlines())
    classes = found.reading.classes
    if classes is not None:
        yield f"classes   {len(classes)}: {', '.join(classes.names[:MOST_NAMED])}{', …' * (len(classes) > MOST_NAMED)}"


def _pairs_lines(found: Probe) -> Iterator[str]:
    pairing = found.pairing
    assert pairing is not None
    yield f"layout    {pairing.layout}"
    if pairing.image_template:
        yield f"          --image '{pairing.image_template}' --label '{pairing.label_template}'"
    splits = Counter(pair.split for pair in pairing.pairs)
    yield "pairs     " + ", ".join(f"{split} {count}" for split, count in splits.items())
    yield from _some("missing", pairing.missing)
    yield from (f"note      {note}" for note in pairing.notes)


def _survey_lines(seen: Survey) -> Iterator[str]:
    labels = seen.labels
    yield "images    " + "; ".join(f"{kind} ({count})" for kind, count in seen.images.most_common())
    sizes = [f"{height}x{width} ({count})" for (height, width), count in seen.sizes.most_common(MOST_NAMED)]
    more = f", … {len(seen.sizes)} sizes in all" if len(seen.sizes) > MOST_NAMED else ""
    yield f"sizes     {', '.join(sizes)}{more} (height x width)"
    yield "labels    " + "; ".join(f"{kind} ({count})" for kind, count in labels.kinds.most_common())
    yield f"          {labels.looked_into} of {labels.kinds.total()} were decoded"
    if labels.values:
        what = "palette indices" if labels.palettes.indices else "gray values"
        yield f"          {what}: {listed(labels.values, False)}"
    if labels.colours:
        yield f"          colours: {listed(labels.colours, True)}"


def _odd(found: Probe) -> Iterator[str]:
    seen = found.survey
    assert seen is not None
    if seen.bad:
        yield f"{len(seen.bad)} pairs cannot be packed as they are:"
        yield from (f"  {reason}" for reason in seen.bad[:MOST_NAMED])
    for group in seen.copies[:MOST_NAMED]:
        yield f"the same file: {' = '.join(group[:MOST_NAMED])}"
    if len(seen.copies) > MOST_NAMED:
        yield f"… {len(seen.copies)} groups of copies in all"
    palettes = seen.labels.palettes
    for told in [*palettes.moving.values(), *palettes.recoloured.values()][:MOST_NAMED]:
        yield f"palettes differ: {told}"
    if any("EXIF" in kind for kind in seen.labels.kinds):
        yield "labels are turned by a tag of their own"
    yield from seen.findings.lines()


def _some(what: str, names: tuple[str, ...]) -> Iterator[str]:
    for name in names[:MOST_NAMED]:
        yield f"{what:<10}{name}"
    if len(names) > MOST_NAMED:
        yield f"{'':<10}… {len(names)} in all"


def _json(found: Probe) -> dict[str, Any]:
    pairing, seen, reading = found.pairing, found.survey, found.reading
    answer: dict[str, Any] = {
        "files": found.files,
        "error": found.why_not,
        "proposals": [vars(one) for one in found.proposals],
        "presets": [{"name": one.name, "pairs": one.pairs, "share": round(one.share, 6)} for one in found.presets],
        "to_decide": list(found.doubts),
        "config": to_toml(found.settings),
    }
    if pairing is not None:
        answer |= {
            "layout": pairing.layout,
            "image": pairing.image_template,
            "label": pairing.label_template,
            "pairs": dict(Counter(pair.split for pair in pairing.pairs)),
            "missing": list(pairing.missing),
            "notes": list(pairing.notes),
        }
    if reading is not None:
        answer["reading"] = {"codec": reading.rules.codec, "why": list(reading.why)}
    return answer if seen is None else {**answer, **_survey_json(seen)}


def _survey_json(seen: Survey) -> dict[str, Any]:
    labels = seen.labels
    return {
        "images": dict(seen.images),
        "sizes": {f"{height}x{width}": count for (height, width), count in seen.sizes.most_common()},
        "labels": {
            "kinds": dict(labels.kinds),
            "decoded": labels.looked_into,
            "values": {str(value): count for value, count in sorted(labels.values.items())},
            "colours": {colour_name(code): count for code, count in labels.colours.most_common()},
            "palettes_differ": [*labels.palettes.moving.values(), *labels.palettes.recoloured.values()],
        },
        "bad": list(seen.bad),
        "copies": [list(group) for group in seen.copies],
        "findings": seen.findings.to_json(),
    }
