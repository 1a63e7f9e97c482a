"""HDF5 files as a source. Nothing outside of the file is read: no external links, no external or virtual data sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from packer.errors import BadPair
from packer.sources.archives.tables import damaged
from packer.sources.arrays.kept_rows import KeptRows
from packer.sources.arrays.plain_array import PlainArray
from packer.sources.arrays.stack_form import Stack, shape_text
from packer.sources.arrays.stacked import MOST_LISTED, StackedRows
from packer.sources.portable_functions import plain, words_of
from readers.contract.regular_files import open_raw

MAGIC = b"\x89HDF\r\n\x1a\n"


class DataSet:
    """A data set that libhdf5 must read, because it is compressed, in chunks, or of texts."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self.shape: tuple[int, ...] = dataset.shape
        self.dtype: np.dtype[Any] = dataset.dtype

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        try:
            return np.asarray(self._dataset[start:stop])
        except MemoryError:
            raise
        except Exception as error:
            raise BadPair(f"cannot be read: {words_of(error)}") from error


class Hdf5Arrays(StackedRows):
    """Data sets of an HDF5 file, such as `images` or `train/labels`."""

    kind: ClassVar[str] = "hdf5"
    may_crash: ClassVar[bool] = True

    @classmethod
    def fits(cls, path: Path, head: bytes) -> bool:
        return head.startswith(MAGIC)

    def files(self) -> Sequence[Path]:
        return [self.path]

    def stack(self, name: str) -> Stack:
        with damaged():
            member = self._file
            for part in name.strip("/").split("/"):
                member = self._member(member, part)
            if not isinstance(member, self._h5py.Dataset):
                raise BadPair("is a group; name one of its data sets")
            return self._checked(member)

    def _member(self, group: Any, name: str) -> Any:
        """Return what a name in a group stands for. What it links to is not even looked up: it may be another file."""
        text = name.encode()
        if not isinstance(group, self._h5py.Group) or not text or b"\0" in text or not group.id.links.exists(text):
            raise BadPair("there is no such data set")
        if group.id.links.get_info(text).type != self._h5py.h5l.TYPE_HARD:
            target = group.id.links.get_val(text)
            path = target if isinstance(target, bytes) else target[-1]  # of another file, its name comes first
            raise BadPair(f"is a link to {plain(path.decode(errors='replace'))}; name the data set itself")
        return group[name]

    def _checked(self, dataset: Any) -> Stack:
        properties = dataset.id.get_create_plist()
        if dataset.is_virtual or properties.get_external_count():
            raise BadPair("is stored in other files, which are not opened; copy it into this one")
        dtype, shape = dataset.dtype, dataset.shape
        if dtype.names or dtype.subdtype or (dtype.hasobject and not self._h5py.check_string_dtype(dtype)):
            raise BadPair(f"holds {plain(str(dtype))}; expected plain numbers or texts")
        for number in range(properties.get_nfilters()):
            code, _, _, name = properties.get_filter(number)
            if not self._h5py.h5z.filter_avail(code):
                filter_name = plain(name.decode(errors="replace"))
                raise BadPair(f"is compressed by a filter that h5py lacks here: {filter_name} ({code})")
        size = self.path.stat().st_size
        if shape and shape[0] > size:
            raise BadPair(f"claims {shape[0]} rows; the file has {size} bytes")
        offset = dataset.id.get_offset()
        if offset is not None and offset + dataset.id.get_storage_size() > size:  # HDF5 1.14 delivers zeros
            raise BadPair("cannot be read: it ends beyond the end of the file")
        if offset is None or dtype.hasobject or self._file.userblock_size or not self._is_usual(dataset):
            return KeptRows(DataSet(dataset), dataset.chunks[0] if dataset.chunks else 1)
        return PlainArray(self.path, offset, dtype, shape)

    def _is_usual(self, dataset: Any) -> bool:
        """Return whether numbers are stored as NumPy has them. HDF5 also has numbers of 12 of 16 bits."""
        usual = self._h5py.h5t.py_create(dataset.dtype, logical=True)
        return dataset.dtype.kind not in "iuf" or bool(usual.equal(dataset.id.get_type()))

    def listing(self) -> Iterator[str]:
        """Yield the names of some data sets."""
        data_sets: list[Any] = []

        def visit(name: str, item: Any) -> bool | None:
            if isinstance(item, self._h5py.Dataset):
                data_sets.append((plain(name), item))
            return True if len(data_sets) > MOST_LISTED else None

        with suppress(BadPair), damaged():
            self._file.visititems(visit)
        for name, item in data_sets:
            try:
                with damaged():
                    yield f"{name}, which is stored in other files" if item.is_virtual else f"{name} {shape_text(item)}"
            except BadPair as bad:
                yield f"{name}, which {bad}"

    @cached_property
    def _h5py(self) -> Any:
        import h5py

        return h5py

    @cached_property
    def _file(self) -> Any:
        with open_raw(self.path):  # so it is a regular file
            return self._h5py.File(self.path, "r", locking=False)
