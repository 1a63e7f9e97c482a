"""Room: how many bytes a folder can still take, on a disk, or in memory, where the limits of a job count as well."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")
SHARE = 0.9
"""Of the memory that is available, what may be filled: the training that is to read it needs some, too."""
_V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "total_active_file")
_V2 = ("memory.max", "memory.current", "inactive_file", "active_file")


def room(folder: Path) -> int:
    """Free bytes for files in a folder, or in the nearest one above that is there."""
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    return min(free, int(SHARE * _memory())) if in_memory(place) else free


def in_memory(folder: Path) -> bool:
    """Whether files in this folder are memory."""
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in _lines(PROC / "self/mountinfo"):
        mount, _, system = line.partition(" - ")
        if mount.split()[2] == number:
            return system.split()[0] in ("tmpfs", "ramfs")
    return False


def _memory() -> int:
    """What can be taken before others are driven out: the machine's, or what a container or a job is allowed."""
    facts = dict(line.split(":", 1) for line in _lines(PROC / "meminfo"))
    available = int(facts["MemAvailable"].split()[0]) << 10
    return max(0, min([available, *_allowed()]))


def _allowed() -> Iterator[int]:
    """What is left of every limit on the control groups of this process; the cache of files makes way."""
    for line in _lines(PROC / "self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            base, names = CGROUPS / "memory", _V1
        elif not controllers:
            base, names = CGROUPS, _V2
        else:
            continue
        group = base / path.lstrip("/")
        for folder in (group, *group.parents):
            if folder.is_relative_to(base):
                yield from _left(folder, *names)


def _left(group: Path, limit: str, usage: str, *cached: str) -> Iterator[int]:
    """Nothing where the group has no limit, or is not to be seen from here."""
    most = "".join(_lines(group / limit))
    if most.isdigit():
        facts = dict(line.split() for line in _lines(group / "memory.stat"))
        used = int("".join(_lines(group / usage)) or 0)
        yield int(most) - used + sum(int(facts.get(name, 0)) for name in cached)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
