"""One shard after the other, its rows shared out among threads: even a single shard uses every core."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from packer.shard import build_shard
from packer.spec import ShardSpec
from readers.contract.receipt import Receipt


def in_threads(specs: Sequence[ShardSpec], raw: Path, out: Path, threads: int) -> Iterator[tuple[int, Receipt]]:
    """Memory is one shard."""
    for number, spec in enumerate(specs):
        yield number, build_shard(spec, raw, out, threads)
