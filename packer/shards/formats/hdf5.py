"""HDF5: one file of contiguous, uncompressed datasets, large ones on a boundary of 4096 bytes, for memory maps."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
from numpy.typing import NDArray

from packer.publish.direct_file import DirectFile
from packer.shards.formats import Arrays, as_os_error
from readers.contract.fields import Field
from readers.formats.hdf5 import SUFFIX


def write(stem: Path, arrays: Arrays, fields: Sequence[Field]) -> dict[Path, str]:
    """Write one file with a dataset per column.

    libhdf5 lays out a file without rows, and the rows are written into a copy of it. So a full disk is an ordinary
    error; libhdf5 itself would crash when it closes the file.
    """
    path, bare = stem.with_name(stem.name + SUFFIX), stem.with_name(stem.name + ".bare")
    with as_os_error(RuntimeError), h5py.File(_create(bare)) as file:
        starts = {name: _allocate(file, name, array) for name, array in arrays.items()}
    with bare.open("rb") as layout, DirectFile(path) as data:
        for name in sorted(starts, key=lambda name: starts[name]):
            data.write(layout.read(starts[name] - layout.tell()))
            data.write(arrays[name].data)
            layout.seek(arrays[name].nbytes, os.SEEK_CUR)
        data.write(layout.read())
    bare.unlink()
    return {path: data.digest}


def _create(path: Path) -> Any:
    """Create a file whose root group has no times: before h5py 3.15, `h5py.File` would write the present second."""
    properties, access = h5py.h5p.create(h5py.h5p.FILE_CREATE), h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    properties.set_obj_track_times(False)
    access.set_libver_bounds(h5py.h5f.LIBVER_V18, h5py.h5f.LIBVER_V18)
    access.set_alignment(4096, 4096)
    return h5py.h5f.create(os.fsencode(path), h5py.h5f.ACC_TRUNC, properties, access)


def _allocate(file: h5py.File, name: str, array: NDArray[Any]) -> int:
    """Make a contiguous dataset without filling it; return its offset in the file."""
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_layout(h5py.h5d.CONTIGUOUS)
    properties.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    properties.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    properties.set_obj_track_times(False)
    kind = h5py.h5t.py_create(array.dtype, logical=True)
    space = h5py.h5s.create_simple(array.shape)
    return int(h5py.h5d.create(file.id, name.encode(), kind, space, properties).get_offset())


def tool() -> str:
    return f"hdf5 {h5py.version.hdf5_version}"
