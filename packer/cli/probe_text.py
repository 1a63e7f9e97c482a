"""The result of `packer probe`, as text, as JSON and as a configuration file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packer.config.config import to_toml
from packer.plan.palettes import colour_name
from packer.probe.label_pixels import shown_counts
from packer.probe.probe import ProbeResult
from packer.probe.survey import Survey
from readers.contract.classes import ClassTable

MOST_NAMED = 10


def probe_toml(found: ProbeResult) -> str:
    """The proposal with what is left to decide above it."""
    comments = ["# Proposed by packer probe.", *(f"# To decide: {doubt}" for doubt in found.doubts)]
    return "\n".join(comments) + "\n" + to_toml(found.settings)


def probe_text(raw: Path, found: ProbeResult) -> Iterator[str]:
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


def _pairs_lines(found: ProbeResult) -> Iterator[str]:
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
    yield f"          {labels.decoded} of {labels.kinds.total()} were decoded"
    if labels.values:
        what = "palette indices" if labels.palettes.indices else "gray values"
        yield f"          {what}: {shown_counts(labels.values, False)}"
    if labels.colours:
        yield f"          colours: {shown_counts(labels.colours, True)}"


def _odd(found: ProbeResult) -> Iterator[str]:
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


def probe_json(found: ProbeResult) -> dict[str, Any]:
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
            "decoded": labels.decoded,
            "values": {str(value): count for value, count in sorted(labels.values.items())},
            "colours": {colour_name(code): count for code, count in labels.colours.most_common()},
            "palettes_differ": [*labels.palettes.moving.values(), *labels.palettes.recoloured.values()],
        },
        "bad": list(seen.bad),
        "copies": [list(group) for group in seen.copies],
        "findings": seen.findings.to_json(),
    }
