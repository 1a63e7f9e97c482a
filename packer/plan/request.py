"""The request: what a build was asked for, as typed values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from packer.config.config import Settings
from packer.config.options import BUILD, MTIME, REFUSE, TASK_TIMEOUT, value_of
from packer.decoding.band_choice import ALL
from packer.errors import InputError, UsageError
from packer.pixels.choices import EXACT, MOST_PIXELS, BandChoice
from packer.pixels.field_options import FieldOptions
from packer.pixels.label_rules import AUTO
from packer.plan.wanted_fields import further_files, has_label, take_options, wanted_fields
from packer.publish.target import holds_pack
from packer.recipe.source import Source
from packer.sources.containers import container_of
from packer.sources.files.objects import ObjectsSource
from packer.sources.open_source import SourceOptions
from packer.sources.pack import PackSource
from readers.contract.classes import ClassTable
from readers.contract.tiles import Size
from readers.machine import usable_cores
from readers.stores.open_store import url_of

MIB = 1 << 20
RENAMED = {"format": "storage", "shard-size": "shard_bytes", "field": "named"}
Input: TypeAlias = "str | PathLike[str] | Source"
"""A folder, or another source of the rows of a pack."""


@dataclass(frozen=True)
class Limits:
    """The number of bad pairs that a build tolerates: none, or with `skip` up to `most`, in pairs or as a share."""

    skip: bool = False
    most: float | None = None

    def __post_init__(self) -> None:
        if self.most is not None and not self.skip:
            raise UsageError("--max-bad: needs --on-bad skip; without it, one bad pair is too many")

    def allows(self, rejects: int, pairs: int) -> bool:
        if not self.skip:
            return rejects == 0
        return self.most is None or rejects <= (self.most if self.most >= 1 or self.most == 0 else self.most * pairs)


@dataclass(frozen=True)
class Request:
    """The options of a build, as typed values. An attribute is None if the plan finds its value out."""

    raw: Path | None
    """The folder that holds the files, and perhaps the class table. A source needs none."""
    out: Path
    storage: str = "npy"
    source: SourceOptions = field(default_factory=SourceOptions)
    classes: str | ClassTable | None = None
    ignore: tuple[str, ...] = ()
    label_codec: str = AUTO
    unknown: str = "error"
    paint: str = "file"
    crowd: str = "class"
    threshold: int | None = None
    divisor: int = 1000
    size: Size | str | None = None
    fit: str | None = None
    overlap: int = 0
    edge: str = "pad"
    interpolation: str = "area"
    labels: str = "onehot"
    image_dtype: str | None = None
    bands: BandChoice | None = None
    named: tuple[FieldOptions, ...] = ()
    """The fields that have a table of options of their own."""
    image_range: tuple[float, float] | None = None
    alpha: str = "refuse"
    decode: str = EXACT
    max_pixels: int = MOST_PIXELS
    slide_level: int = 0
    encode: tuple[tuple[str, str], ...] = ()
    """The encoding of each field that has one."""
    shard_bytes: int = 128 * MIB
    palettes_differ: bool = False
    limits: Limits = Limits()
    near_duplicates: bool = False
    fail_on: tuple[str, ...] = ()
    accept: tuple[str, ...] = ()
    workers: int = 1
    engine: str | None = None
    task_timeout: int = TASK_TIMEOUT
    trust: str = MTIME
    retry_bad: bool = False
    scratch: Path | None = None
    no_conditions: str = REFUSE

    @cached_property
    def fields(self) -> tuple[FieldOptions, ...]:
        """The fields in their order: the image, the label if there is one, then others."""
        return wanted_fields(vars(self))

    @classmethod
    def from_settings(cls, settings: Settings, given: Source | None = None) -> Request:
        """The request that these effective settings make. With a source they name no raw folder, or a pack."""
        path = Path(str(settings["from"])) if given is None and "from" in settings else None
        if path is not None:
            given = _open_pack(path)
        values = {
            RENAMED.get(name, name.replace("-", "_")): value_of(option, settings[name])
            for name, option in BUILD.items()
            if name in settings
        }
        take_options(values)
        if values.get("volumes") and values.get("bands") is None:
            values["bands"] = ALL  # gray slices are stored as one plane
        fields = values.get("named", ())
        values |= {"has_label": has_label(fields), "further": further_files(fields)}
        source = SourceOptions.take_from(values, given, path if given is None else None)
        limits = Limits(values.pop("on_bad", "fail") == "skip", values.pop("max_bad", None))
        values["divisor"] = int(values.get("divisor", cls.divisor))
        values.setdefault("workers", usable_cores())
        named = settings.get("from", settings.get("raw")) if source.given is None else None
        raw = None if named is None else Path(str(named))
        if (url := url_of(named)) is not None:
            objects = ObjectsSource.at(url)
            raw, source = objects.raw, replace(source, objects=objects)
            values |= {"classes": objects.copy_of(values["classes"])} if "classes" in values else {}
        return cls(raw, Path(str(settings["out"])), source=source, limits=limits, **values)


def request_of_rows(settings: Settings, rows: Iterable[int]) -> Request:
    """Return the request of a build whose settings name a pack, for these rows of it alone."""
    return Request.from_settings(settings, PackSource.at(Path(str(settings["from"]))).only(rows))


def raw_or_source(given: Input) -> tuple[Path | None, Source | None]:
    """Return the raw folder or the source, whichever is given."""
    if isinstance(given, (str, PathLike)):
        return Path(given), None
    if not isinstance(given, Source):
        raise TypeError(f"expected a folder or a source, such as Rows(keys, load); found {type(given).__name__}")
    return None, given


def _open_pack(folder: Path) -> PackSource | None:
    """Open the pack in a folder; None if it is a folder of files or a container."""
    if holds_pack(folder):
        return PackSource.at(folder)
    if not folder.is_dir() and container_of(folder) is None:
        problem = "is a file of an unknown kind; expected a pack, a container of rows, or a folder"
        raise InputError(f"{folder}: {problem if folder.exists() else 'there is no such pack, container or folder'}")
    return None


def is_from(folder: Path) -> bool:
    """Return whether a path is for --from, and not for RAW: a pack or a container."""
    return holds_pack(folder) or container_of(folder) is not None
