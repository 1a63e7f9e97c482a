"""The CPU time of this process and of all processes that it started, which other users of the machine do not change."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")
PARENT, SPENT = 1, slice(11, 15)
"""Indices in /proc/PID/stat after the name: the parent; user and system time, own and of children that have ended."""


def cpu_seconds(process: int | None = None) -> float:
    """Return the CPU time so far, of running and ended processes together: those of `process`, by default this one."""
    known: dict[int, tuple[int, int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has just ended
            fields = (folder / "stat").read_text().rpartition(") ")[2].split()
            known[int(folder.name)] = int(fields[PARENT]), sum(map(int, fields[SPENT]))
    family = {process or os.getpid()}
    while grown := {pid for pid, (parent, _) in known.items() if parent in family} - family:
        family |= grown
    return sum(known[pid][1] for pid in family) / TICK


def process_seconds(pid: int) -> float:
    """Return the CPU time so far of another process that runs."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return sum(map(int, fields[SPENT][:2])) / TICK
