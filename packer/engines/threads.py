"""One shard after the other, its rows shared out among threads: even a single shard uses every core."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from packer.engines.processes import Built
from packer.shard import build_shard
from packer.spec import ShardSpec


def in_threads(specs: Sequence[ShardSpec], raw: Path, out: Path, threads: int) -> Built:
    """Memory is one shard."""
    for number, spec in enumerate(specs):
        yield number, build_shard(spec, raw, out, threads)
