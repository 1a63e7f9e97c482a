"""The main function of a worker process: tasks come in through a pipe, answers go out, until the parent ends it."""

from __future__ import annotations

import errno
import faulthandler
import multiprocessing
import os
import resource
import signal
import sys
import threading
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection

from packer.workers.heartbeat import Heartbeat, Pulse, SharedCells
from packer.workers.memory import keep_memory
from packer.workers.tasks import TaskRunner
from readers.stores.heard import hear_of_waits

READY = ""
"""The first message of a worker. A task sent before it would block the parent until the worker can read."""
NOT_PRELOADED = "not preloaded"
"""The first message of a worker that had to import this module itself."""
SOURCE = "source:"
"""The start of a message with the text of a source, which the following tasks read. It has no answer."""
WRITING = "writing"
"""A worker has decoded its shard and writes: another one may decode while it waits for the disk."""
WAITS = "waits:"
"""The start of a message that a thread of a worker waits for a store: the most seconds, and why."""

OUT_OF_MEMORY = errno.ENOMEM
"""The exit code of a worker that has too little memory for a pair."""
BEAT = 0.5
"""Seconds from one pulse to the next."""
IMPORTED_BY = os.getpid()
"""The process that imported this module: the server that workers are forked from, unless its preload failed."""


def work(pipe: Connection, cells: SharedCells, pulse: Pulse, threads: Pulse, environment: dict[str, str]) -> None:
    """Do the tasks that come through the pipe, in as many threads as `threads` says, at most one per cell.

    The environment, such as credentials, is taken from the parent now. The fork server has an older one.
    """
    sending = threading.Lock()

    def send(text: str) -> None:
        with sending:  # a thread that waits for a store says so
            pipe.send_bytes(text.encode())

    os.environ.clear()
    os.environ.update(environment)
    heartbeat = Heartbeat(cells, pulse)
    threading.Thread(target=_live_with_parent, args=(heartbeat,), daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles it
    faulthandler.disable()  # the parent reports a decoder's crash, in one line and without a core file
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    _mute_libraries()
    keep_memory()
    tasks = TaskRunner(
        heartbeat.at,
        lambda index: os._exit(OUT_OF_MEMORY),
        partial(send, WRITING),
        lambda: threads.value,
    )
    hear_of_waits(lambda why, seconds: send(f"{WAITS}{seconds:.0f} {why}"))
    with suppress(EOFError, OSError):  # only the pipe raises these: the parent does not need this worker any more
        send(NOT_PRELOADED if os.getpid() == IMPORTED_BY else READY)
        while True:
            text = pipe.recv_bytes().decode()
            if text.startswith(SOURCE):
                tasks.use_source(text.removeprefix(SOURCE))
            else:
                send(tasks.run(text))


def _mute_libraries() -> None:
    """Let only Python write to stderr. libpng and OpenCV print warnings there that name no file."""
    with suppress(OSError):  # stderr is closed
        sys.stderr = os.fdopen(os.dup(2), "w", buffering=1, errors="backslashreplace")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for output in (1, 2):
        os.dup2(nowhere, output)
    if nowhere > 2:  # it is one of the two where these were closed
        os.close(nowhere)


def _live_with_parent(heartbeat: Heartbeat) -> None:
    """Beat as long as the parent lives, then exit, however the parent was killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    while parent.is_alive():
        heartbeat.beat()
        parent.join(BEAT)
    os._exit(1)
