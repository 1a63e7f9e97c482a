"""Packed segmentation data sets as PyTorch data sets: `from readers import open_dataset`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from readers.contract import VERSION
from readers.contract.errors import DamagedError, ManifestError, NoPackError, ReadError, RequestError
from readers.contract.tiles import Tile, stitch

if TYPE_CHECKING:
    from readers.dataset import (
        ArrowSegDataset,
        Hdf5SegDataset,
        LmdbSegDataset,
        NpySegDataset,
        SegDataset,
        open_dataset,
    )

__version__ = VERSION

__all__ = [
    "ArrowSegDataset",
    "DamagedError",
    "Hdf5SegDataset",
    "LmdbSegDataset",
    "ManifestError",
    "NoPackError",
    "NpySegDataset",
    "ReadError",
    "RequestError",
    "SegDataset",
    "Tile",
    "__version__",
    "open_dataset",
    "stitch",
]


def __getattr__(name: str) -> object:
    """The data sets need torch, which takes seconds to import, so they come when they are named."""
    if name in __all__:
        return getattr(import_module("readers.dataset"), name)
    raise AttributeError(f"module 'readers' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
