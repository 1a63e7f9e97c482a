"""Repairing: what is damaged is no longer believed, so that a build makes it anew."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from packer.publish.atomic import sync_folder
from readers.contract.manifest import SHARDS
from readers.contract.receipt import SUFFIX


def distrusted(out: Path, damage: Sequence[str]) -> frozenset[str]:
    """The shards that are named in what `verify` found, by the stems of their files."""
    stems = {path.name.partition(".")[0] for path in (out / SHARDS).iterdir()}
    told = "\n".join(damage)
    return frozenset(stem for stem in stems if f"{out / SHARDS / stem}" in told)


def forget(out: Path, stems: Iterable[str]) -> None:
    """Without its receipt a shard counts as not there; its files are replaced once they are built again."""
    for stem in stems:
        (out / SHARDS / (stem + SUFFIX)).unlink(missing_ok=True)
    sync_folder(out / SHARDS)
