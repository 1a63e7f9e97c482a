"""Room: how many bytes a folder can still take, on a disk, or in memory, where the limits of a job count as well."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from readers.machine import Machine

MOUNTS = Path("/proc/self/mountinfo")
SHARE = 0.9
"""Of the memory that is available, what may be filled: the training that is to read it needs some, too."""


def room(folder: Path) -> int:
    """Free bytes for files in a folder, or in the nearest one above that is there."""
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    return min(free, int(SHARE * Machine.look().available)) if in_memory(place) else free


def in_memory(folder: Path) -> bool:
    """Whether files in this folder are memory."""
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in MOUNTS.read_text().splitlines():
        mount, _, system = line.partition(" - ")
        if mount.split()[2] == number:
            return system.split()[0] in ("tmpfs", "ramfs")
    return False
