"""`Worker`: the parent's side of a worker process."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any

from packer.publish.atomic import remove_partials
from packer.publish.target import STAMPS
from packer.sources.reopen import reader_of
from packer.workers.fork_server import start_fork_server, warn_of_preload
from packer.workers.heartbeat import HeartbeatMonitor
from packer.workers.jobs import Job
from packer.workers.tasks import NO_MEMORY
from packer.workers.worker import NOT_PRELOADED, OUT_OF_MEMORY, READY, SOURCE, WAITS, WRITING, work
from readers.contract.manifest import CELLS, SHARDS
from readers.stores.heard import tell_of_wait


@contextmanager
def _without_main() -> Iterator[None]:
    """Hide the program's main module from `multiprocessing`, which would run it again in every worker.

    So a script can call `build_pack` without `if __name__ == "__main__":`. The workers do not need that module.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


class WorkerCrashedError(Exception):
    """A worker process ended instead of sending an answer."""


class Worker:
    """One worker process; `job` is its current job.

    It is `ready` for a task once it has sent a message, and `writing` when it has decoded a shard and writes it.
    """

    def __init__(self, most_threads: int) -> None:
        start_fork_server()
        context = multiprocessing.get_context("forkserver")
        cells, pulse = context.RawArray(ctypes.c_uint64, most_threads), context.RawValue(ctypes.c_uint64)
        self._threads = context.RawValue(ctypes.c_uint64, 1)
        self.job: Job[Any] | None = None
        self._source = ""
        self.ready = self.writing = False
        self.heartbeat = HeartbeatMonitor(cells, pulse)
        self.pipe, theirs = context.Pipe()
        """Has a message, or the end of the file when the process has ended. The sentinel of multiprocessing would also
        be ready when the fork server has ended, while the worker lives on."""
        self._ended = False
        self._process = context.Process(
            target=work, args=(theirs, cells, pulse, self._threads, dict(os.environ)), daemon=True
        )
        try:
            with theirs, _without_main():
                self._process.start()
        except (EOFError, ConnectionError) as error:  # the fork server has just ended
            self.pipe.close()
            raise WorkerCrashedError from error

    @property
    def decoding(self) -> bool:
        """True if it has a job and is not waiting for the disk."""
        return self.job is not None and not self.writing

    def use_threads(self, threads: int) -> None:
        """Have the worker decode its shard in this number of threads from now on."""
        self._threads.value = threads

    def give(self, job: Job[Any]) -> None:
        """Send the next task of a job, and its source if the last job had another."""
        self.job, self.ready = job, False
        self.heartbeat.restart()
        with suppress(OSError):  # a worker that crashed while idle: `receive` will report it
            if job.source != self._source:
                self._source = job.source
                self.pipe.send_bytes(f"{SOURCE}{job.source}".encode())
            self.pipe.send_bytes(job.task().encode())

    def receive(self) -> str:
        """Return the worker's message: an answer, READY, WRITING or WAITS."""
        try:
            text = self.pipe.recv_bytes().decode()
        except (EOFError, OSError) as error:
            self._ended = isinstance(error, (EOFError, ConnectionError))  # else it sent what is not a message
            raise WorkerCrashedError from error
        if text == NOT_PRELOADED:
            warn_of_preload()
            text = READY
        if text.startswith(WAITS):
            seconds, _, why = text.removeprefix(WAITS).partition(" ")
            tell_of_wait(why, float(seconds))
            return WAITS
        self.writing = text == WRITING
        self.ready = not self.writing
        return text

    def kill(self) -> None:
        """Send SIGKILL, also after the end of the fork server, when `Process.kill` takes the worker for ended."""
        if not self._ended and self._process.pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(self._process.pid, signal.SIGKILL)

    def end(self) -> None:
        """Kill the process and remove its unfinished files. Published files are complete."""
        self.kill()
        self._wait_for_end()
        self._process.join()
        self.pipe.close()
        if self.job is not None and self.job.out is not None and self._process.pid is not None:
            for folder in (SHARDS, CELLS, STAMPS):
                remove_partials(self.job.out / folder, self._process.pid)

    def _wait_for_end(self) -> None:
        """Drop all messages until the process has closed its end of the pipe: it writes no more files."""
        with suppress(ConnectionError):
            while not self._ended:
                self._ended = not os.read(self.pipe.fileno(), 1 << 16)
        self._ended = True

    def cause(self) -> str:
        """Describe the crash, without details that differ between crashes of the same kind."""
        code = self._process.exitcode or 0
        if code == OUT_OF_MEMORY:
            return NO_MEMORY
        if code >= 0:
            return f"ended {self.reader} (exit code {code})"
        if code == -signal.SIGKILL:
            return f"had {self.reader} killed (SIGKILL), perhaps for want of memory"
        return f"crashed {self.reader} ({_signal_name(-code)})"

    @property
    def reader(self) -> str:
        """Name the reader of the rows of its job."""
        return reader_of(self._source)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # the real-time signals have no names
        return f"signal {number}"
