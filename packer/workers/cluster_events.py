"""Reports of a build on a cluster, while it goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class ClusterEvents:
    """Functions that are called from the thread of the build."""

    rejected: Callable[[str, str, str], object] = lambda key, reason, host: None
    """Called with the key of a bad pair, the reason, and the host that found it: the first ones of each shard."""
    waits: Callable[[float], object] = lambda seconds: None
    """Called with the seconds since which a cluster has no workers."""
    failed: Callable[[int, str], object] = lambda shard, why: None
    """Called with the number of a shard whose building failed, and why. It is tried again."""
    avoided: Callable[[str], object] = lambda host: None
    """Called with the host of a worker that failed several times in a row. It gets no more shards."""
