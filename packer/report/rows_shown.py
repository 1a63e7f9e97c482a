"""The rows that a report shows as pictures: those at the ends of each scale, a fair draw, and findings."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from simplejpeg import encode_jpeg

from readers.contract.manifest import ALL
from readers.find_key import rows_with_key
from readers.pack import Pack
from readers.pictures.shrink import fitted
from readers.row_pictures import RowPictures

LONGEST = 240
QUALITY = 82


@dataclass(frozen=True)
class Shown:
    """A row as a picture with its label over it, its name, and the number that it is shown for."""

    name: str
    note: str
    picture: str
    """A JPEG as a data URL."""
    width: int
    height: int


class RowsShown:
    """Draws rows of a pack, each once."""

    def __init__(self, pictures: RowPictures) -> None:
        self._pictures = pictures
        self._drawn: dict[int, tuple[str, int, int]] = {}

    def row(self, row: int, note: str = "") -> Shown:
        """Return a row of the pack."""
        pack = self._pictures.pack
        split = pack.split_at(row).name
        key = self._pictures.key(row)
        if row not in self._drawn:
            height, width = fitted(self._pictures.size(row), (LONGEST, LONGEST))
            data = encode_jpeg(np.ascontiguousarray(self._pictures.at(row, (height, width))), QUALITY)
            self._drawn[row] = f"data:image/jpeg;base64,{b64encode(data).decode()}", width, height
        return Shown(key if split == ALL else f"{split}/{key}", note, *self._drawn[row])

    def named(self, names: Sequence[str]) -> list[Shown]:
        """Return the rows with names such as `train/street_01`, if they are in the pack."""
        pack = self._pictures.pack
        rows = [row for name in names if (row := _row_of(pack, name)) is not None]
        return [self.row(row) for row in rows]


def _row_of(pack: Pack, name: str) -> int | None:
    split, _, key = name.partition("/")
    if split not in {entry.name for entry in pack.manifest.splits}:
        return None
    rows = rows_with_key(pack, key, pack.rows_of(split))
    return rows[0] if rows else None
