"""`BuildOptions`: the options of a build from Python, with their types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TypedDict

from packer.pixels.field_options import FieldOptions
from readers.contract.classes import ClassTable


class BuildOptions(TypedDict, total=False):
    """The options of a build from Python; the documentation of each is the help of the command."""

    config: str | PathLike[str]
    preset: str
    only: Sequence[str]
    image: str
    label: str
    fields: Sequence[FieldOptions | str | Mapping[str, object]]
    key: str
    volumes: bool
    axis: int
    orient: str
    spacing: str | tuple[float, float, float]
    lists: str
    pairs: str | PathLike[str]
    split: str | dict[str, float]
    folds: int | str | PathLike[str]
    split_blocks: int | str | tuple[int, int]
    split_by: str
    split_exact: bool
    missing: str
    annotations: str
    paint: str
    crowd: str
    reproject: bool
    classes: str | int | PathLike[str] | Sequence[str] | ClassTable
    ignore: Sequence[str | int]
    label_codec: str
    threshold: int
    divisor: int
    palettes_differ: bool
    unknown: str
    nodata_label: str
    size: tuple[int, int] | str
    fit: str
    overlap: int
    edge: str
    resolution: float
    interpolation: str
    image_range: tuple[float, float]
    alpha: str
    decode: str
    nodata: str | float
    max_pixels: int
    slide_level: int
    place: str
    format: str
    labels: str
    image_dtype: str
    bands: str | Sequence[int] | Sequence[str]
    times: int
    pad: float
    encode: Sequence[str]
    shard_size: int | str
    on_bad: str
    max_bad: int | float | str
    near_duplicates: bool
    fail_on: str | Sequence[str]
    accept: Sequence[str]
    workers: int
    engine: str
    task_timeout: int
    trust: str
    retry_bad: bool
    scratch: str | PathLike[str]
    no_conditions: str
