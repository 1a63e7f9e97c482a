"""Plan the fields of a build whose rows come from a pack: they stay unchanged, except for the requested form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from packer.decoding.rules import FileRules
from packer.errors import UsageError
from packer.pixels.choices import FLOATS, NUMBERS
from packer.pixels.field_options import BY_KIND, PictureField
from packer.plan.field_choice import FieldChoice
from packer.plan.fields.by_kind import planned
from packer.plan.fields.packed import PackedField
from packer.plan.fields.picture import padded
from packer.plan.fields.planned_field import PlannedField
from packer.plan.found_rows import FoundRows
from readers.contract.fields import IMAGE, LABEL, RGB, Field, classes_field, picture_field
from readers.contract.kinds import PICTURE

_SCALED = ((0, 255), (0, 1))
"""The ranges of pictures that --image-dtype converts into each other."""


def packed_fields(found_rows: FoundRows, choice: FieldChoice) -> tuple[PlannedField, ...]:
    """Return the fields of a pack as this build stores them. --labels and --image-dtype are for label and image."""
    return tuple(_planned(_stored(field, choice), found_rows.files) for field in found_rows.packed)


def _planned(field: Field, files: FileRules) -> PlannedField:
    options = BY_KIND[field.kind](field.name)
    if isinstance(options, PictureField) and (field.bands != RGB or field.range not in _SCALED):
        options = replace(options, bands="all")
    read = planned(options, field.classes, files).read
    return PackedField(options, read, field.classes, packed=field)


def _stored(field: Field, choice: FieldChoice) -> Field:
    if field.name == LABEL:
        assert field.classes is not None, "the source has checked its kind"
        return classes_field(LABEL, choice.label.form, field.classes, None)
    if field.name != IMAGE:
        return field
    image = _of_dtype(field, choice)
    pad = choice.image.pad
    if image.dtype != field.dtype and not pad:  # the number that the pack has, in the new type
        pad = field.fill_number / _most(field) * _most(image)
        pad = pad if image.dtype in FLOATS else round(pad)
    return padded(image, pad, "--pad")


def _most(field: Field) -> float:
    """Return the number that counts as 1."""
    assert field.range is not None, "the type of others does not change"
    return field.range[1]


def _of_dtype(field: Field, choice: FieldChoice) -> Field:
    """Return the image of a pack in the type that --image-dtype names."""
    dtype = NUMBERS[choice.image.dtype] if choice.image.dtype else field.dtype
    if field.kind != PICTURE or dtype == field.dtype:
        return field
    if field.range not in _SCALED or field.bands is None:
        raise UsageError(
            f"--image-dtype {choice.image.dtype}: this pack has images of {np.dtype(field.dtype)} as they "
            "were in the files; leave it out"
        )
    return replace(picture_field(IMAGE, dtype, None, field.bands), times=field.times)
