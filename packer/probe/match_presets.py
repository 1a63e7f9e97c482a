"""Find the presets that fit a folder: by their templates, or by the colours of its labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packer.config.config import Settings
from packer.config.preset_evidence import presets_with_classes
from packer.errors import PackError
from packer.pairs.files import RawFiles
from packer.pairs.find import find_pairs
from packer.pairs.pairing_rules import PairingRules
from packer.pixels.label_rules import AUTO, LabelRules
from packer.plan.palettes import colour_name
from packer.probe.label_pixels import known_share
from packer.probe.survey import LabelSurvey
from readers.contract.classes import ClassTable

LEAST_COLOURS = 3
"""Fewer matching colours prove nothing: black and white are in many tables."""


@dataclass(frozen=True)
class PresetMatch:
    """A preset, the number of pairs that its templates find, and the share of the label pixels in its classes."""

    name: str
    pairs: int
    share: float
    same_colours: bool
    """True if the labels have the colours of its classes."""
    rules: LabelRules
    classes: ClassTable

    @property
    def exact(self) -> bool:
        """True if the preset fits the whole sample."""
        return self.share == 1 and (self.pairs > 0 or self.same_colours)


def matching_presets(raw: Path, labels: LabelSurvey, listed: RawFiles | None = None) -> Iterator[PresetMatch]:
    """Yield the presets with pairs or colours of this folder, and with values of its labels."""
    for name, settings, classes in presets_with_classes():
        rules = _label_rules(settings)
        match = PresetMatch(
            name,
            _pairs_by(raw, settings, listed),
            known_share(labels, classes, rules),
            _same_colours(labels, classes),
            rules,
            classes,
        )
        if match.share > 0 and (match.pairs or match.same_colours):
            yield match


def _pairs_by(raw: Path, settings: Settings, listed: RawFiles | None) -> int:
    """Count the pairs that the templates of a preset find. Without templates it would fit any folder, so return 0."""
    image, label, lists = (
        value if isinstance(value := settings.get(name), str) else None for name in ("image", "label", "lists")
    )
    if image is None:
        return 0
    try:
        rules = PairingRules(image, label, lists, missing="skip")
        return len(find_pairs(raw, rules, files=listed).pairs)
    except PackError:
        return 0


def _same_colours(labels: LabelSurvey, classes: ClassTable) -> bool:
    """Check that palettes have the colours of the classes at their indices, or that all colours are in classes."""
    if labels.palettes.indices:
        drawn = {entry.colour: set(entry.values) for entry in classes.classes if entry.colour is not None}
        ignored = set(classes.ignored_values)
        shown = [(_rgb(code), indices) for code, indices in labels.palettes.indices.items() if not indices <= ignored]
        return len(shown) >= LEAST_COLOURS and all(indices <= drawn.get(rgb, set()) for rgb, indices in shown)
    known_colours = {colour[:3] for entry in classes.classes for colour in entry.colours}
    known_colours |= {colour[:3] for colour in classes.ignored_colours}
    return len(labels.colours) >= LEAST_COLOURS and {_rgb(code) for code in labels.colours} <= known_colours


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
