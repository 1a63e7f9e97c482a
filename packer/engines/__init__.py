"""Engines: ways to build many shards at once. Each gives receipts as shards are done."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from packer.engines.processes import Built, in_processes
from packer.engines.threads import in_threads
from packer.spec import ShardSpec


def build_shards(specs: Sequence[ShardSpec], raw: Path, out: Path, workers: int) -> Built:
    """Build all shards on `workers` cores: a process per shard where there are plenty, else threads within a shard."""
    if workers > 1 and len(specs) >= 2 * workers:
        return in_processes(specs, raw, out, workers)
    return in_threads(specs, raw, out, workers)
