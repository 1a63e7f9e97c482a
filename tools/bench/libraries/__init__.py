"""Libraries that read the same pairs: a file for each, imported when it is needed, as its package may be missing.

The file of a library has two functions. `write(pairs, out)` stores the pairs in the format of the library.
`loaders(out)` returns a function for each setting of its loader, which makes a pass over all pairs in shuffled batches
of `BATCH`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import torch  # takes a second, and the writers of packs and the decode loop do without

BATCH, WORKERS = 16, 2
Tensors: TypeAlias = "tuple[torch.Tensor, torch.Tensor]"
"""Images and labels of a batch: uint8, in either order of axes."""
Passes = Callable[[], Iterable[Tensors]]
Loaders = dict[str, Passes]


def forked(workers: int) -> dict[str, Any]:
    """Return options of a DataLoader with persistent, forked workers, whatever start method a library has set."""
    options: dict[str, Any] = {"num_workers": workers}
    return options | {"persistent_workers": True, "multiprocessing_context": "fork"} if workers else options


def shuffled(rows: int) -> Iterator[list[int]]:
    """Return the rows of each batch, for libraries that do not shuffle themselves."""
    from torch import randperm

    order = randperm(rows).tolist()
    return (order[first : first + BATCH] for first in range(0, rows, BATCH))


def image_and_label(batches: Iterable[Any]) -> Iterable[Tensors]:
    """Yield the two columns of batches that are dictionaries."""
    return ((batch["image"], batch["label"]) for batch in batches)


@dataclass(frozen=True)
class Library:
    """The name in the table, the file here, the package to install, and the factor by which we want to be faster."""

    title: str
    module: str
    package: str
    goal: float | None = None


# Libraries that start processes come before those that leave threads behind: a fork does not copy threads.
LIBRARIES = (
    Library("loader", "segpack", "segpack"),
    Library("loader", "formats", "segpack"),
    Library("raw PNG, OpenCV", "opencv", "opencv-python", 80),
    Library("raw PNG, Pillow", "pillow", "pillow"),
    Library("raw PNG, TorchCodec", "torchcodec", "torchcodec"),
    Library("TensorDict", "tensordict", "tensordict", 8),
    Library("HF datasets", "huggingface", "datasets", 2.8),
    Library("WebDataset", "webdataset", "webdataset", 15),
    Library("MosaicML Streaming", "mosaic", "mosaicml-streaming", 10),
    Library("LitData", "litdata", "litdata", 4.5),
    Library("Squirrel", "squirrel", "squirrel-core"),
    Library("FFCV", "ffcv", "ffcv", 1.7),
    Library("DALI, CPU", "dali", "nvidia-dali-cuda130", 2.8),
    Library("Lance", "lance", "pylance"),
    Library("Grain, ArrayRecord", "grain", "grain"),
    Library("SPDL, npy", "spdl", "spdl"),
    Library("dataio-rs, npy", "dataio_rs", "dataio-rs"),
)
