"""Raw files, decoded for every batch by the workers of a stock DataLoader: where everybody begins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from bench.contenders import BATCH, WORKERS, Ways, forked
from bench.contenders.pairs import Pairs


class RawFiles(Dataset[Any]):
    """Decodes an image and its label."""

    def __init__(self, raw: Path, decode: Callable[[Path], Any]) -> None:
        self.pairs = [(path, raw / "labels" / path.name) for path in sorted((raw / "images").iterdir())]
        self.decode = decode

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, row: int) -> tuple[torch.Tensor, ...]:
        return tuple(torch.from_numpy(self.decode(path)) for path in self.pairs[row])


def link(pairs: Pairs, out: Path) -> None:
    """The files are there already."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.symlink_to(pairs.raw, target_is_directory=True)


def decoded(out: Path, decode: Callable[[Path], Any]) -> Ways:
    loader: DataLoader[Any] = DataLoader(RawFiles(out, decode), BATCH, shuffle=True, **forked(WORKERS))
    return {f"{WORKERS} workers": lambda: loader}
