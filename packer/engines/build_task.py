"""`build_task`: what an engine runs in its worker. It passes the task to a station, and returns the answer.

Nothing is imported here that decodes. Stations are kept: as many as tasks ran at the same time in this process.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from packer.engines.task import Failed, Task, answer_text, host_of, worker_text

STATION = "packer.engines.run_station"
LONGEST_END = 10.0
"""Seconds that a station may take to end."""
FAILED = '{"failed": '
"""The beginning of an answer that is a failure."""
LONGEST_WAIT = 4.0
"""The most seconds that a failure is kept back."""
_idle: list[_Station] = []
_failures = 0
"""The failures of this worker in a row."""
_lock = threading.Lock()


class StationEndedError(Exception):
    """The process that builds has ended. A positive code is its own, as when a library is missing."""

    def __init__(self, code: int) -> None:
        super().__init__(f"the station ended (exit code {code}); see the worker's log")
        self.is_own = code > 0


class _Station:
    """The parent's side of a station."""

    def __init__(self, worker: str) -> None:
        command = [sys.executable, "-m", STATION, worker]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_environment()
        )

    @property
    def lives(self) -> bool:
        return self._process.poll() is None

    def ask(self, task: str) -> str:
        """Return the answer to a task. Raises StationEndedError if the station ends instead."""
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
            raise StationEndedError(code)
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


def build_task(text: str, worker: str = "") -> str:
    """Build the shard that a task names, in the worker with this name. Return the answer as text.

    Threads may call it at the same time.
    """
    worker = worker or worker_text(os.getpid())
    task = Task.from_text(text).to_text()  # one line, whatever was sent
    station = _take(worker)
    try:
        answer = station.ask(task)
    except StationEndedError as error:
        return _kept_back(answer_text(Failed(f"{host_of(worker)}: {error}", worker, not error.is_own)))
    except BaseException:
        station.end()
        raise
    with _lock:
        _idle.append(station)
    return _kept_back(answer)


def _kept_back(answer: str) -> str:
    """Return an answer. Failures in a row come later and later: a scheduler gives tasks to who is done at once."""
    global _failures
    with _lock:
        _failures = _failures + 1 if answer.startswith(FAILED) else 0
        wait = wait_after(_failures)
    time.sleep(wait)
    return answer


def wait_after(failures: int) -> float:
    """Return the seconds that a failure is kept back: none for the first, then 1, 2, 4, 4 …"""
    return min(LONGEST_WAIT, 2.0 ** min(failures - 2, 10)) if failures > 1 else 0.0


def _take(worker: str) -> _Station:
    """Return an idle station, or start one for this worker."""
    while True:
        with _lock:
            station = _idle.pop() if _idle else None
        if station is None:
            return _Station(worker)
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
