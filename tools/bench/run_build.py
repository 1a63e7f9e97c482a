"""A build in a process of its own: its time, the CPU time of its workers, and the memory of all its processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drills.processes import session

INTERVAL, MEMORY_INTERVAL = 0.1, 0.01
"""Seconds between two samples of CPU time, and of memory, which comes and goes faster."""


@dataclass(frozen=True)
class BuildRun:
    """Figures of a build. `cpu` is of the workers. `memory` is the peak of all processes together, in bytes, with
    shared pages counted once."""

    seconds: float
    cpu: float
    memory: int
    answer: dict[str, Any]

    @property
    def build_seconds(self) -> float:
        """The time from the first shard that is handed out to the last receipt."""
        return float(self.answer["stages"]["build"])


@dataclass
class _Samples:
    """The latest CPU time of each worker, in ticks, and the peak memory of all processes."""

    ticks: dict[int, int] = field(default_factory=dict)
    memory: int = 0

    def sample(self, session_id: int, memory: bool) -> None:
        """Sample all processes of a session. To count memory slows them down a little."""
        processes = session(session_id)
        servers = {process.number for process in processes if process.parent == session_id}
        workers = [process.number for process in processes if process.parent in servers]
        self.ticks |= {number: ticks for number in workers if (ticks := _ticks(number))}
        if memory:
            self.memory = max(self.memory, sum(_memory(process.number) for process in processes))


def run_build(arguments: Sequence[object], memory: bool = False) -> BuildRun:
    """Run a command of the packer with --json to its end."""
    started, samples = time.perf_counter(), _Samples()
    command = [sys.executable, "-m", "packer", *map(str, arguments), "--json", "--quiet"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        threading.Thread(target=_sample, args=(process, samples, memory), daemon=True).start()
        out, err = process.communicate()
        seconds = time.perf_counter() - started
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: {err[-2000:]}")
    return BuildRun(seconds, sum(samples.ticks.values()) / os.sysconf("SC_CLK_TCK"), samples.memory, json.loads(out))


def _sample(process: subprocess.Popen[str], samples: _Samples, memory: bool) -> None:
    while process.poll() is None:
        samples.sample(process.pid, memory)
        time.sleep(MEMORY_INTERVAL if memory else INTERVAL)


def _memory(number: int) -> int:
    """Return the proportional memory (PSS) of a process in bytes."""
    try:
        text = Path(f"/proc/{number}/smaps_rollup").read_text(encoding="ascii")
    except OSError:  # it has ended
        return 0
    return sum(int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith("Pss:"))


def _ticks(number: int) -> int:
    """Return the CPU time of a process in ticks of the kernel."""
    try:
        user, system = Path(f"/proc/{number}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[11:13]
    except OSError:  # it has ended
        return 0
    return int(user) + int(system)
