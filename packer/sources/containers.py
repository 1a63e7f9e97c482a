"""The containers of rows that `--from` takes. They are known by their content, not by their names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from packer.sources.container import Container
from readers.contract.regular_files import open_raw
from readers.stores.open_store import url_of

HEAD = 512
"""The bytes at the start of a file that show its kind."""
CONTAINERS = {
    "hdf5": "arrays.hdf5_arrays.Hdf5Arrays",
    "npy": "arrays.npy_arrays.NpyArrays",
    "torch": "arrays.torch_tensors.TorchTensors",
    "zarr": "arrays.zarr_arrays.ZarrArrays",
    "webdataset": "archives.webdataset.WebDatasetSource",
    "parquet": "archives.parquet.ParquetSource",
    "hugging-face": "archives.hugging_face.HuggingFaceSource",
    "nifti": "volumes.volume_slices.VolumeSlices",
    "lmdb-pictures": "archives.lmdb_pictures.LmdbPicturesSource",
    "tfrecord": "archives.tfrecord.TfRecordSource",
    "recordio": "archives.recordio.RecordIoSource",
}
"""The module and the class of each kind, imported when a path is examined. The first one that fits is taken."""


def container_of(path: Path) -> Container | None:
    """Return the kind of container at a path or a URL; None if it is a folder of files, or an unknown file here."""
    classes: Iterator[Container] = map(source_class, CONTAINERS.values())
    if (url := url_of(path)) is not None:
        from packer.sources.stored_container import container_in_store  # most containers are on this machine

        return container_in_store(url, tuple(classes), HEAD)
    from packer.sources.archives.named_files import named_files  # a build of a folder needs none of it

    head = b""
    try:
        if not path.is_dir():
            with open_raw(next(filter(os.path.isfile, named_files(path)), path)) as file:
                head = file.read(HEAD)
        return next((container for container in classes if container.fits(path, head)), None)
    except OSError:
        return None


def source_class(name: str) -> Any:
    """Import the module `name` says, and return its class."""
    module, _, name = name.rpartition(".")
    return getattr(import_module(f"packer.sources.{module}"), name)


def names_archive(url: str) -> bool:
    """Return whether the text of a URL names files with many rows. Nothing is asked for."""
    kinds = (source_class(name) for name in CONTAINERS.values() if name.startswith("archives."))
    name = url.rpartition("/")[2]
    return "{" in url or "*" in url or any(kind.in_stores and kind.suffix.search(name) for kind in kinds)
