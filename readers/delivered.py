"""`Delivered`: a stored field, the delivered field, and the copy from one to the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from readers.contract.bits import pack_bits, unpack_bits
from readers.contract.errors import RequestError
from readers.contract.fields import LABEL, Field, classes_field
from readers.contract.kinds import BITS, CLASSES, FLAG, INDEX, KINDS, ONEHOT, PICTURE, PLANES, planes_of
from readers.contract.onehot import collapse, expand
from readers.windows import CopyPixels, HowToCopy

LABELLED = Field("labelled", FLAG, FLAG, "|b1", ())
"""Delivered on request: whether a row has a label. It is not stored."""
VALID = "valid"
"""The name of the field that `valid_mask` makes."""
LabelForm = Literal["onehot", "index"]
Forms = Mapping[str, Literal["onehot", "index", "planes", "bits"]]
"""The form in which fields are delivered, by name."""


@dataclass(frozen=True)
class Delivered:
    """A stored field, the delivered field, and how the pixels of a row are copied."""

    stored: Field
    field: Field
    copy: CopyPixels = np.copyto

    @cached_property
    def is_stored(self) -> bool:
        """False of a field that follows from others; kept, because it is asked for each batch."""
        return self.stored.kind != FLAG

    @cached_property
    def is_unchanged(self) -> bool:
        """True if the stored rows are delivered byte for byte, all of one size."""
        return self.copy is np.copyto and not self.stored.flat

    @cached_property
    def fill(self) -> float | None:
        """The number of pixels outside of the picture; None if the crop decides it."""
        is_free = self.field.kind == PICTURE and not self.field.no_data and self.field.fill == 0
        return None if is_free else self.field.fill_number

    @cached_property
    def how(self) -> HowToCopy:
        """The way to copy windows of its rows."""
        is_picture = self.field.kind == PICTURE
        missing = self.field.fill_number if is_picture and self.field.no_data else None
        return HowToCopy(self.copy, self.fill, is_picture, missing)

    @property
    def expands(self) -> bool:
        """True if labels are stored as indices and delivered one-hot."""
        return self.copy is _expand

    def as_stored(self) -> Delivered:
        """Return the same field, delivered in its stored form."""
        return Delivered(self.stored, self.stored)


def valid_mask(sides: tuple[int | None, ...]) -> Field:
    """Return the field that says whether a pixel has data in a band of the picture. It is not stored."""
    return Field(VALID, FLAG, FLAG, "|b1", sides)


def forms_of(label: str | None, form: Mapping[str, str] | None) -> Mapping[str, str]:
    """Return the form in which each field is delivered, by its name; `label` is the form of the field `label`."""
    if label is not None and form and LABEL in form:
        raise RequestError(f"label={label!r} and form={dict(form)!r}: state the form of the field {LABEL!r} once")
    return {**(form or {}), **({} if label is None else {LABEL: label})}


def delivered(fields: Sequence[Field], forms: Mapping[str, str]) -> tuple[Delivered, ...]:
    """Return how each of these stored fields is delivered: in the form that is asked for, by default as stored."""
    names = tuple(field.name for field in fields)
    for name, form in forms.items():
        if name not in names:
            raise RequestError(f"{name!r} as {form!r}, but the field {name!r} is not read: fields={names!r}")
    return tuple(_delivered(field, forms.get(field.name, field.form)) for field in fields)


def _delivered(stored: Field, form: str) -> Delivered:
    if form == stored.form:
        return Delivered(stored, stored)
    forms = KINDS[stored.kind].dtypes if stored.kind in KINDS else (stored.form,)
    if stored.classes is None or form not in forms:
        words = " or ".join(f'"{possible}"' for possible in forms)
        raise RequestError(
            f"{stored.name!r} as {form!r}, but this field is of the kind {stored.kind}, delivered as {words}"
        )
    if stored.kind == CLASSES:
        field = classes_field(stored.name, form, stored.classes, stored.sides)
    else:
        planes = planes_of(form, len(stored.classes))
        field = replace(stored, form=form, shape=(*planes, *stored.sides))
    return Delivered(stored, replace(field, optional=stored.optional), COPIES[form])


def _expand(out: NDArray[Any], index: NDArray[Any]) -> None:
    expand(index, len(out), out)


def _collapse(out: NDArray[Any], planes: NDArray[Any]) -> None:
    collapse(planes, out.dtype.str, out)


def _unpack(out: NDArray[Any], packed: NDArray[Any]) -> None:
    unpack_bits(packed, len(out), out)


def _pack(out: NDArray[Any], planes: NDArray[Any]) -> None:
    pack_bits(planes, out)


COPIES: dict[str, CopyPixels] = {ONEHOT: _expand, INDEX: _collapse, PLANES: _unpack, BITS: _pack}
"""The copy into each form from the other form of the same kind."""
