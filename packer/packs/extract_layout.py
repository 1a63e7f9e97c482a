"""Extract all rows of a pack as the folder that a known trainer reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import TextIO

from packer.errors import UsageError
from packer.packs.extract import AT_ONCE, Extracted
from packer.packs.layouts.by_name import LAYOUTS
from packer.packs.layouts.layout import FolderLayout, LaidOut, Roles, RowOfPack
from packer.packs.new_folder import new_folder
from packer.packs.write_rows import RowFile, write_file
from packer.progress import Advance, Progress, no_progress
from readers.contract.manifest import ALL
from readers.machine import usable_cores
from readers.pack import Pack


def extract_layout(
    out: str | PathLike[str],
    folder: str | PathLike[str],
    layout: str,
    *,
    split: str | None = None,
    progress: Progress = no_progress,
) -> Extracted:
    """Write the rows of a pack, or of a split, below `folder` as one of LAYOUTS. Rows without a label lie there, too.

    `folder` appears when everything is written.
    """
    pack, folder = Pack.open(Path(out)), Path(folder)
    fields = pack.select([field.name for field in pack.manifest.fields])
    roles = Roles.of(fields)
    chosen = LAYOUTS[layout](roles)
    rows = pack.rows_of(split or ALL)
    with new_folder(folder) as new, progress("extracting", len(rows), "rows") as advance:
        files, size = _write(pack, rows, roles, chosen, new, advance)
    return Extracted(len(rows), files, size, ())


def _write(
    pack: Pack, rows: range, roles: Roles, layout: FolderLayout, folder: Path, advance: Advance
) -> tuple[int, int]:
    """Write the rows, their lists, and the files for all of them; return the number of files and their bytes."""
    names = [field.name for field in (roles.image, roles.label, roles.ids) if field is not None]
    splits = Counter[str]()

    def laid_out(number: int) -> tuple[str, LaidOut]:
        row = _stored_row(pack, rows, number, names)
        done = layout.row(row)
        for file in done.files:
            _write_new(file, folder, row)
        return row.split, done

    with ExitStack() as opened, ThreadPoolExecutor(usable_cores()) as pool:
        lists: dict[str, TextIO] = {}
        for start in range(0, len(rows), AT_ONCE):
            for split, done in pool.map(laid_out, range(start, min(start + AT_ONCE, len(rows)))):
                splits[split] += 1
                for path, lines in done.lines.items():
                    if path not in lists:
                        (folder / path).parent.mkdir(parents=True, exist_ok=True)
                        lists[path] = opened.enter_context((folder / path).open("w", encoding="utf-8", newline=""))
                    lists[path].writelines(f"{line}\n" for line in lines)
                advance(1)
    for file in layout.finish(folder, splits):
        write_file(file, folder)
    sizes = [path.stat().st_size for path in _files(folder)]
    return len(sizes), sum(sizes)


def _write_new(file: RowFile, folder: Path, row: RowOfPack) -> None:
    path = folder / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("xb") as new:
            new.write(file.data)
    except FileExistsError:
        raise UsageError(
            f"{row.split}/{row.key}: another split has this key, and the layout has one folder for all; extract each "
            "split by itself: --split"
        ) from None


def _stored_row(pack: Pack, rows: Sequence[int], number: int, names: Sequence[str]) -> RowOfPack:
    shard_number, inside = pack.table.locate(rows[number])
    shard = pack.shard(shard_number)
    fields = {name: shard.row(pack.manifest.field(name), inside) for name in names if shard.has(name)}
    return RowOfPack(pack.split_of(shard_number).name, shard.key(inside), number, fields, pack.place(rows[number]))


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())
