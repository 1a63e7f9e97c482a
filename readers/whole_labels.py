"""Open any fields for trainers of other libraries: a label as class numbers, or as planes where classes overlap."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

from readers.by_format import open_dataset
from readers.contract.fields import IMAGE, LABEL
from readers.contract.kinds import CLASSES, MULTILABEL, PICTURE
from readers.dataset import SegDataset

WHOLE: dict[str, Literal["index", "planes"]] = {CLASSES: "index", MULTILABEL: "planes"}
"""The form of each kind that has several."""


def open_whole(
    root: str | os.PathLike[str], split: str | None, fields: Sequence[str] | None = None, **options: Any
) -> SegDataset:
    """Open the rows of a split, by default picture and label. `options` go to `open_dataset`; `form` comes first."""
    fields, asked = tuple(fields or (IMAGE, LABEL)), options.pop("form", None) or {}
    kinds = {field.name: field.kind for field in open_dataset(root, split, fields=fields, **options).fields}
    forms = {name: WHOLE[kind] for name, kind in kinds.items() if kind in WHOLE}
    return open_dataset(root, split, fields=fields, form={**forms, **asked}, **options)


def channels_of(rows: SegDataset) -> int:
    """Return the channels of the first picture of a row."""
    return next(field.numbers for field in rows.fields if field.kind == PICTURE)
