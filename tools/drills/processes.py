"""Processes of a build: start them in a session of their own, find them in /proc, check that they have ended."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

PACKER = ("-m", "packer")


def default_signals() -> None:
    """Undo what nohup and `&` do: in a child, SIGHUP and SIGINT end the process again. For `preexec_fn`."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


class Process(NamedTuple):
    """A live process, read from /proc."""

    number: int
    parent: int
    session: int
    command: str


def start(
    arguments: Sequence[object], program: Sequence[str] = PACKER, limit: Callable[[], None] | None = None
) -> subprocess.Popen[str]:
    """Start the packer as the first process of a session. `limit` runs in it first, for example to set a limit."""

    def prepare() -> None:
        default_signals()
        if limit is not None:
            limit()

    return subprocess.Popen(
        [sys.executable, *program, *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=prepare,
    )


def alive() -> list[Process]:
    """Return every live process."""
    return [process for process in map(_read, Path("/proc").glob("[0-9]*")) if process is not None]


def session(number: int) -> list[Process]:
    """Return every live process of a session."""
    return [process for process in alive() if process.session == number]


def _read(path: Path) -> Process | None:
    try:
        state, parent, _, number = (path / "stat").read_text().rpartition(")")[2].split()[:4]
        command = (path / "cmdline").read_text(errors="replace")
    except OSError:  # it has ended
        return None
    return None if state in "ZX" else Process(int(path.name), int(parent), int(number), command)


def below(numbers: Sequence[int]) -> list[int]:
    """Return the live processes that these have started, and those that they have started, parents first."""
    processes, found = alive(), list(numbers)
    for number in found:  # it grows
        found += [process.number for process in processes if process.parent == number]
    return found[len(numbers) :]


def builder_of(part: str, out: Path) -> int | None:
    """Return the process that builds a part such as 2/6 of a plan into a folder, if one runs."""
    option, last = f"\0--part\0{part}\0", f"\0{out}\0"
    return next((each.number for each in alive() if option in each.command and each.command.endswith(last)), None)


def workers(build: subprocess.Popen[str]) -> list[int]:
    """Return the worker processes of a build. They are children of the fork server, a child of the build."""
    processes = session(build.pid)
    children = {process.number for process in processes if process.parent == build.pid}
    return [process.number for process in processes if process.parent in children and "forkserver" in process.command]


def servers(build: subprocess.Popen[str]) -> list[int]:
    """Return the fork server of a build."""
    return [
        process.number
        for process in session(build.pid)
        if process.parent == build.pid and "forkserver" in process.command
    ]


def orphans(number: int, seconds: float) -> list[Process]:
    """Return the processes of a session that are still alive after `seconds`."""
    until = time.monotonic() + seconds
    while (left := session(number)) and time.monotonic() < until:
        time.sleep(0.02)
    return left
