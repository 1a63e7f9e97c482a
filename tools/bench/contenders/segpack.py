"""Ourselves: a pack in each format. `npy` is what all others are held against."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from contenders import BATCH, Tensors, Ways
from contenders.pairs import Pairs
from readers import SegDataset, open_dataset
from readers.contract.manifest import STORAGES
from reading import build


def write(pairs: Pairs, out: Path) -> None:
    for storage in STORAGES:
        build(pairs.raw, out / storage, storage)


def ways(out: Path) -> Ways:
    return {f"loader, {storage}": passes(open_dataset(out / storage)) for storage in STORAGES}


def passes(dataset: SegDataset) -> Callable[[], Iterable[Tensors]]:
    loader = dataset.loader(BATCH, shuffle=True)
    return lambda: loader
