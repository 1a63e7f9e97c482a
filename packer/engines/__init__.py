"""Engines: how many processes build the shards, with how many threads each. Receipts come as shards are done."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from packer.engines.supervisor import Built, Supervisor
from packer.spec import ShardSpec

TASK_TIMEOUT = 300
"""Seconds that one pair may take. The largest picture takes a few; more is a decoder that goes round in circles."""


def build_shards(specs: Sequence[ShardSpec], raw: Path, out: Path, workers: int, task_timeout: int) -> Built:
    """Build all shards on `workers` cores: a process per core where shards are plenty, else threads of one process."""
    plenty = workers > 1 and len(specs) >= 2 * workers
    processes, threads = (workers, 1) if plenty else (1, workers)
    return Supervisor(raw, out, processes, threads, task_timeout).build(specs)
