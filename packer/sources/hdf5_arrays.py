"""HDF5 files as a source. Nothing outside of the file is read: no external links, no external or virtual data sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from packer.errors import BadPair
from packer.sources.functions import plain
from packer.sources.kept_rows import KeptRows
from packer.sources.plain_array import PlainArray
from packer.sources.stack_form import Stack, shape_text
from packer.sources.stacked import StackedRows

MAGIC = b"\x89HDF\r\n\x1a\n"
MOST_LISTED = 20


class DataSet:
    """A data set that libhdf5 must read, because it is compressed, in chunks, or of texts."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self.shape: tuple[int, ...] = dataset.shape
        self.dtype: np.dtype[Any] = dataset.dtype

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        try:
            return np.asarray(self._dataset[start:stop])
        except (OSError, RuntimeError, ValueError) as error:
            raise BadPair(f"cannot be read ({plain(str(error))})") from error


class Hdf5Arrays(StackedRows):
    """Data sets of an HDF5 file, such as `images` or `train/labels`."""

    kind: ClassVar[str] = "hdf5"

    @classmethod
    def fits(cls, path: Path, head: bytes) -> bool:
        return head.startswith(MAGIC)

    def files(self) -> Sequence[Path]:
        return [self.path]

    def stack(self, name: str) -> Stack:
        found = self._file
        for part in name.strip("/").split("/"):
            if not isinstance(found, self._h5py.Group) or part not in found:
                raise ValueError("there is no such data set")
            link = found.get(part, getlink=True)
            if not isinstance(link, self._h5py.HardLink):
                raise ValueError(f"is a link to {plain(link.path)}; name the data set itself")
            found = found[part]
        if not isinstance(found, self._h5py.Dataset):
            raise ValueError("is a group; name one of its data sets")
        return self._checked(found)

    def _checked(self, dataset: Any) -> Stack:
        properties = dataset.id.get_create_plist()
        if dataset.is_virtual or properties.get_external_count():
            raise ValueError("lies in other files, which are not opened; copy it into this one")
        if dataset.dtype.names or (dataset.dtype.hasobject and not self._h5py.check_string_dtype(dataset.dtype)):
            raise ValueError(f"holds {dataset.dtype}; expected plain numbers or texts")
        for number in range(properties.get_nfilters()):
            code, _, _, name = properties.get_filter(number)
            if not self._h5py.h5z.filter_avail(code):
                raise ValueError(f"is compressed by a filter that h5py lacks here: {plain(name.decode())} ({code})")
        offset = dataset.id.get_offset()
        if offset is None or dataset.dtype.hasobject or self._file.userblock_size or not self._is_usual(dataset):
            return KeptRows(DataSet(dataset), dataset.chunks[0] if dataset.chunks else 1)
        return PlainArray(self.path, offset, dataset.dtype, dataset.shape)

    def _is_usual(self, dataset: Any) -> bool:
        """Return whether numbers are stored as NumPy has them. HDF5 also knows those of 12 of 16 bits."""
        usual = self._h5py.h5t.py_create(dataset.dtype, logical=True)
        return dataset.dtype.kind not in "iuf" or bool(usual.equal(dataset.id.get_type()))

    def listing(self) -> Iterator[str]:
        found: list[str] = []

        def visit(name: str, item: Any) -> bool | None:
            if isinstance(item, self._h5py.Dataset):
                found.append(f"{name} {shape_text(item)}")
            return True if len(found) > MOST_LISTED else None

        self._file.visititems(visit)
        yield from found[:MOST_LISTED]
        if len(found) > MOST_LISTED:
            yield "and others"

    @cached_property
    def _h5py(self) -> Any:
        import h5py

        return h5py

    @cached_property
    def _file(self) -> Any:
        return self._h5py.File(self.path, "r", locking=False)
