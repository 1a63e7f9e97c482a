"""Tables of Arrow with pictures in their columns, as Hugging Face writes them: in Parquet files, or in a folder."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import starmap
from threading import RLock
from typing import Any, ClassVar

import numpy as np

from packer.decoding.arrays import class_numbers
from packer.errors import BadPair, PackError, first_of
from packer.recipe.row_ref import RowRef
from packer.recipe.source import FieldData
from packer.sources.archives.archive import ArchiveSource
from packer.sources.archives.field_names import MOST_LISTED, image_and_label
from packer.sources.archives.position import Position
from packer.sources.container import Names
from packer.sources.portable_functions import words_of
from readers.contract.json_entry import loads
from readers.contract.regular_files import NotRegularError

BYTES = ("binary", "large_binary")
WHOLE = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
NUMBERS = (*WHOLE, "halffloat", "float", "double", "bool")
FEW_ROWS = 1 << 20
"""More rows have at least a byte each. A header can claim any number, and the keys of all are kept in memory."""
KEYS = (*WHOLE, "string", "large_string")
"""Types of Arrow, as it writes them."""


class TableSource(ArchiveSource):
    """Rows of tables. A picture is the bytes of its file, alone or in a struct {bytes, path}; or lists of numbers."""

    threads: ClassVar[int] = 1
    has_keys: ClassVar[bool] = True

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.lock = RLock()
        """Held while a file is read: threads share the tables."""

    @abstractmethod
    def schema(self, file: str) -> Any: ...

    @abstractmethod
    def count(self, file: str) -> int:
        """Return the number of rows of a file."""

    @abstractmethod
    def column(self, file: str, name: str) -> Iterator[Any]:
        """Yield every value of a column."""

    @abstractmethod
    def value(self, file: str, row: int, name: str) -> Any:
        """Return the value of a row as Arrow has it."""

    def samples(self, file: str) -> Iterator[RowRef]:
        with damaged():
            schema, count, row = self.schema(file), self.count(file), -1
            size = self.files.states[file][0]
            if count > max(size, FEW_ROWS):
                raise BadPair(f"has {size} bytes, and claims {count} rows")
            image, label = columns_of(schema, self.names)
            for row, key in enumerate(self._keys(file, schema, count)):
                yield from self.row(file, key, Position(file, row, 0, image), Position(file, row, 0, label))
            if row + 1 != count:
                raise BadPair(f"has {row + 1} values of --key {self.names.key} in {count} rows")

    def read(self, position: Position) -> FieldData:
        with self.lock, damaged():
            self.files.check(position.file)  # Arrow may have mapped it: to read what was cut off would end the process
            try:
                value = self.value(position.file, position.start, position.name)
                return _data(value, position.name == self._label(position.file))
            finally:
                self.files.check(position.file)  # what was read of a changed file proves nothing, nor does an error

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the label's numbers, if the features of Hugging Face have them."""
        file = next(iter(self.files.states))
        try:
            with damaged():
                metadata = loads((self.schema(file).metadata or {}).get(b"huggingface", b"{}"))
                names = next(_names(metadata["info"]["features"][self._label(file)]), ())
        except BadPair:
            return ()
        return names if len(set(names)) == len(names) else ()

    def _label(self, file: str) -> str:
        return columns_of(self.schema(file), self.names)[1]

    def _keys(self, file: str, schema: Any, count: int) -> Iterator[str]:
        """Yield the key of each row: the text in the column, or the file's name and the row's number."""
        stem = file.rpartition(".")[0] or file
        if self.names.key is None:
            return (f"{stem}/{row:08}" for row in range(count))
        kind = schema.field(self.names.key).type if self.names.key in schema.names else None
        if kind is None or str(_plain(kind)) not in KEYS:
            listed = ", ".join(first_of(schema.names, MOST_LISTED))
            raise BadPair(f"has no column --key {self.names.key} of texts or whole numbers; it has {listed}")
        return starmap(self._key, enumerate(self.column(file, self.names.key)))

    def _key(self, row: int, key: object) -> str:
        if key is None:
            raise BadPair(f"has no --key {self.names.key} in row {row}")
        return str(key)


@contextmanager
def damaged() -> Iterator[None]:
    """Turn what pyarrow raises at a damaged file into the reason why a row or a file is bad."""
    try:
        yield
    except (BadPair, NotRegularError, PackError):
        raise
    except Exception as error:  # a damaged length may be too much for the memory, too
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise BadPair(f"cannot be read: {words_of(error)}") from error


def columns_of(schema: Any, names: Names) -> tuple[str, str]:
    """Return the columns of image and label: those that are named, or those whose names and types say it."""
    pictures = [column.name for column in schema if _is_picture(column.type)]
    return image_and_label(names, pictures, schema.names, "column")


def _is_picture(kind: Any) -> bool:
    """Return whether values of a type may be pictures: bytes, a struct with bytes, or lists of lists of numbers."""
    kind = _plain(kind)
    if str(kind).startswith("struct<"):
        return kind.get_field_index("bytes") >= 0 and str(kind.field("bytes").type) in BYTES
    return str(kind) in BYTES or (_is_list(kind) and _is_list(kind.value_type) and _is_numbers(kind.value_type))


def _plain(kind: Any) -> Any:
    """Return the type of the values. A dictionary stores equal values once."""
    return kind.value_type if str(kind).startswith("dictionary<") else kind


def _is_numbers(kind: Any) -> bool:
    return _is_numbers(kind.value_type) if _is_list(kind) else str(kind) in NUMBERS


def _is_list(kind: Any) -> bool:
    return str(kind).startswith(("list<", "large_list<", "fixed_size_list<"))


def _data(value: Any, is_label: bool) -> FieldData:
    """Return the bytes of a picture file, or the numbers of lists."""
    if value.is_valid and str(value.type).startswith("dictionary<"):
        value = value.value
    if str(value.type).startswith("struct<") and value.is_valid:
        has_path = value.type.get_field_index("path") >= 0 and value["path"].is_valid
        value = value["bytes"]
        if not value.is_valid and has_path:
            raise BadPair("has the path of a picture and not its bytes; save the data set with its pictures embedded")
    if not value.is_valid:
        raise BadPair("is empty")
    if str(value.type) in BYTES:
        return bytes(value.as_buffer())
    numbers, shape = value.values, [len(value.values)]
    while _is_list(numbers.type):
        lengths = set(numbers.value_lengths().to_pylist())
        if len(lengths) != 1 or None in lengths:
            raise BadPair("has lists of different lengths")
        shape += lengths
        numbers = numbers.flatten()
    if numbers.null_count:
        raise BadPair("has lists with empty places")
    pixels = np.ascontiguousarray(numbers.to_numpy(zero_copy_only=False)).reshape(shape)
    return class_numbers(pixels) if is_label else pixels


def _names(feature: Any) -> Iterator[tuple[str, ...]]:
    """Yield the names of the classes in a feature, at any depth."""
    if isinstance(feature, Mapping):
        names = feature.get("names")
        if feature.get("_type") == "ClassLabel" and isinstance(names, list) and all(isinstance(n, str) for n in names):
            yield tuple(names)
        for part in feature.values():
            yield from _names(part)
    elif isinstance(feature, list):
        for part in feature:
            yield from _names(part)
