"""Packed segmentation data sets as PyTorch data sets: `from readers import open_dataset`.

A row comes to the model in these steps, each in a module of its own. `contract` says what a pack is on disk, and checks
it. `location` opens one generation as a `pack`: OUT, or a copy near the GPU that `staged_copies` finds. `formats` maps
a shard of any format as columns. `row_reader` copies rows into memory from `batch_memory`, whole or a window of each.

`by_format` opens a data set, and `samples` reads its single rows. `loader` gives whole batches, in the order that
`order` computes, and `device` brings them to the GPU. `slot_loader` is PyTorch's own DataLoader with batches in shared
memory. `stripes` makes pictures of tiles again. `diagnosis` measures where the time of a training loop goes, and
`report` draws charts.

Everything here needs numpy at most, until a public name is used that needs PyTorch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from readers.contract import VERSION
from readers.contract.errors import DamagedError, ManifestError, NoPackError, ReadError, RequestError, VersionError

if TYPE_CHECKING:
    from readers.augmentation import Augmentation
    from readers.band import Stripe
    from readers.by_format import ArrowSegDataset, Hdf5SegDataset, LmdbSegDataset, NpySegDataset, open_dataset
    from readers.collate import Sample, collate_lists
    from readers.colour import Colour
    from readers.contract.place import Place
    from readers.contract.tiles import Tile
    from readers.crop import CenterCrop, RandomCrop
    from readers.dataset import SegDataset
    from readers.device import DeviceBatches, to_device
    from readers.diagnosis.watch import Watch, watch
    from readers.epoch import Window
    from readers.loader import Loader
    from readers.mix import MixedOrder
    from readers.mixed_packs import MixedPacks, mix_packs
    from readers.order import Order
    from readers.predictions.write import PredictionFile, write_prediction
    from readers.sliding_windows import SlidingWindows
    from readers.slot_loader import SlotDataLoader
    from readers.stripes import stitch, stitch_all, stitch_stripes

__version__ = VERSION

__all__ = [
    "ArrowSegDataset",
    "Augmentation",
    "CenterCrop",
    "Colour",
    "DamagedError",
    "DeviceBatches",
    "Hdf5SegDataset",
    "LmdbSegDataset",
    "Loader",
    "ManifestError",
    "MixedOrder",
    "MixedPacks",
    "NoPackError",
    "NpySegDataset",
    "Order",
    "Place",
    "PredictionFile",
    "RandomCrop",
    "ReadError",
    "RequestError",
    "Sample",
    "SegDataset",
    "SlidingWindows",
    "SlotDataLoader",
    "Stripe",
    "Tile",
    "VersionError",
    "Watch",
    "Window",
    "__version__",
    "collate_lists",
    "mix_packs",
    "open_dataset",
    "stitch",
    "stitch_all",
    "stitch_stripes",
    "to_device",
    "watch",
    "write_prediction",
]

_MODULES = {
    "Augmentation": "readers.augmentation",
    "CenterCrop": "readers.crop",
    "Colour": "readers.colour",
    "DeviceBatches": "readers.device",
    "Loader": "readers.loader",
    "MixedOrder": "readers.mix",
    "MixedPacks": "readers.mixed_packs",
    "Order": "readers.order",
    "RandomCrop": "readers.crop",
    "Sample": "readers.collate",
    "Place": "readers.contract.place",
    "PredictionFile": "readers.predictions.write",
    "SegDataset": "readers.dataset",
    "SlidingWindows": "readers.sliding_windows",
    "SlotDataLoader": "readers.slot_loader",
    "Stripe": "readers.band",
    "Tile": "readers.contract.tiles",
    "Watch": "readers.diagnosis.watch",
    "Window": "readers.epoch",
    "collate_lists": "readers.collate",
    "mix_packs": "readers.mixed_packs",
    "stitch": "readers.stripes",
    "stitch_all": "readers.stripes",
    "stitch_stripes": "readers.stripes",
    "to_device": "readers.device",
    "watch": "readers.diagnosis.watch",
    "write_prediction": "readers.predictions.write",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: most need torch, which takes seconds to import."""
    if name in __all__:
        try:
            return getattr(import_module(_MODULES.get(name, "readers.by_format")), name)
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise ImportError(f"readers.{name} needs PyTorch: pip install torch") from error
    raise AttributeError(f"module 'readers' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
