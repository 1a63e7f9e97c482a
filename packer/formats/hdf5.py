"""HDF5: one file of contiguous, uncompressed datasets, each on a boundary of 4096 bytes, so that it can be mapped."""

from __future__ import annotations

from pathlib import Path

import h5py

from packer.formats import Arrays
from readers.formats.hdf5 import SUFFIX


def write(stem: Path, arrays: Arrays) -> list[Path]:
    """One file with a dataset per column."""
    path = stem.with_name(stem.name + SUFFIX)
    with h5py.File(path, "w", libver=("v108", "v108"), alignment_threshold=1, alignment_interval=4096) as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array, track_times=False)
    return [path]


def tool() -> str:
    return f"hdf5 {h5py.version.hdf5_version}"
