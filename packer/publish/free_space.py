"""Free space of a folder: on a disk, or in memory, where the memory limit of a job counts as well."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from packer.errors import TargetError
from readers.machine import Machine

SHARD_SLACK = 64 << 10
"""Bytes added per shard when free disk is checked: headers, page ends, keys and the receipt."""

MOUNTS = Path("/proc/self/mountinfo")
MEMORY_SHARE = 0.9
"""The share of the available memory that files may fill: the training that reads them needs memory, too."""


def free_space(folder: Path) -> int:
    """Return the free bytes for files in a folder. If it does not exist, its nearest existing parent counts."""
    existing = _existing(folder)
    free = shutil.disk_usage(existing).free
    return min(free, free_memory()) if in_memory(existing) else free


def check_free_space(folder: Path, needed: int, advice: str = "", name: Path | None = None) -> None:
    """Raise TargetError if this number of bytes does not fit into a folder.

    `advice` ends the message, `name` begins it.
    """
    free = free_space(folder)
    if needed > free:
        device = "memory" if in_memory(_existing(folder)) else "disk"
        raise TargetError(f"{name or folder}: needs about {needed:,} bytes, the {device} has {free:,} free{advice}")


def _existing(folder: Path) -> Path:
    """Return a folder, or the nearest of its parents that exists."""
    folder = folder.absolute()
    while not folder.exists():
        folder = folder.parent
    return folder


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
