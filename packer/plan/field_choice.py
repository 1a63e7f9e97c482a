"""`FieldChoice`: the fields that a build is asked for, and how their files are read and stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from packer.config.config import Settings
from packer.config.options import option_of, values_of
from packer.decoding.band_choice import ALL, GRAY, RGB
from packer.errors import UsageError
from packer.pairs.further import FurtherFiles
from packer.pixels.field_options import CLASS, ClassesField, FieldOptions, PictureField
from packer.plan.class_tables import classes_of
from readers.contract.field_entry import MOST_FIELDS
from readers.contract.fields import IMAGE, LABEL

First = TypeVar("First", PictureField, ClassesField)
"""The options of the image or of the label."""


@dataclass(frozen=True)
class FieldChoice:
    """The fields of a build. Image and label have options of their own, all others are tables of options."""

    image: PictureField
    label: ClassesField
    has_label: bool
    further: tuple[FieldOptions, ...]
    """The fields besides image and label."""
    ignore: tuple[str, ...]
    palettes_differ: bool
    paint: str
    crowd: str
    reproject: bool
    encode: tuple[tuple[str, str], ...]
    """The encoding of each field that has one."""

    @classmethod
    def of(cls, settings: Settings) -> FieldChoice:
        """Return the fields that these settings name. If `image` is among the tables of fields, these are all."""
        values = values_of(settings, "fields")
        named: Sequence[FieldOptions] = values.pop("named")
        if twice := [name for name, count in Counter(field.name for field in named).items() if count > 1]:
            raise UsageError(f"--field {twice[0]}: is named twice")
        by_name = {field.name: field for field in named}
        image = _with_table(PictureField(IMAGE, **_set(settings, "fields.image")), by_name.get(IMAGE))
        label = _with_table(ClassesField(LABEL, **_set(settings, "fields.label")), by_name.get(LABEL))
        if settings.get("volumes") and image.bands is None:
            image = replace(image, bands=ALL)  # gray slices are stored as one plane
        further = tuple(field for field in named if field.name not in (IMAGE, LABEL))
        chosen = cls(image, label, LABEL in by_name or IMAGE not in by_name, further, **values)
        if len(chosen.all) > MOST_FIELDS:
            raise UsageError(f"--field: {len(chosen.all)} fields; a pack has at most {MOST_FIELDS}")
        return chosen

    @property
    def all(self) -> tuple[FieldOptions, ...]:
        """The fields in their order: the image, the label if there is one, then others."""
        return (self.image, self.label, *self.further) if self.has_label else (self.image, *self.further)

    @property
    def channels(self) -> tuple[str, ...]:
        """The channels that `bands` names, if each band of an image has a file. A number is the name of one, too."""
        bands = self.image.bands
        return tuple(map(str, bands)) if isinstance(bands, tuple) else ()

    def of_channels(self) -> FieldChoice:
        """Return the fields of images whose bands are in several files: the pairs have the chosen ones."""
        bands = self.image.bands
        if bands in (GRAY, RGB):
            raise UsageError(
                f"--bands {bands}: each {{channel}} of {self.image.files} is a band with a name; name the bands, such "
                "as B04,B03"
            )
        return replace(self, image=replace(self.image, bands=ALL))

    @property
    def further_files(self) -> tuple[FurtherFiles, ...]:
        """The templates of the fields besides image and label, and their classes if each class has a file."""
        return tuple(
            FurtherFiles(field.name, field.files, classes_of(field) if CLASS in field.files else ())
            for field in self.further
        )


def _set(settings: Settings, part: str) -> dict[str, Any]:
    """Return the options of a field that have a value."""
    return {name: value for name, value in values_of(settings, part).items() if value is not None}


def _with_table(general: First, table: FieldOptions | None) -> First:
    """Return image or label with the options that its table of --field sets. Both must not say different things."""
    if table is None:
        return general
    if not isinstance(table, type(general)):
        raise UsageError(f"--field {table.name}: is always of the kind {general.kind}; give the field another name")
    changes: dict[str, Any] = {}
    for setting in fields(table):
        value, before = getattr(table, setting.name), getattr(general, setting.name)
        if setting.name == "name" or value == setting.default or str(value) == str(before):
            continue
        if before != setting.default:
            option = option_of(f"fields.{table.name}.{setting.name}").name
            raise UsageError(
                f"--field {table.name}: has another {setting.name} than --{option} {before}; give one of them"
            )
        changes[setting.name] = value
    return replace(general, **changes)
