"""Data sets that Hugging Face's `datasets` saved to a folder: `save_to_disk` writes tables of Arrow, named by JSON."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from packer.decoding.raw_file import naming
from packer.errors import BadPair, InputError, Problem
from packer.sources.archives.tables import TableSource, columns_of, damaged
from readers.contract.json_entry import loads
from readers.contract.regular_files import open_raw

STATE, SPLITS = "state.json", "dataset_dict.json"
MOST_BYTES = 1 << 24
"""The most bytes of a JSON file."""
END = b"\xff\xff\xff\xff\0\0\0\0"
"""The end of a table. Without it rows may be missing."""
MOST_OPEN = 64


class HuggingFaceSource(TableSource):
    """The tables of a saved data set. They are mapped, so a row costs no more memory than its own bytes."""

    kind: ClassVar[str] = "hugging-face"
    suffix: ClassVar[re.Pattern[str]] = re.compile(r"\.arrow$")
    in_stores: ClassVar[bool] = False  # a map needs a file of this machine

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._open: OrderedDict[str, Any] = OrderedDict()

    @staticmethod
    def knows(head: bytes) -> bool:
        return False

    @classmethod
    def fits(cls, path: Path, head: bytes) -> bool:
        return (path / SPLITS).is_file() or (path / STATE).is_file()

    @classmethod
    def find(cls, path: Path) -> tuple[Path, list[str]]:
        """Return the tables of a saved data set. Raise one error with all that is wrong with its JSON files."""
        problems: list[Problem] = []
        is_divided = (path / SPLITS).is_file()
        splits = _named(path, SPLITS, "splits", problems) if is_divided else [""]
        states = [f"{split}/{STATE}".lstrip("/") for split in splits]
        tables = [
            state.removesuffix(STATE) + name
            for state in states
            for name in _named(path, state, "_data_files", problems)
        ]
        if problems:
            raise InputError(f"{path}: is not a whole data set of Hugging Face", problems)
        return path, tables

    def split_of(self, file: str) -> str:
        return file.rpartition("/")[0] or super().split_of(file)

    def schema(self, file: str) -> Any:
        return self._table(file).schema

    def count(self, file: str) -> int:
        return int(self._table(file).num_rows)

    def column(self, file: str, name: str) -> Iterator[Any]:
        for batch in self._table(file).select([name]).to_batches():
            self.files.check(file)
            batch.validate(full=True)
            yield from batch.column(0).to_pylist()

    def value(self, file: str, row: int, name: str) -> Any:
        return self._table(file).column(name)[row]

    def _table(self, file: str) -> Any:
        import pyarrow.ipc

        if file not in self._open:
            with self.open(file) as opened:  # so it is a regular file
                opened.seek(max(0, self.files.states[file][0] - len(END)))
                if opened.read() != END:
                    raise BadPair("has no mark of its end; it was cut off")
            table = pyarrow.ipc.open_stream(pyarrow.memory_map(f"{self.files.folder}/{file}")).read_all()
            table.select(list(columns_of(table.schema, self.names))).validate(full=True)
            self._open[file] = table
            if len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)
        return self._open[file]


def _named(folder: Path, path: str, key: str, problems: list[Problem]) -> list[str]:
    """Return the names that a JSON file has under a key: of folders or files below its own folder."""
    try:
        with naming(path), damaged(), open_raw(folder / path) as file:
            names = loads(file.read(MOST_BYTES))[key]
            listed = [item if isinstance(item, str) else str(item["filename"]) for item in names]
            wrong = [name for name in listed if not name.strip(".") or "/" in name or "\0" in name]
            if wrong:
                raise BadPair(f"names {wrong[0]!r}, which is not the name of a file next to it")
    except BadPair as bad:
        problems.append(Problem(str(bad).removeprefix(f"{path}: "), "", (path,)))
        return []
    return listed
