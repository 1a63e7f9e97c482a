"""Extract rows of a pack into files that other tools open, and that `packer build` packs to the same rows."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from packer.errors import UsageError, first_of
from packer.packs.new_folder import new_folder
from packer.packs.write_rows import COLOUR_BANDS, class_lines, row_files, write_file
from packer.packs.write_strips import write_strips
from packer.packs.write_volumes import data_set_text, volume_files
from packer.progress import Advance, Progress, no_progress
from readers.contract.fields import IMAGE, LABEL, Field
from readers.contract.kinds import CLASSES, MULTILABEL
from readers.contract.manifest import ALL
from readers.contract.palette import hex_of
from readers.contract.place import GEO, Place
from readers.find_key import rows_with_key
from readers.formats.large_rows import is_large
from readers.formats.shard import Shard
from readers.machine import usable_cores
from readers.pack import Pack

PAIRS, CLASS_TABLE = "pairs.csv", "classes.csv"
AT_ONCE = 256
"""The rows that are given to the threads at once."""


@dataclass(frozen=True)
class Extracted:
    """The rows and files that were written, and the arguments of `packer build` that pack them to the same rows."""

    rows: int
    files: int
    bytes: int
    again: tuple[str, ...]


class Written(NamedTuple):
    """A row that was written: its split, its key, the paths of its fields, its files and their bytes."""

    split: str
    key: str
    paths: dict[str, str]
    files: int
    bytes: int


def extract_rows(
    out: str | PathLike[str],
    folder: str | PathLike[str],
    keys: Iterable[str] | None = None,
    *,
    split: str | None = None,
    fields: Sequence[str] | None = None,
    colours: bool = False,
    progress: Progress = no_progress,
) -> Extracted:
    """Write rows of the pack at `out` below `folder`, which is new or empty: all rows, or those with these keys.

    Labels become PNGs of class indices, or with `colours` of the colours of the classes. What PNG cannot hold becomes
    `.npy`, and a volume a NIfTI file at its place. `folder` appears when everything is written. Raises UsageError if a
    key is unknown.
    """
    pack, folder = Pack.open(Path(out)), Path(folder)
    chosen = pack.select(fields or [field.name for field in pack.manifest.fields])
    if chosen[0].is_volume and colours:
        raise UsageError(
            f"{out}: its rows are volumes, whose labels have numbers in a NIfTI file; leave out the colours"
        )
    every = pack.rows_of(split or ALL)
    rows: Sequence[int] = every if keys is None else _rows_of(pack, list(dict.fromkeys(keys)), every)
    if colours:
        _check_colours(chosen)
    with new_folder(folder) as new, progress("extracting", len(rows), "rows") as advance:
        totals = _write(pack, rows, chosen, colours, new, advance)
    names_of_splits = [entry.name for entry in pack.manifest.splits]
    return Extracted(len(rows), *totals, tuple(_arguments(chosen, colours, folder, names_of_splits)))


def _rows_of(pack: Pack, keys: Sequence[str], every: range) -> list[int]:
    """Return the rows with these keys, in each split that has one."""
    rows_by_key = [rows_with_key(pack, key, every) for key in keys]
    unknown = [repr(key) for key, rows in zip(keys, rows_by_key, strict=True) if not rows]
    if unknown:
        raise UsageError(f"{pack.root}: has no rows with these keys: {', '.join(first_of(unknown, 20))}")
    return sorted(row for rows in rows_by_key for row in rows)


def _check_colours(fields: Sequence[Field]) -> None:
    """Refuse labels whose colours do not say which class a pixel has."""
    for field in fields:
        if field.kind == CLASSES and field.classes is not None:
            palette = field.classes.palette
            if len({*palette, palette.ignored}) <= len(palette):
                raise UsageError(f"{field.name}: two classes have the same colour; extract their indices")


def _write(
    pack: Pack, rows: Sequence[int], fields: Sequence[Field], colours: bool, folder: Path, advance: Advance
) -> tuple[int, int]:
    """Write the rows, the table of pairs and the class table; return the number of files and their bytes."""
    files = size = 0
    names = [field.name for field in fields]

    def write(row: int) -> Written:
        return _write_row(pack, row, fields, colours, folder)

    with (folder / PAIRS).open("w", encoding="utf-8", newline="") as text, ThreadPoolExecutor(usable_cores()) as pool:
        table = csv.writer(text, lineterminator="\n")
        table.writerow(["split", "key", *names])
        for start in range(0, len(rows), AT_ONCE):
            for written in pool.map(write, rows[start : start + AT_ONCE]):
                table.writerow([written.split, written.key, *(written.paths.get(name, "") for name in names)])
                files, size = files + written.files, size + written.bytes
                advance(1)
    for field in fields:
        if field.classes is not None:
            name = CLASS_TABLE if field.name == LABEL else f"{field.name}_{CLASS_TABLE}"
            (folder / name).write_text(class_lines(field), encoding="utf-8")
    if fields[0].is_volume:
        file = data_set_text(fields)
        (folder / file.path).write_bytes(file.data)
    return files, size


def _write_row(pack: Pack, row: int, fields: Sequence[Field], colours: bool, folder: Path) -> Written:
    """Write the files of a row. Fields that the row lacks have none."""
    number, inside = pack.table.locate(row)
    shard, split = pack.shard(number), pack.split_of(number).name
    prefix = "" if split == ALL else f"{split}/"
    paths: dict[str, str] = {}
    count = size = 0
    for field in fields:
        if shard.has(field.name):
            names = _write_field(shard, field, inside, pack.place(row), colours, folder / prefix)
            paths.update((field.name, prefix + name) for name in names[:1])
            count, size = count + len(names), size + sum((folder / prefix / name).stat().st_size for name in names)
    return Written(split, shard.key(inside), paths, count, size)


def _write_field(shard: Shard, field: Field, row: int, place: Place | None, colours: bool, folder: Path) -> list[str]:
    """Write the files of a field of a row; return their paths below the folder."""
    is_map = place is not None and place.kind == GEO and field.kind != MULTILABEL
    if is_large(shard, field, row) or (is_map and not colours):
        return [write_strips(shard, field, row, folder, place)]
    numbers, key = shard.row(field, row), shard.key(row)
    files = volume_files(field, key, numbers, place) if field.is_volume else row_files(field, key, numbers, colours)
    return [write_file(file, folder) for file in files]


def _arguments(fields: Sequence[Field], colours: bool, folder: Path, names_of_splits: Sequence[str]) -> Iterator[str]:
    """Yield the arguments of `packer build` that pack images and labels to the same rows, if these are all fields."""
    names = [field.name for field in fields]
    image, label = fields[0], fields[-1]
    if names == [IMAGE, LABEL] and image.is_volume and label.classes is not None:
        yield from _arguments_of_volumes(label, names_of_splits)
        return
    if names != [IMAGE, LABEL] or image.dtype != "|u1" or label.classes is None:
        return
    yield from ("--size", "native" if image.size is None else f"{image.size[0]}x{image.size[1]}")
    yield from ("--pairs", str(folder / PAIRS), "--classes", str(folder / CLASS_TABLE), "--labels", label.form)
    palette = label.classes.palette
    yield from ("--ignore", hex_of(palette.ignored) if colours else str(label.classes.ignore_index))
    if image.bands != COLOUR_BANDS:
        yield from ("--bands", "all")
    yield from ("--label-codec", "colour" if colours else "index")


def _arguments_of_volumes(label: Field, names_of_splits: Sequence[str]) -> Iterator[str]:
    """Yield the arguments that pack volumes again; dataset.json has the names of channels and classes."""
    split = "" if list(names_of_splits) == [ALL] else "{split}/"
    yield from ("--volumes", "--labels", label.form)
    yield from ("--image", f"{split}images/{{key}}", "--label", f"{split}labels/{{key}}", "--from")
