"""`build_task`: what an engine runs in its worker. It passes the task to a station, and returns the answer.

Nothing is imported here that decodes. Stations are kept: as many as tasks ran at the same time in this process.
"""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

from packer.engines.task import Task
from packer.errors import EngineError

STATION = "packer.engines.station"
LONGEST_END = 10.0
"""Seconds that a station may take to end."""
_idle: list[_Station] = []
_lock = threading.Lock()


class _Station:
    """The parent's side of a station."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", STATION]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_environment()
        )

    @property
    def lives(self) -> bool:
        return self._process.poll() is None

    def ask(self, task: str) -> str:
        """Return the answer to a task. Raises EngineError if the station ends instead."""
        pipe_in, pipe_out = self._process.stdin, self._process.stdout
        assert pipe_in is not None
        assert pipe_out is not None
        try:
            pipe_in.write(f"{task}\n")
            pipe_in.flush()
            answer = pipe_out.readline()
        except OSError:
            answer = ""
        if not answer.endswith("\n"):
            self.end()
            code = self._process.returncode
            raise EngineError(f"{socket.gethostname()}: the station ended (exit code {code}); see the worker's log")
        return answer.strip()

    def end(self) -> None:
        """Close its pipes, so that it ends, and wait. One that does not end is killed."""
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):  # no process reads what was left to write
                if pipe is not None:
                    pipe.close()
        try:
            self._process.wait(LONGEST_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _environment() -> dict[str, str]:
    """The environment of this process, in which a station finds the modules that this process finds.

    The program that started the worker may have changed `sys.path`, for example with a preload script.
    """
    paths = (str(Path(path).absolute()) for path in sys.path)
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if os.pathsep not in path)}


def build_task(text: str) -> str:
    """Build the shard that a task names, and return the answer as text. Threads may call it at the same time."""
    task = Task.from_text(text).to_text()  # one line, whatever was sent
    station = _take()
    try:
        answer = station.ask(task)
    except BaseException:
        station.end()
        raise
    with _lock:
        _idle.append(station)
    return answer


def _take() -> _Station:
    """Return an idle station, or start one."""
    while True:
        with _lock:
            station = _idle.pop() if _idle else None
        if station is None:
            return _Station()
        if station.lives:
            return station
        station.end()


@atexit.register
def end_stations() -> None:
    """End the idle stations of this process."""
    with _lock:
        stations, _idle[:] = list(_idle), []
    for station in stations:
        station.end()
