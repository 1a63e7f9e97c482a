"""Find rivals of the chosen pairs: other files that could be the labels of the same images, or their images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from packer.errors import UsageError
from packer.pairs.find import Pairing
from packer.pairs.folder_names import by_folder
from packer.pairs.layouts import VOC_IMAGES, Layout
from packer.pairs.match import match_files
from packer.pairs.pairing_rules import PairingRules
from packer.pairs.suggest import Suggestion, speaks_against_labels, suggest_templates
from packer.pairs.template import PICTURES, Template, composed

LEAST_SHARE = 0.5
"""Rivals exist for at least this share of the pairs."""
MOST_RIVALS = 3


def rival_questions(files: Sequence[str], rules: PairingRules, pairing: Pairing) -> Iterator[str]:
    """Yield a question if other files could be the labels, or else the images. Templates of the user are certain."""
    if rules.image or rules.pairs or VOC_IMAGES in pairing.image_template:
        return
    pairs = {composed(pair.image): composed(pair.label) for pair in pairing.pairs}
    labels = set(pairs.values())
    pictures = [composed(path) for path in files if path.lower().endswith(PICTURES)]
    others = {path for path in pictures if path not in pairs and path not in labels}
    if len(others) < LEAST_SHARE * len(pairs):
        return
    rivals = _templates([path for path in pictures if path not in labels], "label", set(pairs), others)
    if rivals:
        yield f"which files are the labels: {', '.join([_shown('label', pairing.label_template), *rivals])}?"
        return
    rivals = _templates([path for path in pictures if path not in pairs], "image", labels, others)
    if rivals:
        yield f"which files are the images: {', '.join([_shown('image', pairing.image_template), *rivals])}?"


def _templates(pictures: Sequence[str], side: str, partners: set[str], others: set[str]) -> list[str]:
    """Return the templates of one side that give many of the partners another file."""
    suggestions = suggest_templates(pictures)
    templates = [
        _shown(side, suggestion.label if side == "label" else suggestion.image)
        for suggestion in suggestions
        if not speaks_against_labels(suggestion.label)
        and _share(pictures, suggestion, side, partners, others) >= LEAST_SHARE
    ]
    return list(dict.fromkeys(templates))[:MOST_RIVALS]


def _share(pictures: Sequence[str], suggestion: Suggestion, side: str, partners: set[str], others: set[str]) -> float:
    """Return the share of the partners for which the suggestion finds one of the other files."""
    layout = Layout("", Template(suggestion.image), Template(suggestion.label), exclusive=False)
    try:
        matches = match_files(by_folder(pictures), layout)
    except UsageError:
        return 0.0
    mine, theirs = (matches.labels, matches.images) if side == "label" else (matches.images, matches.labels)
    hits = sum(theirs[key] in partners and mine[key] in others for key in mine.keys() & theirs.keys())
    return hits / len(partners)


def _shown(side: str, template: str) -> str:
    return f"{side} = {template!r}"
