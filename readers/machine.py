"""`Machine`: the cores and the memory that this process may use. In a container these are fewer than the host has."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/")
"""The folder with /proc and /sys."""
CGROUPS = "sys/fs/cgroup"
NO_LIMIT = 1 << 60
"""Without a limit, version 1 of control groups has a number at least as large."""


@dataclass(frozen=True)
class Machine:
    """The cores, and the memory in bytes.

    `affinity` is the number of cores this process may run on. `quota` is the CPU time, in cores, that a control group
    grants: the kernel pauses a process that uses more. `shared` is free space in /dev/shm, through which worker
    processes pass batches.
    """

    affinity: int
    quota: float | None
    memory: int
    available: int
    shared: int

    @property
    def power(self) -> float:
        """The CPU time that can be used per second."""
        return _power(self.affinity, self.quota)

    @property
    def cores(self) -> int:
        """The number of threads that can compute at a time."""
        return _cores(self.power)

    @classmethod
    def look(cls, root: Path | None = None) -> Machine:
        """Read the facts of this machine from /proc and /sys below `root`."""
        root = root or ROOT
        facts = _fields(root / "proc/meminfo")
        total = facts.get("MemTotal", 0) << 10
        memory, available = total, facts.get("MemAvailable", 0) << 10 or total
        for folder in _groups(root, "memory"):
            limit = _number(folder / "memory.max", _number(folder / "memory.limit_in_bytes", NO_LIMIT))
            memory, available = min(memory, limit), min(available, max(0, limit - _used(folder)))
        return cls(_affinity(), _quota(root), memory, available, _free(root / "dev/shm"))


def usable_cores() -> int:
    """Return how many threads or processes can compute at a time: a container's CPU quota counts."""
    return _cores(_power(_affinity(), _quota(ROOT)))  # what memory there is takes longer to find out


def _power(affinity: int, quota: float | None) -> float:
    return float(affinity) if quota is None else min(float(affinity), quota)


def _cores(power: float) -> int:
    return max(1, math.ceil(power))


def _affinity() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _used(group: Path) -> int:
    """Return the bytes that cannot be freed: all but cached files. A file in /dev/shm cannot be freed either."""
    facts = _fields(group / "memory.stat")
    used = _number(group / "memory.current", _number(group / "memory.usage_in_bytes", 0))
    return used - sum(facts.get(f"total_{name}", facts.get(name, 0)) for name in ("inactive_file", "active_file"))


def _quota(root: Path) -> float | None:
    """Return the smallest quota of all control groups that this process is in."""
    quotas = []
    for folder in _groups(root, "cpu"):
        words = _text(folder / "cpu.max").split()
        words = words or [_text(folder / "cpu.cfs_quota_us").strip(), _text(folder / "cpu.cfs_period_us").strip()]
        if len(words) == 2 and all(word.isdigit() and int(word) for word in words):
            quotas.append(int(words[0]) / int(words[1]))
    return min(quotas, default=None)


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """Yield the folders of the control groups that this process is in, of both versions, from the innermost outwards.

    In a container, the name of the group may be the host's, while the group itself is mounted at the top.
    """
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, name = rest.partition(":")
        if controllers and controller not in controllers.split(","):
            continue
        for top in {root / CGROUPS / controllers, root / CGROUPS / (controller if controllers else "unified")}:
            inside = top / name.lstrip("/")
            yield from (folder for folder in (inside, *inside.parents) if folder.is_relative_to(top))


def _fields(path: Path) -> dict[str, int]:
    """Read the lines of a file that consist of a name and a number."""
    lines = (line.replace(":", " ").split() for line in _text(path).splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) > 1 and words[1].isdigit()}


def _number(path: Path, otherwise: int) -> int:
    text = _text(path).strip()
    return int(text) if text.isdigit() else otherwise


def _free(folder: Path) -> int:
    try:
        status = os.statvfs(folder)
    except OSError:
        return 0
    return status.f_bavail * status.f_frsize


def _text(path: Path) -> str:
    """Read a file of the kernel; empty if it is missing or not readable."""
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
