"""A worker process as its parent sees it: started, given tasks, heard, watched, ended."""

from __future__ import annotations

import ctypes
import multiprocessing
import signal
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from packer.engines.board import Watch
from packer.engines.case import Case
from packer.engines.task import read_answer
from packer.engines.worker import READY, work
from packer.publish import remove_partials
from readers.contract.manifest import SHARDS
from readers.contract.receipt import Receipt


class WorkerDiedError(Exception):
    """Heard from a worker instead of an answer."""


class Worker:
    """One worker process; `case` is the shard that it is at."""

    def __init__(self, raw: Path, out: Path, threads: int) -> None:
        # spawn: a fork of a process with threads (OpenCV's, pyarrow's) may hang.
        context = multiprocessing.get_context("spawn")
        cells = context.RawArray(ctypes.c_uint64, threads)
        self.case: Case | None = None
        self.ready = False
        self.watch = Watch(cells)
        self._shards = out / SHARDS
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=work, args=(theirs, cells, raw, out), daemon=True)
        with theirs:
            self._process.start()

    @property
    def signs(self) -> tuple[Connection, int]:
        """What to wait on: an answer, or the end of the process."""
        return self._pipe, self._process.sentinel

    def give(self, case: Case) -> None:
        """Hand out the next task of a shard."""
        self.case, self.ready = case, False
        self.watch.restart()
        with suppress(OSError):  # one that died idle tells so when it is heard
            self._pipe.send_bytes(case.task().to_text().encode())

    def hear(self) -> Receipt | None:
        """What the worker says: a receipt, or nothing but that it is ready for more. Its errors are raised here."""
        try:
            text = self._pipe.recv_bytes()
        except (EOFError, OSError) as error:
            raise WorkerDiedError from error
        self.ready = True
        return None if text == READY else read_answer(text.decode())

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> None:
        """Kill it, at whatever it is: published files are whole, and what is not published is removed."""
        self.kill()
        self._process.join()
        self._pipe.close()
        if self._process.pid is not None:
            remove_partials(self._shards, self._process.pid)

    def cause(self) -> str:
        """What a pair that was in work did, without anything that another death of the kind would not have."""
        code = self._process.exitcode or 0
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
