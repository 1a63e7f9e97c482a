"""`Machine`: the cores and the memory that this process may use; in a container they are fewer than there are."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CGROUPS = "sys/fs/cgroup"
NO_LIMIT = 1 << 60
"""Version 1 of control groups says a number as large as this where there is none."""


@dataclass(frozen=True)
class Machine:
    """What may be used. `quota` is processor time, in cores, that a control group grants; the kernel stops who takes
    more, whatever cores there are. `shared` is what is free in /dev/shm, where worker processes leave their batches."""

    affinity: int
    quota: float | None
    memory: int
    available: int
    shared: int

    @property
    def power(self) -> float:
        """Cores' worth of processor time."""
        return float(self.affinity) if self.quota is None else min(float(self.affinity), self.quota)

    @property
    def cores(self) -> int:
        """How many threads can be at work at a time."""
        return max(1, math.ceil(self.power))

    @classmethod
    def look(cls, root: Path = Path("/")) -> Machine:
        """This machine; `root` is where its /proc and /sys are found."""
        told = _fields(root / "proc/meminfo")
        total = told.get("MemTotal", 0) << 10
        memory, available = total, told.get("MemAvailable", 0) << 10 or total
        for folder in _groups(root, "memory"):
            limit = _number(folder / "memory.max", _number(folder / "memory.limit_in_bytes", NO_LIMIT))
            memory, available = min(memory, limit), min(available, max(0, limit - _used(folder)))
        return cls(len(os.sched_getaffinity(0)), _quota(root), memory, available, _free(root / "dev/shm"))


def _used(group: Path) -> int:
    """What cannot make way for other things, as what is cached of files can; a file in /dev/shm cannot."""
    facts = _fields(group / "memory.stat")
    used = _number(group / "memory.current", _number(group / "memory.usage_in_bytes", 0))
    return used - sum(facts.get(f"total_{name}", facts.get(name, 0)) for name in ("inactive_file", "active_file"))


def _quota(root: Path) -> float | None:
    """The least of all control groups that this process is in."""
    quotas = []
    for folder in _groups(root, "cpu"):
        words = _text(folder / "cpu.max").split()
        words = words or [_text(folder / "cpu.cfs_quota_us").strip(), _text(folder / "cpu.cfs_period_us").strip()]
        if len(words) == 2 and all(word.isdigit() and int(word) for word in words):
            quotas.append(int(words[0]) / int(words[1]))
    return min(quotas, default=None)


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """The folders of the control groups that this process is in, of either version, from the innermost outwards.

    A container may be told the name of its group as the host has it, and see the group itself at the top.
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
    """The numbers of a file of lines that each have a name and a number."""
    lines = (line.replace(":", " ").split() for line in _text(path).splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) > 1 and words[1].isdigit()}


def _number(path: Path, otherwise: int) -> int:
    text = _text(path).strip()
    return int(text) if text.isdigit() else otherwise


def _free(folder: Path) -> int:
    try:
        told = os.statvfs(folder)
    except OSError:
        return 0
    return told.f_bavail * told.f_frsize


def _text(path: Path) -> str:
    """What the kernel tells; nothing where it does not."""
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
