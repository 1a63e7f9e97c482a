"""LMDB: one environment file; a value per row with the fields back to back, and a record that says where each lies."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import lmdb
import numpy as np

from packer.formats import Arrays, as_os_error
from readers.formats.lmdb import LAYOUT_KEY, SUFFIX, row_key

ALIGNMENT = 64
"""Fields begin at multiples of this within a value."""


def write(stem: Path, arrays: Arrays) -> list[Path]:
    """One file. Its map size is the sum of what will be put, so it never fills up and never has to be guessed."""
    path = stem.with_name(stem.name + SUFFIX)
    offsets, value_bytes = _offsets(arrays)
    layout = {
        name: {"offset": offsets[name], "dtype": array.dtype.str, "shape": list(array.shape[1:])}
        for name, array in arrays.items()
    }
    rows = len(next(iter(arrays.values())))
    value = np.zeros(value_bytes, np.uint8)
    # writemap: values go straight into the file's pages, so a shard is not in memory twice.
    options: dict[str, Any] = {"subdir": False, "lock": False, "sync": False, "writemap": True}
    with as_os_error(lmdb.Error), lmdb.open(str(path), map_size=map_size(rows, value_bytes), **options) as environment:
        _reserve(path)
        with environment.begin(write=True) as transaction:
            for row in range(rows):
                for name, array in arrays.items():
                    part = array[row : row + 1].reshape(-1).view(np.uint8)  # a slice: a single key loses its padding
                    value[offsets[name] : offsets[name] + len(part)] = part
                transaction.put(row_key(row), value.data, append=True)
            transaction.put(LAYOUT_KEY, json.dumps(layout).encode(), append=True)
        used = (environment.info()["last_pgno"] + 1) * environment.stat()["psize"]
    os.truncate(path, used)
    return [path]


def map_size(rows: int, value_bytes: int) -> int:
    """More bytes than the file can need: whole pages for every value, leaves and branches for every key, and some."""
    page = os.sysconf("SC_PAGE_SIZE")
    value_pages = -(-(value_bytes + 16) // page)
    return (rows * value_pages + rows // 8 + 64) * page


def _reserve(path: Path) -> None:
    """Have the disk promise the map's blocks: writing to a map on a full disk would kill the process."""
    if hasattr(os, "posix_fallocate"):
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)


def tool() -> str:
    return "lmdb " + ".".join(map(str, lmdb.version()))


def _offsets(arrays: Arrays) -> tuple[dict[str, int], int]:
    """Where each field begins in a value, and how large a value is."""
    offsets, end = {}, 0
    for name, array in arrays.items():
        offsets[name] = -(-end // ALIGNMENT) * ALIGNMENT
        end = offsets[name] + array[:1].nbytes
    return offsets, end
