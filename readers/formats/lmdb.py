"""LMDB: one environment file. Its B-tree is walked once to find each row; then the file is mapped like the others.

How LMDB is read: liblmdb is not used, for three reasons. It refuses to open one file twice in a process, as a train and
a val view of the same shard would. Its environments must not be used after a fork. Each `get` costs microseconds and a
transaction. A published file never changes, so its tree is simple: every value is a run of overflow pages, or is in a
leaf. FORMAT.md draws the pages. test_formats_foreign.py compares the walk with liblmdb for any number and size of rows.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from readers.contract.errors import DamagedError
from readers.contract.fields import KEY, LENGTH, SIZE, Field
from readers.contract.json_entry import Entry, JsonProblem, loads
from readers.formats.column import Column, ShardFacts, damage_at, load, plain_dtype
from readers.formats.contents import Contents, contents
from readers.formats.flat_columns import checked_lengths, flat_column
from readers.formats.row_sizes import SIZE_DTYPE, RowSizes
from readers.formats.shard import Shard

SUFFIX = ".lmdb"
LAYOUT_KEY = b"layout"
ALIGNMENT = 64
"""Within a value, fields begin at multiples of this."""
MOST_LAYOUT_BYTES = 1 << 16
LENGTH_DTYPE = "<u8"

_META = struct.Struct("<IIQQ")  # magic, version, address, map size; after the page header
_TREE = struct.Struct("<IHHQQQQQ")  # page size (of the first tree), flags, depth, 3 page counts, entries, root
_PAGE = struct.Struct("<QHHHH")  # page number, padding, flags, lower, upper
_NODE = struct.Struct("<HHHH")  # low and high half of the size or page number, flags, key size
Offsets = NDArray[np.int64]
Node = tuple[bytes, int, int]
"""An entry: its key, the offset of its value, and the value's size."""
ReadBytes = Callable[[int, int], memoryview]
"""Returns a number of bytes of a file from an offset on, or fewer at its end."""
MOST_PAGE = 65536

_MAGIC, _DATA_VERSION = 0xBEEFC0DE, 1
_BRANCH, _LEAF, _BIG = 0x01, 0x02, 0x01


def paths(stem: Path, facts: ShardFacts) -> list[Path]:
    """Return the files of the shard."""
    return [stem.with_name(stem.name + SUFFIX)]


def open_shard(stem: Path, facts: ShardFacts) -> Shard:
    """Open the shard whose file begins with `stem`."""
    (path,) = paths(stem, facts)
    with (
        damage_at(path, LookupError, ValueError, RecursionError, OverflowError, TypeError),
        contents(path) as data,
    ):
        try:
            *rows, (start, size) = _values(path, data, facts.rows)
        except struct.error as error:
            raise DamagedError(f"{path}: its tree ends beyond its {len(data)} bytes; was it cut short?") from error
        if size > MOST_LAYOUT_BYTES:
            raise DamagedError(f"{path}: a layout of {size} bytes is not possible")
        layout = _layout(path, data[start : start + size].tobytes())
        starts, lengths = (np.array([row[part] for row in rows], np.int64) for part in (0, 1))
        if (lengths > len(data) - starts).any():
            raise DamagedError(f"{path}: has values that end beyond it; was it cut short?")
        if any(field.flat for field in facts.fields):
            return Shard(path, facts, *_flat_columns(path, facts, layout, starts, lengths))
        return Shard(path, facts, _columns(path, facts, layout, starts, lengths), RowSizes.fixed(facts))


def _values(path: Path, data: Contents, rows: int) -> list[tuple[int, int]]:
    """Return offset and size of the value of each row and, last, of the layout. A wrong key ends the walk: a tree may
    have entries without end."""
    values: list[tuple[int, int]] = []
    for key, start, size in nodes(path, len(data), lambda start, size: data[start : start + size]):
        expected = row_key(len(values)) if len(values) < rows else LAYOUT_KEY
        if key != expected or len(values) > rows:
            raise DamagedError(f"{path}: its entry {len(values)} is {key[:40]!r}, expected {rows} rows and a layout")
        values.append((start, size))
    if len(values) != rows + 1:
        raise DamagedError(f"{path}: expected {rows} numbered rows and a layout, found {len(values)} entries")
    return values


@dataclass(frozen=True)
class ValuePart:
    """The layout of one part of every value; `offset` is None where it differs from row to row."""

    offset: int | None
    dtype: np.dtype[Any]
    shape: tuple[int | None, ...]

    def to_json(self) -> dict[str, Any]:
        return {"offset": self.offset, "dtype": self.dtype.str, "shape": list(self.shape)}


def begins_and_end(lengths: Sequence[Offsets]) -> list[Offsets]:
    """Return where in its value each part begins, given its length in every row; last, where the values end."""
    begins = []
    end = np.zeros_like(lengths[0])
    for length in lengths:
        begins.append(-(-end // ALIGNMENT) * ALIGNMENT)
        end = begins[-1] + length
    return [*begins, end]


def row_key(row: int) -> bytes:
    """Return the key of a row in the environment: of fixed width, so that keys sort by number."""
    return b"%08d" % row


def _layout(path: Path, text: bytes) -> dict[str, ValuePart]:
    """Read the layout record: the parts of each value, and their offsets."""
    problems: list[JsonProblem] = []
    parts = {}
    document = loads(text)
    for name in document:
        entry = Entry(document, "layout", problems).entry(name)
        offset, dtype = entry.maybe("offset", entry.whole), entry.text("dtype")
        parts[name] = ValuePart(offset, _dtype(entry, dtype), entry.shape("shape"))
    if problems:
        raise DamagedError(f"{path}: " + "; ".join(str(problem) for problem in problems))
    return parts


def _dtype(entry: Entry, text: str) -> np.dtype[Any]:
    try:
        return plain_dtype(text)
    except (ValueError, TypeError) as error:
        entry.problem("dtype", str(error))
        return np.dtype("V1")


def _columns(
    path: Path, facts: ShardFacts, layout: Mapping[str, ValuePart], starts: Offsets, lengths: Offsets
) -> dict[str, Column]:
    """Return the columns of rows of one size: each at one offset in every value."""
    columns = {}
    for name, part in layout.items():
        if part.offset is None or None in part.shape:
            raise DamagedError(f"{path}: layout.{name}: expected one offset and shape for every row")
        columns[name] = Column(path, part.dtype, part.shape, starts + part.offset, 1)
        if (lengths - part.offset < columns[name].row_bytes).any():
            raise DamagedError(f"{path}: layout.{name}: reaches past the end of a value")
    names = (*(field.name for field in facts.fields), KEY)
    if tuple(columns) != names:
        raise DamagedError(f"{path}: its layout does not have {', '.join(names)}")
    begins = begins_and_end([np.array([columns[name].row_bytes]) for name in names])
    if [layout[name].offset for name in names] != [int(begin[0]) for begin in begins[:-1]]:
        raise DamagedError(f"{path}: layout: {', '.join(names)} do not follow each other")
    return columns


def _flat_columns(
    path: Path, facts: ShardFacts, layout: Mapping[str, ValuePart], starts: Offsets, lengths: Offsets
) -> tuple[dict[str, Column], RowSizes]:
    """Return the columns and sizes of rows of any lengths. Parts follow each other; a value ends with its last part."""
    key = layout[KEY].dtype
    expected = flat_layout(facts.fields, key)
    if list(layout.items()) != list(expected.items()):
        raise DamagedError(f"{path}: its layout is not the one of rows of different lengths")
    size = Column(path, expected[SIZE].dtype, expected[SIZE].shape, starts, 1)
    length = Column(path, expected[LENGTH].dtype, expected[LENGTH].shape, starts + size.row_bytes, 1)
    if (lengths < length.row_bytes + size.row_bytes).any():
        raise DamagedError(f"{path}: has values that end before their first field")
    sizes = RowSizes.stored(size, facts)
    stored = load(length, facts.rows, LENGTH_DTYPE, (len(facts.fields),))
    field_bytes = [checked_lengths(path, field, stored[:, number], sizes) for number, field in enumerate(facts.fields)]
    head, tail = np.full(facts.rows, size.row_bytes + length.row_bytes), np.full(facts.rows, key.itemsize)
    _, *begins, key_begin, end = begins_and_end([head, *field_bytes, tail])
    if not np.array_equal(end, lengths):
        raise DamagedError(f"{path}: its values do not have the lengths that follow from the sizes of the rows")
    columns = {
        field.name: flat_column(path, field, starts + begin, length)
        for field, begin, length in zip(facts.fields, begins, field_bytes, strict=True)
        if field in facts.read
    }
    return {**columns, KEY: Column(path, key, (), starts + key_begin, 1)}, sizes


def flat_layout(fields: Sequence[Field], key: np.dtype[Any]) -> dict[str, ValuePart]:
    """Return the only layout of values in which a field is flat: the offsets of all fields differ from row to row."""
    sides = len(fields[0].sides)
    size, length = (
        ValuePart(0, np.dtype(SIZE_DTYPE), (sides,)),
        ValuePart(4 * sides, np.dtype(LENGTH_DTYPE), (len(fields),)),
    )
    parts = {field.name: ValuePart(None, np.dtype(field.stored_dtype), field.stored_shape) for field in fields}
    return {SIZE: size, LENGTH: length, **parts, KEY: ValuePart(None, key, ())}


def nodes(path: Path, size: int, read: ReadBytes) -> Iterator[Node]:
    """Yield every entry in key order, from a file of this number of bytes."""
    header = _PAGE.size
    first = read(0, MOST_PAGE)
    magic, version, _, _ = _META.unpack_from(first, header)
    if (magic, version) != (_MAGIC, _DATA_VERSION):
        raise DamagedError(f"{path}: is not an LMDB file of data version {_DATA_VERSION}")
    trees = header + _META.size
    page_size = _TREE.unpack_from(first, trees)[0]
    if page_size not in (4096, 8192, 16384, 32768, MOST_PAGE):
        raise DamagedError(f"{path}: a page size of {page_size} is not possible")
    metas = [meta for meta in (first, read(page_size, page_size)) if _META.unpack_from(meta, header)[0] == _MAGIC]
    newest = max(metas, key=lambda meta: _transaction(meta, trees))
    _, flags, depth, _, _, _, _, root = _TREE.unpack_from(newest, trees + _TREE.size)
    if flags:
        raise DamagedError(
            f"{path}: its tree has the flags {flags:#x}, expected none (such as several values of a key)"
        )
    if not 1 <= depth <= 32:
        raise DamagedError(f"{path}: a tree {depth} levels deep is not possible")
    yield from _walk(_Tree(path, page_size, read, iter(range(size // page_size))), root, depth)


def _transaction(meta: memoryview, trees: int) -> int:
    """Return the number of the transaction that wrote a meta page; it follows two trees and the last page's number."""
    number: int = struct.unpack_from("<Q", meta, trees + 2 * _TREE.size + 8)[0]
    return number


class _Tree(NamedTuple):
    """A tree of pages. `left` has one item for each page of the file: a circular tree needs more."""

    path: Path
    page_size: int
    read: ReadBytes
    left: Iterator[int]


def _walk(tree: _Tree, page: int, depth: int) -> Iterator[Node]:
    """Yield the entries below a page."""
    if next(tree.left, None) is None:
        raise DamagedError(f"{tree.path}: its tree has more pages than the file")
    start = page * tree.page_size
    data = tree.read(start, tree.page_size)
    _, _, flags, lower, _ = _PAGE.unpack_from(data)
    if flags != (_LEAF if depth == 1 else _BRANCH) or lower > tree.page_size:
        raise DamagedError(f"{tree.path}: page {page} is not a {'leaf' if depth == 1 else 'branch'} of the tree")
    pointers = struct.unpack_from(f"<{(lower - _PAGE.size) // 2}H", data, _PAGE.size)
    if not pointers:  # a tree that names an empty page again and again would be walked for ever
        raise DamagedError(f"{tree.path}: page {page} is empty")
    for node in pointers:
        low, high, node_flags, key_size = _NODE.unpack_from(data, node)
        after_key = node + _NODE.size + key_size
        if after_key > len(data):
            raise DamagedError(f"{tree.path}: page {page} has a key that ends beyond it")
        if depth > 1:
            yield from _walk(tree, low | high << 16 | node_flags << 32, depth - 1)
        elif node_flags not in (0, _BIG):
            raise DamagedError(f"{tree.path}: page {page} has an entry with the flags {node_flags:#x}")
        else:
            value = start + after_key
            if node_flags:
                value = struct.unpack_from("<Q", data, after_key)[0] * tree.page_size + _PAGE.size
            yield data[node + _NODE.size : after_key].tobytes(), value, low | high << 16
