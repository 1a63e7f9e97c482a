"""Ourselves: a pack in npy shards, which all others are held against."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bench.contenders import BATCH, Tensors, Ways
from bench.contenders.pairs import Pairs
from bench.reading import build
from readers import open_dataset


def write(pairs: Pairs, out: Path, storages: Sequence[str] = ("npy",)) -> None:
    for storage in storages:
        build(pairs.raw, out / storage, storage)


def ways(out: Path) -> Ways:
    return {pack.name: loaded(pack) for pack in sorted(out.iterdir())}


def loaded(pack: Path) -> Callable[[], Iterable[Tensors]]:
    loader = open_dataset(pack).loader(BATCH, shuffle=True)
    return lambda: loader
