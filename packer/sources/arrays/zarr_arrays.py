"""Zarr (versions 2 and 3) and N5 as a source, read by TensorStore: it alone reads all three, and unpickles nothing."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from packer.errors import BadPair, UsageError
from packer.recipe.row_ref import RowRef
from packer.recipe.source import UNKNOWN
from packer.sources.arrays.kept_rows import KeptRows
from packer.sources.arrays.npy_arrays import SUFFIX
from packer.sources.arrays.plain_array import npy_array
from packer.sources.arrays.stack_form import Stack
from packer.sources.arrays.stacked import StackedRows
from packer.sources.arrays.zarr_layout import FILES, ArrayLayout, layout_of
from packer.sources.file_states import is_young, state_of
from readers.contract.regular_files import NOT_REGULAR, open_raw

GROUPS = (".zgroup", ".zarray", "zarr.json")
MOST_DEPTH, MOST_SEEN = 3, 10_000
"""The deepest group whose arrays are listed, and the files and folders that are looked at for it."""


class ZarrArray:
    """An array whose chunks TensorStore reads."""

    def __init__(self, folder: Path, layout: ArrayLayout) -> None:
        spec = {"driver": layout.driver, "kvstore": {"driver": "file", "path": f"{folder}/"}}
        try:
            store = _tensorstore().open(spec, open=True, read=True).result()
        except (ValueError, OSError, RuntimeError) as error:
            raise ValueError("cannot be opened; its type or compression may be one that TensorStore lacks") from error
        self._store = store.T if layout.driver == "n5" else store
        self.shape: tuple[int, ...] = tuple(self._store.shape)
        self.dtype: np.dtype[Any] = self._store.dtype.numpy_dtype
        layout.check_chunks(self.dtype.itemsize)
        self._folder, self._layout = folder, layout

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        step = self._layout.chunks[0]
        for first in range(start - start % step, stop, step):
            for name in self._layout.names(first):
                _check_chunk(self._folder, name)
        try:
            return np.asarray(self._store[start:stop].read().result())
        except (ValueError, OSError, RuntimeError) as error:  # its words have paths of this machine
            raise BadPair("cannot be read: a chunk is damaged") from error


def _check_chunk(folder: Path, name: str) -> None:
    """Refuse a folder or a device in the place of a chunk: TensorStore gives the fill value for it."""
    path = folder / name
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise BadPair(f"cannot be read: its chunk {name} {NOT_REGULAR}")
    except FileNotFoundError:
        above = [parent for parent in (path, *path.parents) if parent.is_relative_to(folder)]
        if any(parent.is_symlink() and not parent.exists() for parent in above):
            raise BadPair(f"cannot be read: its chunk {name} is a link that leads nowhere") from None
    except OSError as error:
        raise BadPair(f"cannot be read: its chunk {name} cannot be opened ({error.strerror})") from error


def _tensorstore() -> Any:
    try:
        import tensorstore
    except ImportError as error:
        raise UsageError("Zarr and N5 are read by TensorStore: pip install 'segpack[zarr]'") from error
    return tensorstore


class ZarrArrays(StackedRows):
    """Arrays of a group, such as `images` or `train/labels`."""

    kind: ClassVar[str] = "zarr"

    @classmethod
    def fits(cls, path: Path, head: bytes) -> bool:
        if head or not path.is_dir():
            return False
        return any((path / name).is_file() for name in GROUPS) or _is_n5(path / "attributes.json")

    def files(self) -> Sequence[Path]:
        """Return the descriptions of the arrays. The chunks of a row are in its state."""
        folders = [self.path / name for name in self.names if name is not None]
        descriptions = [folder / name for folder in folders for name in FILES if (folder / name).is_file()]
        return descriptions + [file for file in folders if file.suffix == SUFFIX]

    def chunks(self) -> Sequence[int]:
        return [0 if name is None else _count_files(self.path / name) for name in self.names]

    def stack(self, name: str) -> Stack:
        if name.endswith(SUFFIX):  # TensorStore reads no texts, so keys may be next to the arrays
            return npy_array(self.path / name)
        folder = self.path / name
        layout = layout_of(folder)

        def version(row: int) -> object:
            return [state_of(f"{folder}/{chunk}") for chunk in layout.names(row)]

        return KeptRows(ZarrArray(folder, layout), layout.chunks[0], version)

    def states(self, refs: Sequence[RowRef]) -> NDArray[np.int64]:
        """Return 126 bits of the states of the chunks of each row, and of the description of its arrays."""
        states = np.empty((len(refs), 2), np.int64)
        description = self._files.of_rows(1)[0] if len(refs) else np.zeros(1)
        for number, ref in enumerate(refs):
            row = int(ref.parts[-1][ref.parts[-1].rindex("[") + 1 : -1])
            chunks = [state_of(chunk) for chunk in self._chunks(row)]
            digest = blake2b(repr((description.tolist(), chunks)).encode(), digest_size=16).digest()
            states[number] = np.frombuffer(digest, "<i8") & np.iinfo(np.int64).max
            if description[0] == UNKNOWN or any(map(is_young, chunks)):
                states[number] = UNKNOWN
        return states

    def _chunks(self, row: int) -> Iterator[str]:
        for folder, layout in self._layouts:
            yield from (f"{folder}/{name}" for name in layout.names(row))

    @cached_property
    def _layouts(self) -> list[tuple[Path, ArrayLayout]]:
        folders = [self.path / name for name in self.names[:2] if name is not None]
        return [(folder, layout_of(folder)) for folder in folders]

    def listing(self) -> Iterator[str]:
        """Yield the names of arrays. The folders of their chunks are passed over."""
        level, left = [self.path], MOST_SEEN
        for _ in range(MOST_DEPTH):
            groups = list[Path]()
            for folder in level:
                paths = _entries(folder, left)
                left -= len(paths)
                for path in paths:
                    try:
                        yield f"{path.relative_to(self.path)} {layout_of(path).shape}"
                    except (ValueError, OSError):
                        groups += [path] if path.is_dir() else []
            level = groups


def _count_files(path: Path) -> int:
    """Return the number of files below a folder, or of a file."""
    return sum(len(files) for _, _, files in os.walk(path)) if path.is_dir() else 1


def _entries(folder: Path, most: int) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return sorted(Path(entry.path) for entry in islice(entries, most))
    except OSError:
        return []


def _is_n5(path: Path) -> bool:
    if not path.is_file():
        return False
    with open_raw(path) as file:
        return b'"n5"' in file.read(4096)
