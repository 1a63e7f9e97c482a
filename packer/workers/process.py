"""A worker process as its parent sees it: started, given tasks, heard, watched, ended."""

from __future__ import annotations

import ctypes
import multiprocessing
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from packer.publish.atomic import remove_partials
from packer.publish.target import STAMPS
from packer.runtime import no_blas_threads
from packer.workers.heartbeat import Watch
from packer.workers.jobs import Case
from packer.workers.worker import OUT_OF_MEMORY, SETTLING, work
from readers.contract.manifest import SHARDS

HELD_BACK = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def warm_up() -> None:
    """Start the process that workers are forked from, so that it imports while this one does something else.

    It has no threads of its own, unlike this one, where OpenCV or pyarrow may have: a fork of those could hang.
    """
    multiprocessing.set_forkserver_preload(["packer.workers.worker"])
    resource_tracker.ensure_running()  # when it starts it lets signals through again, and the server would hear them
    with signals_held_back(), no_blas_threads():
        forkserver.ensure_running()


@contextmanager
def signals_held_back() -> Iterator[None]:
    """Ctrl-C and its like reach this thread a little later, and processes started meanwhile never: the parent acts for
    them."""
    signal.pthread_sigmask(signal.SIG_BLOCK, HELD_BACK)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_BACK)


class WorkerDiedError(Exception):
    """Heard from a worker instead of an answer."""


class Worker:
    """One worker process; `case` is what it is at. Without `out` it publishes nothing.

    `ready` for a task it is once it has spoken; `settling`, when it has decoded all and writes.
    """

    def __init__(self, raw: Path, out: Path | None, threads: int) -> None:
        warm_up()
        context = multiprocessing.get_context("forkserver")
        cells, pulse = context.RawArray(ctypes.c_uint64, threads), context.RawValue(ctypes.c_uint64)
        self.case: Case[Any] | None = None
        self.ready = self.settling = False
        self.watch = Watch(cells, pulse)
        self._out = out
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=work, args=(theirs, cells, pulse, raw, out), daemon=True)
        with theirs:
            self._process.start()

    @property
    def signs(self) -> tuple[Connection, int]:
        """What to wait on: an answer, or the end of the process."""
        return self._pipe, self._process.sentinel

    def give(self, case: Case[Any]) -> None:
        """Hand out the next task of a case."""
        self.case, self.ready = case, False
        self.watch.restart()
        with suppress(OSError):  # one that died idle tells so when it is heard
            self._pipe.send_bytes(case.task().encode())

    def hear(self) -> str:
        """What the worker says: an answer, READY, or SETTLING."""
        try:
            text = self._pipe.recv_bytes()
        except (EOFError, OSError) as error:
            raise WorkerDiedError from error
        self.settling = text == SETTLING.encode()
        self.ready = not self.settling
        return text.decode()

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> None:
        """Kill it, at whatever it is: published files are whole, and what is not published is removed."""
        self.kill()
        self._process.join()
        self._pipe.close()
        if self._out is not None and self._process.pid is not None:
            for folder in (SHARDS, STAMPS):
                remove_partials(self._out / folder, self._process.pid)

    def cause(self) -> str:
        """What a pair that was in work did, without anything that another death of the kind would not have."""
        code = self._process.exitcode or 0
        if code == OUT_OF_MEMORY:
            return "needs more memory than there is"
        if code >= 0:
            return f"ended the decoder (exit code {code})"
        if code == -signal.SIGKILL:
            return "had the decoder killed (SIGKILL), perhaps for want of memory"
        return f"crashed the decoder ({_signal_name(-code)})"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # the real-time signals have no names
        return f"signal {number}"
