"""The containers of rows that `--from` takes. They are known by their content, not by their names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from packer.sources.archive_files import named_files
from packer.sources.container import Container
from readers.contract.regular_files import open_raw

HEAD = 512
"""The bytes at the start of a file that show its kind."""
CONTAINERS = {
    "hdf5": "hdf5_arrays.Hdf5Arrays",
    "npy": "npy_arrays.NpyArrays",
    "torch": "torch_tensors.TorchTensors",
    "zarr": "zarr_arrays.ZarrArrays",
    "webdataset": "webdataset.WebDatasetSource",
    "parquet": "parquet.ParquetSource",
    "hugging-face": "hugging_face.HuggingFaceSource",
    "nifti": "nifti.NiftiSlices",
    "lmdb-pictures": "lmdb_pictures.LmdbPicturesSource",
    "tfrecord": "tfrecord.TfRecordSource",
    "recordio": "recordio.RecordIoSource",
}
"""The module and the class of each kind, imported when a path is examined. The first one that fits is taken."""


def container_of(path: Path) -> Container | None:
    """Return the kind of container that lies here; None if it is a folder of files, or an unknown file."""
    head = b""
    try:
        if not path.is_dir():
            with open_raw(next(filter(os.path.isfile, named_files(path)), path)) as file:
                head = file.read(HEAD)
        classes: Iterator[Container] = map(source_class, CONTAINERS.values())
        return next((container for container in classes if container.fits(path, head)), None)
    except OSError:
        return None


def source_class(name: str) -> Any:
    """Import the module `name` says, and return its class."""
    module, name = name.split(".")
    return getattr(import_module(f"packer.sources.{module}"), name)
