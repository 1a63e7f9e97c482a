"""`Snapshot`: the kernel's counters of CPUs and disks, for this program and its child processes."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from readers.machine import Machine

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Snapshot:
    """Counters that only grow, except `available`. A counter that the kernel does not have is 0."""

    time: float
    busy: float
    """Seconds of CPU used by all programs, on the cores that this program may use."""
    own: Mapping[int, float]
    """Seconds of CPU used by each process of this program."""
    stalled: float
    """Seconds in which any program of the machine waited for a disk."""
    read: Mapping[int, float]
    """Bytes that each process of this program read from a disk."""
    available: int
    """Bytes of memory that are free or can be freed."""


def snapshot(processes: list[int]) -> Snapshot:
    """Take a snapshot of the machine and of these processes."""
    return Snapshot(
        time=time.perf_counter(),
        busy=_busy(),
        own={process: _own(process) for process in processes},
        stalled=_stalled(),
        read={process: _read(process) for process in processes},
        available=Machine.look().available,
    )


def grown(before: Mapping[int, float], now: Mapping[int, float]) -> float:
    """Return by how much a counter grew, over all processes that are in both snapshots."""
    return sum(max(0.0, now[process] - before[process]) for process in now.keys() & before.keys())


def family(root: int) -> list[int]:
    """Return a process and all its descendants."""
    children: dict[int, list[int]] = {}
    for path in PROC.iterdir():
        if path.name.isdigit() and (fields := _stat(int(path.name))):
            children.setdefault(int(fields[1]), []).append(int(path.name))
    processes = [root]
    for process in processes:
        processes += children.get(process, [])
    return processes


def _stat(process: int) -> list[str]:
    """Return the fields after the program's name, which may contain any character."""
    with suppress(OSError):
        return (PROC / str(process) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    return []


def _own(process: int) -> float:
    fields = _stat(process)
    return sum(map(int, fields[11:13])) / TICKS if fields else 0.0


def _busy() -> float:
    allowed = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    total = 0
    with suppress(OSError):
        for line in (PROC / "stat").read_text().splitlines():
            name, *fields = line.split()
            if name in allowed:
                user, nice, system, _, _, *stolen = map(int, fields[:8])  # idle and waiting for a disk are not busy
                total += user + nice + system + sum(stolen)
    return total / TICKS


def _stalled() -> float:
    with suppress(OSError, ValueError, IndexError):
        line = (PROC / "pressure" / "io").read_text().splitlines()[0]
        return int(line.rpartition("total=")[2]) / 1e6
    return 0.0


def _read(process: int) -> float:
    with suppress(OSError):
        for line in (PROC / str(process) / "io").read_text().splitlines():
            if line.startswith("read_bytes:"):
                return float(line.split()[1])
    return 0.0
