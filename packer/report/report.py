"""`Report`: everything that a report shows, gathered from a pack, before it becomes a page."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from packer.data_checks.findings import KINDS, LEAKAGE, NEAR_LEAKAGE
from packer.errors import UsageError
from packer.packs.count_rows import count_rows
from packer.packs.so_far import open_so_far
from packer.packs.stats import SplitStats, stats_of
from packer.progress import Progress, no_progress
from packer.publish.remarks import Remarks
from packer.report.field_draw import FieldDraw, draw_field
from packer.report.gather import Extreme, Gathered, gather
from packer.report.heat import MOST_ROWS, HeatMaps, heat_by_split
from packer.report.remarks_of import remarks_of
from packer.report.rows_shown import RowsShown, Shown
from packer.shards.count_sizes import count_sizes
from packer.shards.row_counts import CountedFields
from packer.shards.stamps import load_stamps_of
from readers.contract.fields import Field
from readers.contract.manifest import ALL, Manifest
from readers.contract.statistics import ClassStatistics
from readers.contract.tiles import Size
from readers.formats.large_rows import is_large, strips
from readers.formats.shard import Shard
from readers.pack import Pack
from readers.row_pictures import RowPictures, Style
from readers.row_sheet import fair_draw

MOST_DRAWN = 200
LONGEST_READ = 0.1
"""Seconds for which rows are read to see how fast that is."""
MOST_GROUPS = 8
"""The most groups of equal pictures that are shown."""


@dataclass(frozen=True)
class Group:
    """Rows that are shown together, and why."""

    title: str
    rows: tuple[Shown, ...]


@dataclass(frozen=True)
class Speed:
    """Rows that were read by one thread, their bytes, and the seconds that it took."""

    rows: int
    bytes: int
    seconds: float


@dataclass(frozen=True)
class Report:
    """A pack in numbers and pictures."""

    root: Path
    manifest: Manifest
    splits: tuple[SplitStats, ...]
    label: Field | None
    gathered: Gathered
    sizes: Counter[Size]
    """Rows by the size of the picture that they came from; empty if that is not known any more."""
    remarks: Remarks | None
    heat: dict[str, HeatMaps]
    """Maps of the frame by split."""
    fields: tuple[FieldDraw, ...]
    """The fields that counts of rows do not describe."""
    groups: tuple[Group, ...]
    """Rows at the ends of each scale."""
    draw: tuple[Shown, ...]
    seed: int
    doubles: tuple[Group, ...]
    speed: Speed

    @property
    def counts(self) -> ClassStatistics | None:
        """The counts of the label over all splits."""
        if self.label is None:
            return None
        statistics = self.manifest.statistics[self.label.name]
        return statistics if isinstance(statistics, ClassStatistics) else None


def make_report(out: str | PathLike[str], rows: int = 16, seed: int = 0, progress: Progress = no_progress) -> Report:
    """Gather what a report shows of the pack at `out`, with `rows` rows in a fair draw."""
    if not 0 <= rows <= MOST_DRAWN:
        raise UsageError(f"a report draws 0 to {MOST_DRAWN} rows, not {rows}")
    pack = open_so_far(Path(out))
    pack.select([field.name for field in pack.manifest.fields])
    manifest, every = pack.manifest, pack.rows_of(ALL)
    label = CountedFields.of(manifest.fields, manifest.fields).label
    gathered = gather(count_rows(pack, progress), len(label.classes or ()) if label else 0, _rarest(manifest, label))
    shown = RowsShown(RowPictures(pack, Style()))
    remarks = remarks_of(pack, progress)
    draw = [every[number] for number in fair_draw(len(every), MOST_ROWS, seed)]
    picked = [every[number] for number in fair_draw(len(every), rows, seed)] if rows else []
    return Report(
        root=pack.root,
        manifest=manifest,
        splits=tuple(stats_of(pack)),
        label=label,
        gathered=gathered,
        sizes=source_sizes(pack),
        remarks=remarks,
        heat=heat_by_split(pack, label, seed) if label is not None else {},
        fields=tuple(draw_field(pack, field, draw) for field in _others(manifest)),
        groups=tuple(_extremes(gathered, shown, label)),
        draw=tuple(shown.row(row) for row in picked),
        seed=seed,
        doubles=tuple(_doubles(remarks, shown)),
        speed=_read(pack, draw),
    )


def _others(manifest: Manifest) -> list[Field]:
    """Return the fields except the counted label, and the counted picture if its numbers are the usual 0 to 255."""
    counted = CountedFields.of(manifest.fields, manifest.fields)
    usual = counted.picture if counted.picture is not None and counted.picture.dtype == "|u1" else None
    return [field for field in manifest.fields if field not in (counted.label, usual)]


def _rarest(manifest: Manifest, label: Field | None) -> int | None:
    """Return the class that the fewest rows have, of those that occur."""
    statistics = None if label is None else manifest.statistics[label.name]
    if not isinstance(statistics, ClassStatistics):
        return None
    occurring = [(rows, statistics.classes[number], number) for number, rows in enumerate(statistics.rows) if rows]
    return min(occurring)[2] if occurring else None


def source_sizes(pack: Pack) -> Counter[Size]:
    """Return how many rows came from pictures of each size. Tiles of a picture count each."""
    sizes: Counter[Size] = Counter()
    for shard in range(len(pack.table)):
        stamps = load_stamps_of(pack.root, pack.stem(shard).name)
        if stamps is not None:
            sizes += count_sizes(stamps.records["size"])
    return sizes


def _extremes(gathered: Gathered, shown: RowsShown, label: Field | None) -> list[Group]:
    groups = []
    for name, extreme in gathered.extremes.items():
        title = extreme.title
        if name == "rarest" and gathered.rarest is not None and label is not None and label.classes is not None:
            title = f"{title}: {label.classes.names[gathered.rarest]}"
        numbers = zip(extreme.rows.tolist(), extreme.values.tolist(), strict=True)
        rows = tuple(shown.row(row, _number(extreme, value)) for row, value in numbers)
        if rows:
            groups.append(Group(title, rows))
    return groups


def _number(extreme: Extreme, value: float) -> str:
    if extreme.unit in ("pixels", "classes"):
        return f"{value:,.0f} {extreme.unit}"
    return f"{value:.1f} {extreme.unit}".strip() if extreme.unit else f"brightness {value:.3f}"


def _doubles(remarks: Remarks | None, shown: RowsShown) -> list[Group]:
    """Return pictures that are in several splits, with all of their rows."""
    doubles = (
        [] if remarks is None else [finding for finding in remarks.findings if finding[0] in (LEAKAGE, NEAR_LEAKAGE)]
    )
    groups = [Group(KINDS[kind], tuple(shown.named(pairs[:4]))) for kind, pairs, _ in doubles[:MOST_GROUPS]]
    return [group for group in groups if len(group.rows) > 1]


def _copied(shard: Shard, field: Field, row: int) -> int:
    """Copy a field of a row, or its first lines if it is too large for memory. Return the bytes."""
    if is_large(shard, field, row):
        return next(strips(shard, field, row))[1].nbytes
    return shard.row(field, row).nbytes


def _read(pack: Pack, rows: Sequence[int]) -> Speed:
    """Copy whole rows for a moment, one after the other, as training does in each of its threads."""
    began, size, count = time.perf_counter(), 0, 0
    for row in rows:
        number, inside = pack.table.locate(row)
        shard = pack.shard(number)
        size += sum(_copied(shard, field, inside) for field in pack.fields_of(number))
        count += 1
        if time.perf_counter() - began > LONGEST_READ:
            break
    return Speed(count, size, time.perf_counter() - began)
