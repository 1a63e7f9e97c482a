"""Packed segmentation data sets as PyTorch data sets: `from readers import open_dataset`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from readers.contract import VERSION
from readers.contract.errors import DamagedError, ManifestError, NoPackError, ReadError, RequestError
from readers.contract.tiles import Tile, stitch

if TYPE_CHECKING:
    from readers.collate import NativeSample, collate_lists
    from readers.crop import CenterCrop, RandomCrop
    from readers.dataset import (
        ArrowSegDataset,
        Hdf5SegDataset,
        LmdbSegDataset,
        NpySegDataset,
        SegDataset,
        open_dataset,
    )
    from readers.device import DeviceBatches, to_device
    from readers.diagnosis.watch import Watch, watch
    from readers.loader import Loader
    from readers.order import Order, Window
    from readers.slot_loader import SlotDataLoader

__version__ = VERSION

__all__ = [
    "ArrowSegDataset",
    "CenterCrop",
    "DamagedError",
    "DeviceBatches",
    "Hdf5SegDataset",
    "LmdbSegDataset",
    "Loader",
    "ManifestError",
    "NativeSample",
    "NoPackError",
    "NpySegDataset",
    "Order",
    "RandomCrop",
    "ReadError",
    "RequestError",
    "SegDataset",
    "SlotDataLoader",
    "Tile",
    "Watch",
    "Window",
    "__version__",
    "collate_lists",
    "open_dataset",
    "stitch",
    "to_device",
    "watch",
]


_PLACES = {
    "CenterCrop": "readers.crop",
    "DeviceBatches": "readers.device",
    "Loader": "readers.loader",
    "NativeSample": "readers.collate",
    "Order": "readers.order",
    "RandomCrop": "readers.crop",
    "SlotDataLoader": "readers.slot_loader",
    "Watch": "readers.diagnosis.watch",
    "Window": "readers.order",
    "collate_lists": "readers.collate",
    "to_device": "readers.device",
    "watch": "readers.diagnosis.watch",
}


def __getattr__(name: str) -> object:
    """What needs torch, which takes seconds to import, comes when it is named."""
    if name in __all__:
        return getattr(import_module(_PLACES.get(name, "readers.dataset")), name)
    raise AttributeError(f"module 'readers' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
