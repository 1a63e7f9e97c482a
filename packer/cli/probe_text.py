"""The result of `packer probe`, as text, as JSON and as a configuration file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from packer.config.config import to_toml
from packer.errors import by_cause, counted, first_of
from packer.plan.palettes import colour_name
from packer.probe.annotated import AnnotatedProposal
from packer.probe.label_pixels import shown_counts
from packer.probe.probe import ProbeResult
from packer.probe.survey import Survey
from readers.contract.classes import ClassTable
from readers.contract.tiles import size_text

MOST_NAMED = 10


def probe_toml(result: ProbeResult) -> str:
    """The proposed configuration, with open questions as comments at its top."""
    comments = ["# Proposed by packer probe.", *(f"# To decide: {doubt}" for doubt in result.doubts)]
    return "\n".join(comments) + "\n" + to_toml(result.settings)


def probe_text(raw: str, result: ProbeResult) -> Iterator[str]:
    """The result as lines of text."""
    yield f"folder    {raw}: {counted(result.files, 'file')}"
    if result.pairing is not None:
        yield from _pairs_lines(result)
    if result.annotated is not None:
        yield from _annotated_lines(result.annotated)
        yield from _proposal_lines(result, result.annotated.classes)
    yield from (
        f"perhaps   --image '{proposal.image}' --label '{proposal.label}'  "
        f"({counted(proposal.pairs, 'pair')}, {proposal.unmatched} without partner)"
        for proposal in (result.proposals if result.pairing is None else ())
    )
    if result.survey is None or result.reading is None:
        return
    yield from _survey_lines(result.survey)
    yield f"reading   {'; '.join(result.reading.why) or 'unknown'}"
    yield from (
        f"preset    {preset.name} knows {100 * preset.share:.2f} % of the label pixels"
        + (f", and its templates find {counted(preset.pairs, 'pair')}" if preset.pairs else ", all in its colours")
        for preset in result.presets
    )
    yield from (f"field     --field '{field.text}'  ({counted(len(field.files), 'file')})" for field in result.further)
    yield from (f"odd       {line}" for line in _odd(result))
    yield from _proposal_lines(result, () if result.reading.classes is None else result.reading.classes.names)


def _proposal_lines(result: ProbeResult, classes: Sequence[str]) -> Iterator[str]:
    yield from (f"decide    {doubt}" for doubt in result.doubts)
    yield "proposal  (all of it: --write packer.toml)"
    short = {name: value for name, value in result.settings.items() if not isinstance(value, ClassTable)}
    yield from (f"          {line}" for line in to_toml(short).splitlines())
    if classes:
        yield f"classes   {len(classes)}: {', '.join(first_of(classes, MOST_NAMED))}"
    for trainer in result.trainers:
        build = f"; build with {trainer.build}" if trainer.build else ""
        yield f"trainer   {trainer.name} ({trainer.evidence}){build}"
        yield from (f"          {line}" for line in trainer.lines)


def _annotated_lines(annotated: AnnotatedProposal) -> Iterator[str]:
    yield f"layout    {annotated.layout}"
    if annotated.splits:  # none if the trial was refused before it listed them
        yield "pictures  " + ", ".join(f"{split} {count}" for split, count in annotated.splits.items())
    yield from (f"missing   {problem}" for problem in by_cause(annotated.missing))
    yield from (f"odd       {reason}" for reason in first_of(annotated.rejects, MOST_NAMED))
    sizes = [f"{height}x{width} ({count})" for (height, width), count in annotated.sizes.items()]
    if sizes:
        yield f"sizes     {', '.join(first_of(sizes, MOST_NAMED, 'sizes'))} (height x width)"
    objects = [f"{name} {count}" for name, count in annotated.objects.items()]
    if objects:
        yield f"objects   {', '.join(first_of(objects, MOST_NAMED, 'categories'))}"


def _pairs_lines(result: ProbeResult) -> Iterator[str]:
    pairing = result.pairing
    assert pairing is not None
    yield f"layout    {pairing.layout}"
    if pairing.image_template:
        yield f"          --image '{pairing.image_template}' --label '{pairing.label_template}'"
    splits = Counter(pair.split for pair in pairing.pairs)
    yield "pairs     " + ", ".join(f"{split} {count}" for split, count in splits.items())
    yield from (f"missing   {problem}" for problem in by_cause(pairing.missing))
    yield from (f"note      {note}" for note in pairing.notes)


def _survey_lines(survey: Survey) -> Iterator[str]:
    labels = survey.labels
    yield "images    " + ("; ".join(f"{kind} ({count})" for kind, count in survey.images.most_common()) or "unknown")
    if survey.sizes:
        sizes = [f"{size_text(size)} ({count})" for size, count in survey.sizes.most_common()]
        sides = "depth x height x width" if survey.has_volumes else "height x width"
        yield f"sizes     {', '.join(first_of(sizes, MOST_NAMED, 'sizes'))} ({sides})"
    yield "labels    " + ("; ".join(f"{kind} ({count})" for kind, count in labels.kinds.most_common()) or "unknown")
    yield f"          {labels.decoded} of {labels.total} were decoded"
    if labels.values:
        unit = "palette indices" if labels.palettes.indices else "gray values"
        yield f"          {unit}: {shown_counts(labels.values, False)}"
    if labels.colours:
        yield f"          colours: {shown_counts(labels.colours, True)}"


def _odd(result: ProbeResult) -> Iterator[str]:
    survey = result.survey
    assert survey is not None
    if survey.bad:
        yield f"{counted(len(survey.bad), 'pair')} cannot be packed without a change:"
        yield from (f"  {reason}" for reason in first_of([*survey.bad.values()], MOST_NAMED))
    copies = [f"the same file: {' = '.join(first_of(group, MOST_NAMED))}" for group in survey.copies]
    yield from first_of(copies, MOST_NAMED, "groups of copies")
    palettes = survey.labels.palettes
    for difference in first_of([*palettes.moving.values(), *palettes.recoloured.values()], MOST_NAMED):
        yield f"palettes differ: {difference}"
    if any("EXIF" in kind for kind in survey.labels.kinds):
        yield "labels have an EXIF orientation"
    yield from survey.findings.lines()


def probe_json(result: ProbeResult) -> dict[str, Any]:
    pairing, survey, reading = result.pairing, result.survey, result.reading
    answer: dict[str, Any] = {
        "files": result.files,
        "error": result.why_not,
        "proposals": [vars(proposal) for proposal in result.proposals],
        "presets": [
            {"name": preset.name, "pairs": preset.pairs, "share": round(preset.share, 6)} for preset in result.presets
        ],
        "to_decide": list(result.doubts),
        "config": to_toml(result.settings),
        "trainers": [
            {"name": trainer.name, "lines": list(trainer.lines), "build": trainer.build} for trainer in result.trainers
        ],
    }
    if pairing is not None:
        answer |= {
            "layout": pairing.layout,
            "image": pairing.image_template,
            "label": pairing.label_template,
            "pairs": dict(Counter(pair.split for pair in pairing.pairs)),
            "missing": list(map(str, pairing.missing)),
            "notes": list(pairing.notes),
            "fields": {field.text: len(field.files) for field in result.further},
        }
    if (annotated := result.annotated) is not None:
        answer |= {
            "layout": annotated.layout,
            "image": annotated.settings.get("image"),
            "annotations": annotated.settings.get("annotations"),
            "pairs": dict(annotated.splits),
            "objects": dict(annotated.objects),
            "missing": list(map(str, annotated.missing)),
            "bad": list(annotated.rejects),
        }
    if reading is not None:
        answer["reading"] = {"codec": reading.rules.codec, "why": list(reading.why)}
    return answer if survey is None else {**answer, **_survey_json(survey)}


def _survey_json(survey: Survey) -> dict[str, Any]:
    labels = survey.labels
    return {
        "images": dict(survey.images),
        "sizes": {size_text(size): count for size, count in survey.sizes.most_common()},
        "labels": {
            "kinds": dict(labels.kinds),
            "decoded": labels.decoded,
            "values": {str(value): count for value, count in sorted(labels.values.items())},
            "colours": {colour_name(code): count for code, count in labels.colours.most_common()},
            "palettes_differ": [*labels.palettes.moving.values(), *labels.palettes.recoloured.values()],
        },
        "bad": list(survey.bad.values()),
        "copies": [list(group) for group in survey.copies],
        "findings": survey.findings.to_json(),
    }
