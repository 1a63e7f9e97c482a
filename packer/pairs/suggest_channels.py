"""Suggest templates with `{channel}` for a folder in which the bands of a picture have a file each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from packer.pairs.suggest import Suggestion, suggest_templates
from packer.pairs.template import CHANNEL, PICTURES

BAND = re.compile(r"(?<![^\W_])(?:B\d{1,2}A?|band\d{1,2}|red|green|blue|nir|swir\d?)(?![^\W_])", re.IGNORECASE)
"""The name of a band in a path, as sensors have them."""
MARK = "CHANNEL"
"""Stands for the name of the band while templates are suggested."""
LEAST = 3
"""The bands of a picture that show what its files are."""


def suggest(files: Sequence[str]) -> list[Suggestion]:
    """Return templates that pair some of the files, the most likely first: pictures of several files, or of one."""
    return suggest_channels(files) or suggest_templates(files)


def suggest_channels(files: Iterable[str]) -> list[Suggestion]:
    """Return templates that pair pictures of several files with most labels; none in most folders."""
    bands: dict[str, set[str]] = {}
    others: list[str] = []
    for path in files:
        names = {name.casefold() for name in BAND.findall(path)}
        if path.lower().endswith(PICTURES) and len(names) == 1 and not set("{}*") & set(path):
            bands.setdefault(BAND.sub(MARK, path), set()).update(names)
        else:
            others.append(path)
    pictures = [path for path, names in bands.items() if len(names) >= LEAST]
    suggestions = suggest_templates([*pictures, *others]) if pictures else []
    return [
        replace(suggestion, image=_with_channel(suggestion.image))
        for suggestion in suggestions
        if MARK in suggestion.image and MARK not in suggestion.label and suggestion.unmatched <= suggestion.pairs
    ]


def _with_channel(template: str) -> str:
    """Return a template with the channel once, and any text where its name is again."""
    return template.replace(MARK, f"{{{CHANNEL}}}", 1).replace(MARK, "*")
