"""Read pairs from a CSV or TSV that names every image with its label, and perhaps its split and key."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from packer.errors import SettingsError
from packer.pairs.candidates import Candidate, Candidates, of_line
from packer.pairs.paths import MOST_BYTES, is_picture, open_list, stem
from packer.pairs.template import KEY, SPLIT, composed

IMAGE, LABEL = "image", "label"
_PLAIN = (IMAGE, LABEL, SPLIT)
_NAMED_LABEL = (LABEL, "mask")
MOST_HEADING = 1 << 20
"""The characters of the first line that show what is between cells."""


class PathFinder(Protocol):
    """Finds a file by its path."""

    def exact(self, path: str) -> str | None:
        """Return the file of exactly this path, or else the only one that differs in the form of its accents."""


class PairsCsv:
    """Finds the pair of each row. Paths start at the raw folder or at the folder of the table."""

    def __init__(
        self, table: Path, raw: Path, files: PathFinder, keep: bool = False, most_bytes: int = MOST_BYTES
    ) -> None:
        """With `keep`, the cell of the label may be empty."""
        self.candidates = Candidates()
        self._table, self._keep = table, keep
        self._raws = (os.path.abspath(raw), os.path.realpath(raw))  # noqa: PTH100 - the table may have paths of either form
        self._files, self._most_bytes = files, most_bytes

    def find(self) -> Candidates:
        self.candidates.add_listed(self.pairs())
        return self.candidates

    def pairs(self) -> Iterator[Candidate]:
        columns: list[str] = []
        for number, row in self._rows():
            cells = [cell.strip() for cell in row]
            where = f"{self._table.name}:{number}"
            if not columns:
                columns, is_heading = self._columns(cells)
                if is_heading:
                    continue
            if len(cells) != len(columns):
                cause = f"has {len(cells)} columns, not {len(columns)}"
                self.candidates.problems.append(of_line(where, cause, "columns"))
            else:
                if KEY in columns:
                    cells[columns.index(KEY)] = _key(row, columns.index(KEY))
                if pair := self._pair(where, dict(zip(columns, cells, strict=True))):
                    yield pair

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield every row that is not empty, with the number of its line."""
        try:
            with open_list(self._table, self._most_bytes) as text:
                first = text.readline(MOST_HEADING)
                text.seek(0)
                delimiter = next((sign for sign in "\t;" if sign in first), ",")
                reader = csv.reader(text, delimiter=delimiter, strict=True)
                for row in reader:
                    if any(map(str.strip, row)):
                        yield reader.line_num, row
        except (OSError, ValueError, csv.Error) as error:
            raise SettingsError(f"{self._table}: the CSV of pairs cannot be read ({error})") from error

    def _columns(self, cells: list[str]) -> tuple[list[str], bool]:
        """Return the names of the columns, and True if the first row is a heading."""
        names = [LABEL if cell.lower() in _NAMED_LABEL else cell.lower() for cell in cells]
        if IMAGE in names and LABEL in names and len(set(names)) == len(names):
            return [name if name in (*_PLAIN, KEY) else cell for name, cell in zip(names, cells, strict=True)], True
        if len(cells) in (2, 3) and is_picture(cells[0]) and is_picture(cells[1]):
            return list(_PLAIN[: len(cells)]), False
        raise SettingsError(
            f"{self._table}: expected the heading image,label or image,label,split or image,label,split,key, "
            f"or paths of an image and a label; found {','.join(cells)[:200]}"
        )

    def _pair(self, where: str, row: dict[str, str]) -> Candidate | None:
        image = self._file(where, row[IMAGE])
        label = "" if self._keep and not row[LABEL] else self._file(where, row[LABEL])
        if image is None or label is None:
            return None
        key = row.get(KEY) or stem(image)
        return Candidate(row.get(SPLIT, ""), composed(key), image, label, where, tuple(row.items()))

    def _file(self, where: str, text: str) -> str | None:
        """Return the file that a cell names."""
        folder = os.path.abspath(self._table.parent)  # noqa: PTH100
        paths = [os.path.relpath(f"{start}/{text}", raw) for raw in self._raws for start in (raw, folder)]
        if text.startswith("/"):
            paths = [os.path.relpath(text, raw) for raw in self._raws]
        inside = dict.fromkeys(path for path in paths if path.partition("/")[0] not in ("..", "."))
        if not text or not inside:
            self.candidates.problems.append(
                of_line(where, f"{text!r} is not a path below {self._raws[0]}", "not below")
            )
            return None
        file = next(filter(None, [self._files.exact(path) for path in inside]), None)
        if file is None:
            self.candidates.missing.append(of_line(where, f"there is no file {text}", "no file"))
        return file


def _key(row: list[str], number: int) -> str:
    """Return the key of a row, with the spaces around it, which are a part of it. In a row that has spaces around other
    cells, too, they only align the columns."""
    others = (cell for index, cell in enumerate(row) if index != number)
    return row[number].strip() if any(cell != cell.strip() for cell in others) else row[number]
