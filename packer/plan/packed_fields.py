"""Plan the fields of a build whose rows come from a pack: they stay unchanged, except for the requested form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from packer.decoding.rules import FileRules
from packer.errors import UsageError
from packer.pixels.choices import NUMBERS
from packer.pixels.field_options import BY_KIND, PictureField
from packer.plan.field_choice import FieldChoice
from packer.plan.fields.by_kind import planned
from packer.plan.fields.packed import PackedField
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
    dtype = NUMBERS[choice.image.dtype] if field.name == IMAGE and choice.image.dtype else field.dtype
    if field.kind != PICTURE or dtype == field.dtype:
        return field
    if field.range not in _SCALED or field.bands is None:
        raise UsageError(
            f"--image-dtype {choice.image.dtype}: this pack has images of {np.dtype(field.dtype)} as they "
            "were in the files; leave it out"
        )
    return replace(picture_field(IMAGE, dtype, None, field.bands), times=field.times)
