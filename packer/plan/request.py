"""`Request`: what a build was asked for, in six values. Each is read by one step of the plan."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias

from packer.config.config import Settings
from packer.config.effective import effective, from_python
from packer.config.options import values_of
from packer.errors import UsageError
from packer.plan.field_choice import FieldChoice
from packer.plan.row_search import RowSearch, pack_at
from packer.publish.target import holds_pack
from packer.recipe.source import Source
from packer.sources.containers import container_of, names_archive
from packer.workers.pool import Pool
from packer.workers.run import open_pool
from readers.contract.tiles import Size
from readers.machine import usable_cores
from readers.stores.open_store import url_of

Input: TypeAlias = "str | PathLike[str] | Source"
"""A folder, or another source of the rows of a pack."""


@dataclass(frozen=True)
class ShapeChoice:
    """The stored size, and how pictures of other sizes are fitted to it."""

    size: Size | str | None
    """Height and width, `native`, or None for the size of all pictures."""
    fit: str | None
    overlap: int
    edge: str
    interpolation: str
    resolution: float | None
    """The side of a pixel in the units of its coordinates, or None to keep the pixels of the files."""


@dataclass(frozen=True)
class StoreChoice:
    """The pack that is built, and how its shards are stored."""

    out: Path
    format: str
    shard_bytes: int
    scratch: Path | None
    no_conditions: str


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
class Judgement:
    """The bad pairs and the findings that a build tolerates, and the rows that it takes for unchanged."""

    limits: Limits
    near_duplicates: bool
    fail_on: tuple[str, ...]
    accept: tuple[str, ...]
    trust: str
    retry_bad: bool

    @classmethod
    def of(cls, settings: Settings) -> Judgement:
        values = values_of(settings, "judgement")
        limits = Limits(values.pop("on_bad") == "skip", values.pop("max_bad"))
        return cls(limits, **{**values, "fail_on": values["fail_on"] or ()})


@dataclass(frozen=True)
class Running:
    """The machines that build, and how long they may take for a pair."""

    workers: int
    engine: str | None
    task_timeout: int

    @classmethod
    def of(cls, settings: Settings) -> Running:
        values = values_of(settings, "running")
        return cls(**{**values, "workers": values["workers"] or usable_cores()})

    def open_pool(self) -> AbstractContextManager[Pool]:
        """Open the workers of this machine."""
        return open_pool(self.workers, self.task_timeout)


@dataclass(frozen=True)
class Request:
    """The options of a build, as typed values. An attribute is None if the plan finds its value out."""

    rows: RowSearch
    fields: FieldChoice
    shape: ShapeChoice
    store: StoreChoice
    judgement: Judgement
    running: Running
    settings: Settings
    """The effective settings that make it, for the pack to keep."""

    @classmethod
    def from_settings(cls, settings: Settings, source: Source | None = None) -> Request:
        """Return the request that these effective settings make. With a source they name no raw folder, or a pack."""
        fields = FieldChoice.of(settings)
        rows = RowSearch.of(settings, fields, source)
        if rows.pairing.has_channels:
            fields = fields.of_channels()
        if rows.objects is not None:
            classes = rows.objects.copy_of(fields.label.classes)
            fields = replace(fields, label=replace(fields.label, classes=classes))
        return cls(
            rows,
            fields,
            ShapeChoice(**values_of(settings, "shape")),
            StoreChoice(Path(str(settings["out"])), **values_of(settings, "store")),
            Judgement.of(settings),
            Running.of(settings),
            settings,
        )

    def into(self, out: Path) -> Request:
        """Return the same request for another pack."""
        return replace(self, store=replace(self.store, out=out))


def request_of(raw: Input, out: str | PathLike[str], **options: Any) -> Request:
    """Return the request of a build from Python: the options are the same as of the command."""
    folder, source = raw_or_source(raw)
    name = "from" if folder is not None and is_from(folder) else "raw"
    settings = effective(from_python({**options, name: folder, "out": fspath(out)}))
    return Request.from_settings(settings, source)


def request_of_rows(settings: Settings, rows: Iterable[int]) -> Request:
    """Return the request of a build whose settings name a pack, for these rows of it alone."""
    return Request.from_settings(settings, pack_at(Path(str(settings["from"]))).only(rows))


def raw_or_source(raw: Input) -> tuple[Path | None, Source | None]:
    """Return the raw folder or the source, whichever is given."""
    if isinstance(raw, (str, PathLike)):
        return Path(raw), None
    if not isinstance(raw, Source):
        raise TypeError(f"expected a folder or a source, such as Rows(keys, load); found {type(raw).__name__}")
    return None, raw


def is_from(folder: Path) -> bool:
    """Return whether a path is for --from, and not for RAW: a pack or a container, or a URL that says so."""
    if (url := url_of(folder)) is not None:
        return names_archive(url)
    return holds_pack(folder) or container_of(folder) is not None
