"""LMDB: one environment file; its B-tree is walked once to learn where each row lies; then it is mapped like others.

liblmdb itself would hand out a pointer per row, but refuses to open a file twice in one process (a train and a val
view of one pack do that) and must not cross a fork. The tree of a file that never changes again is simple: every row
is an overflow run, or lies in a leaf. FORMAT.md draws the pages.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readers.contract.checked import Entry, Problem
from readers.contract.errors import DamagedError
from readers.contract.fields import IMAGE, KEY, LABEL
from readers.formats.shard import Column, Shard, ShardFacts, damage_at, map_file

SUFFIX = ".lmdb"
LAYOUT_KEY = b"layout"

_META = struct.Struct("<IIQQ")  # magic, version, address, map size; after the page header
_TREE = struct.Struct("<IHHQQQQQ")  # page size (of the first tree), flags, depth, 3 page counts, entries, root
_PAGE = struct.Struct("<QHHHH")  # page number, padding, flags, lower, upper
_NODE = struct.Struct("<HHHH")  # low and high half of the size or page number, flags, key size
Node = tuple[bytes, int, int]
"""An entry: its key, where its value begins, and the value's size."""

_MAGIC, _DATA_VERSION = 0xBEEFC0DE, 1
_BRANCH, _LEAF, _BIG = 0x01, 0x02, 0x01


def open_shard(stem: Path, facts: ShardFacts) -> Shard:
    """The shard whose file begins with `stem`."""
    path = stem.with_name(stem.name + SUFFIX)
    with damage_at(path, struct.error, LookupError, ValueError, RecursionError, OverflowError, TypeError):
        data = map_file(path).data
        nodes = list(islice(_nodes(path, data), facts.rows + 2))
        if len(nodes) != facts.rows + 1 or [key for key, _, _ in nodes] != [
            *(row_key(row) for row in range(facts.rows)),
            LAYOUT_KEY,
        ]:
            raise DamagedError(f"{path}: expected {facts.rows} numbered rows and a layout, found {len(nodes)} entries")
        *rows, (_, start, size) = nodes
        columns = _columns(path, data[start : start + size].tobytes(), rows)
        return Shard(path, facts, columns)


def row_key(row: int) -> bytes:
    """The key of a row in the environment: fixed width, so that they sort by number."""
    return b"%08d" % row


def _columns(path: Path, layout: bytes, rows: list[Node]) -> dict[str, Column]:
    """The columns as the layout record tells them: at which offset of each value, of which dtype and shape."""
    problems: list[Problem] = []
    columns = {}
    document = json.loads(layout)
    starts: NDArray[np.int64] = np.array([start for _, start, _ in rows], np.int64)
    for name in document:
        entry = Entry(document, "layout", problems).entry(name)
        offset, dtype, shape = entry.whole("offset"), entry.text("dtype"), entry.wholes("shape")
        columns[name] = Column(path, np.dtype(dtype), shape, starts + offset, 1)
        if any(offset + columns[name].row_bytes > size for _, _, size in rows):
            problems.append(Problem(f"layout.{name}", "reaches past the end of a value"))
    if problems or set(columns) != {IMAGE, LABEL, KEY}:
        raise DamagedError(
            f"{path}: " + ("; ".join(str(problem) for problem in problems) or "has not image, label and key")
        )
    return columns


def _nodes(path: Path, data: memoryview) -> Iterator[Node]:
    """Every entry in key order."""
    header = _PAGE.size
    magic, version, _, _ = _META.unpack_from(data, header)
    if (magic, version) != (_MAGIC, _DATA_VERSION):
        raise DamagedError(f"{path}: is not an LMDB file of data version {_DATA_VERSION}")
    trees = header + _META.size
    page_size = _TREE.unpack_from(data, trees)[0]
    if page_size not in (4096, 8192, 16384, 32768, 65536):
        raise DamagedError(f"{path}: a page size of {page_size} is not possible")
    metas = [meta for meta in (0, page_size) if _META.unpack_from(data, meta + header)[0] == _MAGIC]
    newest = max(metas, key=lambda meta: _transaction(data, meta + trees))
    *_, depth, _, _, _, _, root = _TREE.unpack_from(data, newest + trees + _TREE.size)
    if not 1 <= depth <= 32:
        raise DamagedError(f"{path}: a tree {depth} levels deep is not possible")
    yield from _walk(path, data, page_size, root, depth)


def _transaction(data: memoryview, trees: int) -> int:
    """The number of the transaction that wrote a meta page: it follows the two trees and the last page's number."""
    number: int = struct.unpack_from("<Q", data, trees + 2 * _TREE.size + 8)[0]
    return number


def _walk(path: Path, data: memoryview, page_size: int, page: int, depth: int) -> Iterator[tuple[bytes, int, int]]:
    start = page * page_size
    _, _, flags, lower, _ = _PAGE.unpack_from(data, start)
    if flags & (_BRANCH | _LEAF) != (_LEAF if depth == 1 else _BRANCH):
        raise DamagedError(f"{path}: page {page} is no {'leaf' if depth == 1 else 'branch'} of the tree")
    pointers = struct.unpack_from(f"<{(lower - _PAGE.size) // 2}H", data, start + _PAGE.size)
    if not pointers:  # an empty page that its parents name over and over would be walked for ever
        raise DamagedError(f"{path}: page {page} is empty")
    for pointer in pointers:
        node = start + pointer
        low, high, node_flags, key_size = _NODE.unpack_from(data, node)
        after_key = node + _NODE.size + key_size
        if depth > 1:
            yield from _walk(path, data, page_size, low | high << 16 | node_flags << 32, depth - 1)
        elif node_flags & _BIG:
            (first,) = struct.unpack_from("<Q", data, after_key)
            yield _key(data, node, key_size), first * page_size + _PAGE.size, low | high << 16
        else:
            yield _key(data, node, key_size), after_key, low | high << 16


def _key(data: memoryview, node: int, size: int) -> bytes:
    return data[node + _NODE.size : node + _NODE.size + size].tobytes()
