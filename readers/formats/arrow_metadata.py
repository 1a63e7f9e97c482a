"""The metadata of an Arrow file, checked in full: its columns, and the position of every buffer in the file.

pyarrow is not used: it acts on some numbers of a file, such as a null count, before it compares them with anything. The
names of the numbers below are from Arrow's `File.fbs`, `Message.fbs` and `Schema.fbs`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from readers.contract.json_entry import loads
from readers.formats.contents import Contents
from readers.formats.flatbuffer import Table

_MAGIC = b"ARROW1"
_END = struct.Struct("<i6s")  # length of the footer, magic
_BLOCK = struct.Struct("<qi4xq")  # position, length of the metadata, length of the body
_PREFIX = struct.Struct("<Ii")  # 0xFFFFFFFF, length of the flatbuffer
_NODE = struct.Struct("<qq")  # length, null count
_BUFFER = struct.Struct("<qq")  # position in the body, length
_CONTINUES = 0xFFFFFFFF
_RECORD_BATCH = 3
_TENSOR = "arrow.fixed_shape_tensor"
_MOST_NOTES = 16

_INT, _FLOAT, _UTF8, _FIXED_SIZE_LIST, _LARGE_BINARY, _LARGE_LIST = 2, 3, 5, 16, 19, 21
_PRECISION = {2: 0, 4: 1}


@dataclass(frozen=True)
class ArrowType:
    """A type: its number, the facts (field, layout, value) of its table, and its buffers after the validity.

    A buffer has (items more than values, bytes of an item). `repeat` is the number of a child's values for each value;
    0 means that the child says how many it has.
    """

    number: int
    facts: tuple[tuple[int, str, int], ...] = ()
    buffers: tuple[tuple[int, int], ...] = ()
    child: ArrowType | None = None
    repeat: int = 0

    def chain(self) -> Iterator[ArrowType]:
        """Yield this type and its children."""
        yield self
        if self.child is not None:
            yield from self.child.chain()


def numbers(dtype: str) -> ArrowType:
    """Return the type of plain numbers such as `|u1` or `<f4`."""
    kind, size = dtype[1], int(dtype[2:])
    if kind == "f":
        return ArrowType(_FLOAT, ((0, "<h", _PRECISION[size]),), ((0, size),))
    return ArrowType(_INT, ((0, "<i", 8 * size), (1, "<?", kind == "i")), ((0, size),))


def fixed_size_list(child: ArrowType, size: int) -> ArrowType:
    return ArrowType(_FIXED_SIZE_LIST, ((0, "<i", size),), (), child, size)


def large_list(child: ArrowType) -> ArrowType:
    return ArrowType(_LARGE_LIST, (), ((1, 8),), child)


TEXTS = ArrowType(_UTF8, (), ((1, 4), (0, 0)))
LARGE_BINARY = ArrowType(_LARGE_BINARY, (), ((1, 8), (0, 0)))


@dataclass(frozen=True)
class ArrowColumn:
    """A column that a file must have. A tensor's rows have a shape."""

    name: str
    kind: ArrowType
    shape: tuple[int, ...] | None = None


class Buffer(NamedTuple):
    """A buffer: its position in the file, its length, and the number of values of its type."""

    start: int
    length: int
    values: int


class Batch(NamedTuple):
    """A record batch: its rows, and the buffers of each column without the validity."""

    rows: int
    columns: dict[str, list[Buffer]]


def read_batches(data: Contents, columns: Sequence[ArrowColumn], most: int) -> list[Batch]:
    """Return the record batches of a file that has exactly these columns, at most `most` of them.

    All buffers are inside the file and hold the values of their type. Anything else raises ValueError.
    """
    length, magic = _END.unpack(data[-_END.size :]) if len(data) >= _END.size else (0, b"")
    body = len(data) - _END.size - length
    if data[: len(_MAGIC)] != _MAGIC or magic != _MAGIC or not 8 <= body < len(data) - _END.size:
        raise ValueError("it is not an Arrow file, or was cut short")
    footer = Table.root(data[body : body + length])
    _check_schema(footer.table(1), columns)
    if footer.count(2):
        raise ValueError("it has dictionaries")
    if not 0 < footer.count(3) <= most:
        raise ValueError(f"it has {footer.count(3)} record batches for {most} rows")
    batches, end = [], 8
    for start, metadata_length, body_length in footer.structs(3, _BLOCK):
        if start < end or metadata_length < _PREFIX.size or not 0 <= body_length <= body - start - metadata_length:
            raise ValueError("its record batches overlap or end beyond the file")
        end = start + metadata_length + body_length
        batches.append(_batch(data[start : start + metadata_length], body_length, start + metadata_length, columns))
    return batches


def _check_schema(schema: Table, columns: Sequence[ArrowColumn]) -> None:
    count = schema.count(1)
    if schema.whole(0, "<h") or count != len(columns):
        raise ValueError(f"it has {count} columns, expected {', '.join(column.name for column in columns)}")
    for field, column in zip(schema.tables(1), columns, strict=True):
        if field.text(0) != column.name:
            raise ValueError(f"it has a column {field.text(0)[:40]!r} in the place of {column.name!r}")
        _check_kind(column.name, field, column.kind)
        _check_tensor(field, column)


def _check_kind(name: str, field: Table, kind: ArrowType) -> None:
    if field.whole(2, "<B") != kind.number or field.has(4):
        raise ValueError(f"the column {name!r} has another type than its field")
    facts = field.table(3)
    if any(facts.whole(number, layout) != value for number, layout, value in kind.facts):
        raise ValueError(f"the column {name!r} has another type than its field")
    if field.count(5) != (kind.child is not None):
        raise ValueError(f"the column {name!r} has another type than its field")
    if kind.child is not None:
        _check_kind(name, field.tables(5)[0], kind.child)


def _check_tensor(field: Table, column: ArrowColumn) -> None:
    """Check the notes of a column: a tensor's name its shape, others must not name an extension type."""
    if field.count(6) > _MOST_NOTES:
        raise ValueError(f"the column {column.name!r} has {field.count(6)} notes")
    notes = {note.text(0): note.text(1) for note in field.tables(6)}
    extension = notes.get("ARROW:extension:name")
    if extension != (None if column.shape is None else _TENSOR):
        raise ValueError(f"the column {column.name!r} has the extension type {str(extension)[:40]!r}")
    if column.shape is not None:
        facts = loads(notes.get("ARROW:extension:metadata", ""))
        if not isinstance(facts, dict) or facts.get("shape") != list(column.shape) or facts.get("permutation"):
            raise ValueError(f"the column {column.name!r} is not a plain tensor of rows {column.shape}")


def _batch(metadata: memoryview, body_length: int, start: int, columns: Sequence[ArrowColumn]) -> Batch:
    """Check one record batch, whose body begins at `start` in the file."""
    continues, length = _PREFIX.unpack(metadata[: _PREFIX.size])
    if continues != _CONTINUES or not 0 < length <= len(metadata) - _PREFIX.size:
        raise ValueError("a record batch has no metadata")
    message = Table.root(metadata[_PREFIX.size : _PREFIX.size + length])
    if message.whole(1, "<B") != _RECORD_BATCH or message.whole(3, "<q") != body_length:
        raise ValueError("the footer and a record batch disagree")
    header = message.table(2)
    kinds = [kind for column in columns for kind in column.kind.chain()]
    if header.has(3) or header.count(4):
        raise ValueError("a record batch is compressed")
    if header.count(1) != len(kinds) or header.count(2) != sum(1 + len(kind.buffers) for kind in kinds):
        raise ValueError("a record batch has other buffers than its columns")
    nodes, buffers = iter(header.structs(1, _NODE)), iter(header.structs(2, _BUFFER))
    rows = header.whole(0, "<q")
    if rows < 1:
        raise ValueError(f"a record batch has {rows} rows")
    buffers_of: dict[str, list[Buffer]] = {column.name: [] for column in columns}
    for column in columns:
        values = rows
        for kind in column.kind.chain():
            values = _check_node(column.name, next(nodes), values)
            buffers_of[column.name] += _buffers(column.name, kind, values, buffers, start, body_length)
            values *= kind.repeat
    return Batch(rows, buffers_of)


def _check_node(name: str, node: tuple[int, ...], expected: int) -> int:
    """Return the number of values of a node: the expected one, or with 0 any that is not negative. None is null."""
    length, null_count = node
    if null_count:
        raise ValueError(f"the column {name!r} has a null count of {null_count}, expected 0")
    if length < 0 or (expected and length != expected):
        raise ValueError(f"the column {name!r} has {length} values, expected {expected}")
    return length


def _buffers(
    name: str, kind: ArrowType, values: int, buffers: Iterator[tuple[int, ...]], start: int, body_length: int
) -> list[Buffer]:
    """Return the buffers of a type. They are in the body and long enough, without validity."""
    if next(buffers)[1]:
        raise ValueError(f"the column {name!r} has a validity buffer, expected none")
    checked = []
    for more, size in kind.buffers:
        offset, length = next(buffers)
        if offset < 0 or length < 0 or offset + length > body_length or length < (values + more) * size:
            raise ValueError(f"a buffer of the column {name!r} is too short or ends beyond its record batch")
        checked.append(Buffer(start + offset, length, values))
    return checked
