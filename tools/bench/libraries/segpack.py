"""Our loader over a pack in npy shards, with which all others are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bench.libraries import BATCH, Loaders, Tensors
from bench.pairs import Pairs
from bench.reading import build
from readers import open_dataset


def write(pairs: Pairs, out: Path, storages: Sequence[str] = ("npy",)) -> None:
    for storage in storages:
        build(pairs.raw, out / storage, storage)


def loaders(out: Path) -> Loaders:
    return {pack.name: loaded(pack) for pack in sorted(out.iterdir())}


def loaded(pack: Path) -> Callable[[], Iterable[Tensors]]:
    loader = open_dataset(pack).loader(BATCH, shuffle=True)
    return lambda: loader
