"""The files in OUT/cells: for each row and class of a label the cells that have it. Workers write them with a shard.

A reader draws windows that hold a class by them. They follow from the pixels, so older packs get them later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from packer.publish.atomic import target_errors
from readers.contract.atomic import in_folder, put_in_place
from readers.contract.cells import CellFacts, ClassCells, cells_path
from readers.contract.count_cells import RowCells, count_cells
from readers.contract.fields import Field
from readers.contract.kinds import ONEHOT
from readers.contract.onehot import collapse


def row_cells(field: Field, pixels: NDArray[Any], first: int = 0) -> RowCells:
    """Count the cells of a stored row of a field, or of a part of one whose first side begins at `first`."""
    assert field.classes is not None, "the kind has a table"
    index = collapse(pixels, field.classes.index_dtype) if field.form == ONEHOT else pixels
    return count_cells(index, len(field.classes), first)


def write_cells(out: Path, stem: str, cells: Mapping[Field, Sequence[RowCells]]) -> None:
    """Write the file of each field of a shard that has rows. One that has its bytes is left alone.

    Call `sync_shards` afterwards, once for many shards.
    """
    for field, rows in cells.items():
        path, content = cells_path(out, stem, field.name), content_of(field, rows)
        if not rows or _has(path, content):
            continue
        with target_errors(path):
            in_folder(path.parent, partial(put_in_place, path, content))


def _has(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except OSError:
        return False


def content_of(field: Field, rows: Sequence[RowCells]) -> bytes:
    """Return the content of the file of a field of a shard."""
    return ClassCells.of_rows(rows).to_bytes(CellFacts.of(field, len(rows)))
