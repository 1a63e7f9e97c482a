"""Which presets could be meant by a folder: those whose templates pair it, or whose colours its labels have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packer.config.config import Settings
from packer.config.preset import preset_classes, presets
from packer.errors import PackError
from packer.pairs.find import PairingRules, find_pairs
from packer.pixels.label_codec import AUTO, LabelRules
from packer.plan.palettes import colour_name
from packer.probe.guess_labels import known_share
from packer.probe.survey import LabelSurvey
from readers.contract.classes import ClassTable

LEAST_COLOURS = 3
"""Black and white are in many tables."""


@dataclass(frozen=True)
class PresetMatch:
    """A preset, how many pairs its templates find here, and which share of the label pixels it knows."""

    name: str
    pairs: int
    share: float
    same_colours: bool
    """Whether the labels show its classes in its colours."""
    rules: LabelRules
    classes: ClassTable

    @property
    def exact(self) -> bool:
        """Whether it leaves nothing open."""
        return self.share == 1 and (self.pairs > 0 or self.same_colours)


def matching_presets(raw: Path, labels: LabelSurvey) -> Iterator[PresetMatch]:
    """The presets that are worth a word."""
    for preset in presets():
        settings = preset.settings()
        classes, rules = preset_classes(settings), _label_rules(settings)
        if classes is None:
            continue
        found = PresetMatch(
            preset.name,
            _pairs_by(raw, settings),
            known_share(labels, classes, rules),
            _same_colours(labels, classes),
            rules,
            classes,
        )
        if found.share > 0 and (found.pairs or found.same_colours):
            yield found


def _pairs_by(raw: Path, settings: Settings) -> int:
    """How many pairs the templates of a preset find; none where it has no templates, which would fit anything."""
    image, label, lists = (
        value if isinstance(value := settings.get(name), str) else None for name in ("image", "label", "lists")
    )
    if image is None:
        return 0
    try:
        return len(find_pairs(raw, PairingRules(image, label, lists, missing="skip")).pairs)
    except PackError:
        return 0


def _same_colours(labels: LabelSurvey, classes: ClassTable) -> bool:
    """Whether a palette has the classes' colours at the classes' indices, or all colours are those of classes."""
    if labels.palettes.indices:
        drawn = {one.colour: set(one.values) for one in classes.classes if one.colour is not None}
        ignored = set(classes.ignored_values)
        shown = [(_rgb(code), indices) for code, indices in labels.palettes.indices.items() if not indices <= ignored]
        return len(shown) >= LEAST_COLOURS and all(indices <= drawn.get(rgb, set()) for rgb, indices in shown)
    meant = {colour[:3] for one in classes.classes for colour in one.colours}
    meant |= {colour[:3] for colour in classes.ignored_colours}
    return len(labels.colours) >= LEAST_COLOURS and {_rgb(code) for code in labels.colours} <= meant


def _rgb(code: int) -> tuple[int, int, int]:
    red, green, blue = bytes.fromhex(colour_name(code)[1:7])
    return red, green, blue


def _label_rules(settings: Settings) -> LabelRules:
    threshold = settings.get("threshold")
    return LabelRules(
        str(settings.get("label-codec", AUTO)),
        threshold=int(threshold) if isinstance(threshold, str) else None,
        divisor=int(str(settings.get("divisor", 1000))),
    )
