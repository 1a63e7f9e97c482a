"""`Delivered`: a field as it is stored and as it is delivered, and the copy from one to the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from readers.contract.classes import ClassTable
from readers.contract.errors import RequestError
from readers.contract.fields import LABEL, Field
from readers.contract.onehot import collapse, expand
from readers.windows import CopyPixels

LabelForm = Literal["onehot", "index"]
FORMS: tuple[LabelForm, ...] = ("onehot", "index")


@dataclass(frozen=True)
class Delivered:
    """A stored field, the field as it is delivered, and how the pixels of a row are copied."""

    stored: Field
    field: Field
    copy: CopyPixels = np.copyto

    @cached_property
    def is_unchanged(self) -> bool:
        """True if rows are delivered byte for byte as they are stored, all of one size."""
        return self.copy is np.copyto and not self.stored.native

    @cached_property
    def fill(self) -> int | None:
        """The number of pixels outside of the picture; None if the crop decides it."""
        if self.field.encoding == "index":
            return int(np.iinfo(self.field.dtype).max)
        return 0 if self.field.encoding == "onehot" else None

    @property
    def expands(self) -> bool:
        """True if labels are stored as indices and delivered one-hot."""
        return self.copy is _expand

    def as_stored(self) -> Delivered:
        """Return the same field, delivered as it is stored."""
        return Delivered(self.stored, self.stored)


def delivered(fields: Sequence[Field], classes: ClassTable, label: str | None) -> tuple[Delivered, ...]:
    """Return how each of these stored fields is delivered: labels in the form `label`, by default as stored."""
    if label not in (None, *FORMS):
        raise RequestError(f'label={label!r} is neither "onehot" nor "index"')
    names = tuple(field.name for field in fields)
    if label is not None and LABEL not in names:
        raise RequestError(f"labels as {label!r}, but the field {LABEL!r} is not read: fields={names!r}")
    return tuple(_delivered(field, classes, label or field.encoding) for field in fields)


def _delivered(stored: Field, classes: ClassTable, form: str) -> Delivered:
    if stored.name != LABEL or form == stored.encoding:
        return Delivered(stored, stored)
    if form == "onehot":
        return Delivered(stored, Field(LABEL, "|u1", (len(classes), *stored.shape[-2:]), form), _expand)
    return Delivered(stored, Field(LABEL, classes.index_dtype, stored.shape[-2:], form), _collapse)


def _expand(out: NDArray[Any], index: NDArray[Any]) -> None:
    expand(index, len(out), out)


def _collapse(out: NDArray[Any], planes: NDArray[Any]) -> None:
    collapse(planes, out.dtype.str, out)
