"""Raw files, decoded for every batch by the workers of a stock DataLoader: the usual first version of a training."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from bench.libraries import BATCH, WORKERS, Loaders, forked
from bench.pairs import Pairs


class RawFiles(Dataset[Any]):
    """A data set that decodes an image and its label."""

    def __init__(self, raw: Path, decode: Callable[[Path], Any]) -> None:
        self.pairs = [(path, raw / "labels" / path.name) for path in sorted((raw / "images").iterdir())]
        self.decode = decode

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, row: int) -> tuple[torch.Tensor, ...]:
        return tuple(torch.from_numpy(self.decode(path)) for path in self.pairs[row])


def link(pairs: Pairs, out: Path) -> None:
    """Link to the files, which exist already."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.symlink_to(pairs.raw, target_is_directory=True)


def decoded(out: Path, decode: Callable[[Path], Any]) -> Loaders:
    loader: DataLoader[Any] = DataLoader(RawFiles(out, decode), BATCH, shuffle=True, **forked(WORKERS))
    return {f"{WORKERS} workers": lambda: loader}
