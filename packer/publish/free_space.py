"""Free space of a folder: on a disk, or in memory, where the memory limit of a job counts as well."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from readers.machine import Machine

SHARD_SLACK = 64 << 10
"""Bytes added per shard when free disk is checked: headers, page ends, keys and the receipt."""

MOUNTS = Path("/proc/self/mountinfo")
MEMORY_SHARE = 0.9
"""The share of the available memory that files may fill: the training that reads them needs memory, too."""


def free_space(folder: Path) -> int:
    """Return the free bytes for files in a folder. If it does not exist, its nearest existing parent counts."""
    existing = folder.absolute()
    while not existing.exists():
        existing = existing.parent
    free = shutil.disk_usage(existing).free
    return min(free, free_memory()) if in_memory(existing) else free


def free_memory() -> int:
    """Return the bytes of a pack that can stay in memory next to a training."""
    return int(MEMORY_SHARE * Machine.look().available)


def in_memory(folder: Path) -> bool:
    """Return whether files in this folder are in memory."""
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in MOUNTS.read_text().splitlines():
        mount, _, system = line.partition(" - ")
        if mount.split()[2] == number:
            return system.split()[0] in ("tmpfs", "ramfs")
    return False
