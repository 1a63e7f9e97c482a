"""The files of cells of shards that are there: which are missing, and which are wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from packer.shards.cell_files import content_of, row_cells
from readers.contract.cells import CellFacts, ClassCells, cells_path, check_digest, is_counted
from readers.contract.count_cells import RowCells, merged
from readers.contract.errors import DamagedError
from readers.contract.fields import Field
from readers.contract.files import plain_file
from readers.contract.receipt import Receipt
from readers.contract.statistics import ClassStatistics
from readers.formats.large_rows import is_large, strips
from readers.formats.shard import Shard
from readers.pack import Pack


def without_cells(pack: Pack) -> list[int]:
    """Return the shards of a pack that lack a file."""
    return [
        number
        for number in range(len(pack.table))
        if not all(
            cells_path(pack.root, pack.stem(number).name, field.name).is_file()
            for field in counted_fields(pack, number)
        )
    ]


def damaged_cells(pack: Pack) -> list[int]:
    """Return the shards of a pack that have all files, and a damaged one among them."""
    return [number for number in range(len(pack.table)) if _is_damaged(pack, number)]


def _is_damaged(pack: Pack, number: int) -> bool:
    for field in counted_fields(pack, number):
        path = cells_path(pack.root, pack.stem(number).name, field.name)
        try:
            check_digest(plain_file(pack.root, path).read_bytes(), path)
        except FileNotFoundError:
            return False
        except (DamagedError, OSError):
            return True
    return False


def counted_fields(pack: Pack, number: int) -> list[Field]:
    """Return the fields of a shard that have files of cells; none if it has no rows."""
    return [field for field in pack.fields_of(number) if is_counted(field)] if pack.table.rows(number) else []


def stored_cells(shard: Shard, field: Field) -> Iterator[RowCells]:
    """Count the cells of each row of a shard from its pixels."""
    for row in range(shard.facts.rows):
        if is_large(shard, field, row):
            yield merged(row_cells(field, lines, strip.start) for strip, lines in strips(shard, field, row))
        else:
            yield row_cells(field, shard.pixels(field, row))


def cell_problems(pack: Pack, number: int, receipt: Receipt, deep: bool) -> Iterator[tuple[Path, str]]:
    """Yield each file of cells of a shard that is wrong, and a line that names it. A missing file is not wrong."""
    for field in counted_fields(pack, number):
        path = cells_path(pack.root, pack.stem(number).name, field.name)
        try:
            content = plain_file(pack.root, path).read_bytes()
            _check(content, path, field, receipt)
            if deep and content != content_of(field, list(stored_cells(pack.shard(number), field))):
                raise DamagedError(f"{path}: is not what its rows count; packer index --again writes it again")
        except FileNotFoundError:
            continue
        except (DamagedError, OSError) as error:
            yield path, str(error)


def _check(content: bytes, path: Path, field: Field, receipt: Receipt) -> None:
    """Compare a file with its own checksum, and its sums with the statistics in the receipt."""
    check_digest(content, path)
    facts = CellFacts.of(field, receipt.rows)
    cells = ClassCells.of_bytes(np.frombuffer(content, np.uint8), path, facts)
    cells.check_cells(path)
    pixels = [0] * facts.classes
    for number, count in zip(cells.classes.tolist(), cells.pixels.tolist(), strict=True):
        pixels[number] += count
    rows = np.bincount(cells.classes, minlength=facts.classes).tolist()
    statistics = receipt.statistics[field.name]
    assert isinstance(statistics, ClassStatistics), "the receipt fits its fields"
    if (tuple(pixels), tuple(rows)) != (tuple(statistics.classes), tuple(statistics.rows)):
        raise DamagedError(f"{path}: its sums are not those in the receipt; packer index --again writes it again")
