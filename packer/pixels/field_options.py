"""The fields that a user asks for: a class for each kind, with the options for its files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from packer.decoding.no_data_choice import FILE
from packer.decoding.rules import EXACT, ImageRules
from packer.errors import BadPair
from packer.pixels.label_rules import AUTO, KEEP, LabelRules
from packer.pixels.number_rules import INDEX, NEAREST, IdRules, MultilabelRules, ValueRules
from readers.contract import kinds
from readers.contract.classes import ClassTable
from readers.contract.fields import IMAGE, LABEL
from readers.contract.kinds import CLASSES, IDS, MULTILABEL, PICTURE, VALUES

_FLAGS = {
    "--image-range LOW,HIGH": "range = [LOW, HIGH]",
    "--alpha drop": 'alpha = "drop"',
    "--bands all": 'bands = "all"',
    "--bands 3,2,1": 'bands = "3,2,1"',
    "--nodata nan": 'nodata = "nan"',
}
CLASS = "{class}"
"""In the template of a field that has a file for each class."""
ReadRule: TypeAlias = "ImageRules | LabelRules | IdRules | ValueRules | MultilabelRules"
Classes: TypeAlias = "str | tuple[str, ...] | ClassTable | None"
"""A class table or the values of the classes, as --classes takes them; or the names of the classes."""


@dataclass(frozen=True)
class FieldOptions:
    """A field that a user asks for."""

    name: str
    files: str = ""
    kind: ClassVar[str]
    rules: ClassVar[type[ReadRule]]
    """The rules by which the files of the kind are read, which a recipe stores."""


@dataclass(frozen=True)
class FieldOfClasses(FieldOptions):
    """A field with a class table."""

    classes: Classes = None
    form: str = kinds.ONEHOT


@dataclass(frozen=True)
class PictureField(FieldOptions):
    """A picture. `bands` are all, gray, rgb, or their numbers or names; without it, RGB of 8 bits is stored."""

    name: str = IMAGE
    bands: str | tuple[int, ...] | tuple[str, ...] | None = None
    range: tuple[float, float] | None = None
    alpha: str = "refuse"
    dtype: str | None = None
    decode: str = EXACT
    nodata: str = FILE
    """The number of pixels without data: the one that each file names, `none`, or a number such as `-9999` or `nan`."""
    pad: float = 0
    """The number around pictures that are smaller than their row or window, in the stored type."""
    times: int = 1
    """The dates of a time series, whose bands come date by date."""
    kind: ClassVar[str] = PICTURE
    rules = ImageRules


@dataclass(frozen=True)
class ClassesField(FieldOfClasses):
    """A label: one class for each pixel."""

    name: str = LABEL
    codec: str = AUTO
    unknown: str = "error"
    threshold: int | None = None
    divisor: int = 1000
    nodata: str = KEEP
    """The label of a pixel without data: `keep` it, or `ignore` it."""
    kind: ClassVar[str] = CLASSES
    rules = LabelRules


@dataclass(frozen=True)
class IdsField(FieldOptions):
    """The object that each pixel belongs to."""

    codec: str = INDEX
    dtype: str | None = None
    kind: ClassVar[str] = IDS
    rules = IdRules


@dataclass(frozen=True)
class ValuesField(FieldOptions):
    """A measured value for each pixel, such as its depth."""

    invalid: float | None = None
    scale: float = 1
    interpolation: str = NEAREST
    dtype: str | None = None
    kind: ClassVar[str] = VALUES
    rules = ValueRules


@dataclass(frozen=True)
class MultilabelField(FieldOfClasses):
    """Classes that may overlap: a file for each, with `{class}` in its name, or one file of bits or bands."""

    form: str = kinds.PLANES
    kind: ClassVar[str] = MULTILABEL
    rules = MultilabelRules


@contextmanager
def naming_option(name: str) -> Iterator[None]:
    """Name the options of a further picture where a reason names the options of `image`."""
    try:
        yield
    except BadPair as bad:
        reason = str(bad)
        for flag, option in _FLAGS.items() if name != IMAGE else ():
            reason = reason.replace(flag, f"the field {name} {option}")
        raise BadPair(reason) from None


BY_KIND: dict[str, type[FieldOptions]] = {
    options.kind: options for options in (PictureField, ClassesField, IdsField, ValuesField, MultilabelField)
}
