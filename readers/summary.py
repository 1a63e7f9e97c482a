"""A data set in a few lines: what `repr` prints, and what a notebook shows."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np

from readers.contract.errors import ReadError
from readers.contract.fields import LABEL, Field
from readers.contract.plain_text import one_line

if TYPE_CHECKING:
    from readers.dataset import SegDataset

MOST_NAMES = 8
MOST_LETTERS = 60
PICTURES = 4
"""The rows that a notebook shows, and the pixels of the longest side of each:"""
LONGEST = 180
STYLE = ' style="text-align:left;vertical-align:top"'


def lines_of(dataset: SegDataset, root: str) -> list[tuple[str, str]]:
    """Return the facts about a data set that was opened at `root`, each with a name."""
    manifest, unlabelled = dataset.manifest, _unlabelled(dataset)
    part = dataset.split if dataset.fold is None else f"{dataset.split} of fold {dataset.fold}"
    split = f"{part}, {len(dataset):,} rows"
    lines = [
        ("root", one_line(root) + (f", read from {one_line(str(dataset.root))}" if str(dataset.root) != root else "")),
        ("split", split + (f", {unlabelled:,} of them without a label" if unlabelled else "")),
        *(("fields" if number == 0 else "", _field(field)) for number, field in enumerate(dataset.fields)),
    ]
    if len(dataset.classes):
        lines.append(("classes", f"{len(dataset.classes)}: {_names(dataset.classes.names)}"))
        lines.append(("", f"ignore_index {dataset.classes.ignore_index}"))
    lines.append(("pack", f"{manifest.storage}, generation {manifest.generation} of {one_line(manifest.created)}"))
    return lines


def _unlabelled(dataset: SegDataset) -> int:
    """Return how many of all rows of the splits lack a label."""
    splits = [split for split in dataset.manifest.splits if split.name in dataset.splits]
    lacking = sum(part.rows for split in splits for part in split.parts if LABEL not in part.fields)
    whole = len(dataset) == sum(split.rows for split in splits) and dataset.manifest.unlabelled
    return lacking if whole else 0


def text_of(dataset: SegDataset, root: str) -> str:
    """Return a data set as a few lines of text."""
    lines = [f"    {name:<9}{text}" for name, text in lines_of(dataset, root)]
    return "\n".join([type(dataset).__name__, *lines])


def html_of(dataset: SegDataset, root: str) -> str:
    """Return a data set as HTML: a small table, and a few rows as pictures if they can be drawn."""
    lines = [(escape(name), escape(text)) for name, text in lines_of(dataset, root)]
    rows = "".join(f"<tr><th{STYLE}>{name}</th><td{STYLE}>{text}</td></tr>" for name, text in lines)
    return f"<div><b>{type(dataset).__name__}</b><table>{rows}</table><div>{_pictures(dataset)}</div></div>"


def _pictures(dataset: SegDataset) -> str:
    try:
        return "".join(_picture(dataset, index) for index in range(min(PICTURES, len(dataset))))
    except (ReadError, OSError, ImportError, ValueError) as error:  # damaged or deleted, or a Pillow that does not load
        return escape(one_line(str(error)))


def _picture(dataset: SegDataset, index: int) -> str:
    file = BytesIO()
    image = dataset.show(index, size=LONGEST)
    image.save(file, "PNG")
    data, key = b64encode(file.getvalue()).decode(), escape(one_line(dataset.key(index)), quote=True)
    size = f'width="{image.width}" height="{image.height}"'
    return f'<img src="data:image/png;base64,{data}" alt="{key}" title="{key}" {size} style="margin:4px 4px 0 0">'


def _field(field: Field) -> str:
    """Return a field as `image: picture |u1 (3, 256, 384)`."""
    sides = "DHW"[-len(field.sides) :] if field.native else field.sides
    shape = [*field.delivered_planes, *sides] if field.shape else []
    form = f" {field.form}" if field.classes is not None else ""
    return f"{field.name}: {field.kind}{form} {np.dtype(field.dtype).name} ({', '.join(map(str, shape))})"


def _names(names: Sequence[str]) -> str:
    shown = [one_line(name[:MOST_LETTERS]) + "…" * (len(name) > MOST_LETTERS) for name in names[:MOST_NAMES]]
    more = [f"… and {len(names) - MOST_NAMES:,} more"] if len(names) > MOST_NAMES else []
    return ", ".join([*shown, *more])
