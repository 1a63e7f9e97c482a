"""`Delivered`: a field as it is stored and as it is delivered, and the copy from one to the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from readers.contract.errors import RequestError
from readers.contract.fields import LABEL, Field, classes_field
from readers.contract.kinds import CLASSES, FLAG, ONEHOT, PICTURE
from readers.contract.onehot import collapse, expand
from readers.windows import CopyPixels

LABELLED = Field("labelled", FLAG, FLAG, "|b1", ())
"""Delivered on request: whether a row has a label. It is not stored."""
LabelForm = Literal["onehot", "index"]
FORMS: tuple[LabelForm, ...] = ("onehot", "index")


@dataclass(frozen=True)
class Delivered:
    """A stored field, the field as it is delivered, and how the pixels of a row are copied."""

    stored: Field
    field: Field
    copy: CopyPixels = np.copyto

    @cached_property
    def is_stored(self) -> bool:
        """False of a field that follows from others; kept, because it is asked for each batch."""
        return self.stored.kind != FLAG

    @cached_property
    def is_unchanged(self) -> bool:
        """True if rows are delivered byte for byte as they are stored, all of one size."""
        return self.copy is np.copyto and not self.stored.native

    @cached_property
    def fill(self) -> float | None:
        """The number of pixels outside of the picture; None if the crop decides it."""
        return None if self.field.kind == PICTURE else self.field.fill_number

    @property
    def expands(self) -> bool:
        """True if labels are stored as indices and delivered one-hot."""
        return self.copy is _expand

    def as_stored(self) -> Delivered:
        """Return the same field, delivered as it is stored."""
        return Delivered(self.stored, self.stored)


def delivered(fields: Sequence[Field], label: str | None) -> tuple[Delivered, ...]:
    """Return how each of these stored fields is delivered: labels in the form `label`, by default as stored."""
    if label not in (None, *FORMS):
        raise RequestError(f'label={label!r} is neither "onehot" nor "index"')
    names = tuple(field.name for field in fields)
    if label is not None and LABEL not in names:
        raise RequestError(f"labels as {label!r}, but the field {LABEL!r} is not read: fields={names!r}")
    return tuple(_delivered(field, label or field.form) for field in fields)


def _delivered(stored: Field, form: str) -> Delivered:
    if stored.name != LABEL or form == stored.form:
        return Delivered(stored, stored)
    if stored.kind != CLASSES or stored.classes is None:
        raise RequestError(f"labels as {form!r}, but the field {LABEL!r} is of the kind {stored.kind}, not {CLASSES}")
    field = replace(classes_field(LABEL, form, stored.classes, stored.size), optional=stored.optional)
    return Delivered(stored, field, _expand if form == ONEHOT else _collapse)


def _expand(out: NDArray[Any], index: NDArray[Any]) -> None:
    expand(index, len(out), out)


def _collapse(out: NDArray[Any], planes: NDArray[Any]) -> None:
    collapse(planes, out.dtype.str, out)
