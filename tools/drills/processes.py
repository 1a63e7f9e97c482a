"""The processes of a build: started in a session of their own, found in /proc, and gone when it has ended."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

PACKER = ("-m", "packer")


class Process(NamedTuple):
    """One that lives, as /proc tells."""

    number: int
    parent: int
    session: int
    command: str


def start(
    arguments: Sequence[object], program: Sequence[str] = PACKER, limit: Callable[[], None] | None = None
) -> subprocess.Popen[str]:
    """Start the packer as the first process of a session, perhaps limited in something."""
    return subprocess.Popen(
        [sys.executable, *program, *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=limit,
    )


def session(number: int) -> list[Process]:
    """Every process of a session that is not dead already."""
    return [one for path in Path("/proc").glob("[0-9]*") if (one := _read(path)) is not None and one.session == number]


def _read(path: Path) -> Process | None:
    try:
        state, parent, _, number = (path / "stat").read_text().rpartition(")")[2].split()[:4]
        command = (path / "cmdline").read_text()
    except OSError:  # it has ended
        return None
    return None if state in "ZX" else Process(int(path.name), int(parent), int(number), command)


def workers(build: subprocess.Popen[str]) -> list[int]:
    """The worker processes of a build: children of the server that they are forked from, which is a child of its."""
    there = session(build.pid)
    servers = {one.number for one in there if one.parent == build.pid}
    return [one.number for one in there if one.parent in servers and "forkserver" in one.command]


def orphans(number: int, seconds: float) -> list[Process]:
    """The processes of a session that are still there after so many seconds."""
    until = time.monotonic() + seconds
    while (left := session(number)) and time.monotonic() < until:
        time.sleep(0.02)
    return left
