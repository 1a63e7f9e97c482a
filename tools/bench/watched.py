"""A build that is run and watched: its time, the processors' time, and the memory of all its processes together."""

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

LOOK, CLOSE_LOOK = 0.1, 0.01
"""Seconds from one look to the next; memory comes and goes faster."""


@dataclass(frozen=True)
class Run:
    """What a build did. `cpu` is the processors' time for its workers; `memory` is the most that all its processes had
    at a time, with shared pages counted once."""

    seconds: float
    cpu: float
    memory: int
    answer: dict[str, Any]

    @property
    def build_seconds(self) -> float:
        """From the first shard that is handed out to the last receipt."""
        return float(self.answer["stages"]["build"])


@dataclass
class _Seen:
    """The processor time of each process when it was last looked at, and the most memory of all."""

    ticks: dict[int, int] = field(default_factory=dict)
    memory: int = 0

    def look(self, number: int, memory: bool) -> None:
        """At a session. Counting memory holds its processes up a little."""
        there = session(number)
        servers = {one.number for one in there if one.parent == number}
        workers = [one.number for one in there if one.parent in servers]
        self.ticks |= {one: ticks for one in workers if (ticks := _ticks(one))}
        if memory:
            self.memory = max(self.memory, sum(_memory(one.number) for one in there))


def watched(arguments: Sequence[object], memory: bool = False) -> Run:
    """Run the packer with --json to its end."""
    started, seen = time.perf_counter(), _Seen()
    command = [sys.executable, "-m", "packer", *map(str, arguments), "--json", "--quiet"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        threading.Thread(target=_watch, args=(process, seen, memory), daemon=True).start()
        out, err = process.communicate()
        seconds = time.perf_counter() - started
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: {err[-2000:]}")
    return Run(seconds, sum(seen.ticks.values()) / os.sysconf("SC_CLK_TCK"), seen.memory, json.loads(out))


def _watch(process: subprocess.Popen[str], seen: _Seen, memory: bool) -> None:
    while process.poll() is None:
        seen.look(process.pid, memory)
        time.sleep(CLOSE_LOOK if memory else LOOK)


def _memory(number: int) -> int:
    """Bytes of a process, its part of what it shares."""
    try:
        text = Path(f"/proc/{number}/smaps_rollup").read_text(encoding="ascii")
    except OSError:  # it has ended
        return 0
    return sum(int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith("Pss:"))


def _ticks(number: int) -> int:
    """How long the processors worked for a process, in the kernel's ticks."""
    try:
        user, system = Path(f"/proc/{number}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[11:13]
    except OSError:  # it has ended
        return 0
    return int(user) + int(system)
