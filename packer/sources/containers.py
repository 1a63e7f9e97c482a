"""The containers of rows that `--from` takes. They are known by their content, not by their names."""

from __future__ import annotations

import os
from pathlib import Path

from packer.sources.archive_files import named_files
from packer.sources.container import Container
from packer.sources.hdf5_arrays import Hdf5Arrays
from packer.sources.hugging_face import HuggingFaceSource
from packer.sources.lmdb_pictures import LmdbPicturesSource
from packer.sources.nifti import NiftiSlices
from packer.sources.npy_arrays import NpyArrays
from packer.sources.parquet import ParquetSource
from packer.sources.recordio import RecordIoSource
from packer.sources.tfrecord import TfRecordSource
from packer.sources.torch_tensors import TorchTensors
from packer.sources.webdataset import WebDatasetSource
from packer.sources.zarr_arrays import ZarrArrays
from readers.contract.regular_files import open_raw

HEAD = 512
"""The bytes at the start of a file that show its kind."""
CONTAINERS: tuple[Container, ...] = (
    Hdf5Arrays,
    NpyArrays,
    TorchTensors,
    ZarrArrays,
    WebDatasetSource,
    ParquetSource,
    HuggingFaceSource,
    NiftiSlices,
    LmdbPicturesSource,
    TfRecordSource,
    RecordIoSource,
)
"""The first one that fits is taken."""


def container_of(path: Path) -> Container | None:
    """Return the kind of container that lies here; None if it is a folder of files, or an unknown file."""
    head = b""
    try:
        if not path.is_dir():
            with open_raw(next(filter(os.path.isfile, named_files(path)), path)) as file:
                head = file.read(HEAD)
        return next((container for container in CONTAINERS if container.fits(path, head)), None)
    except OSError:
        return None
