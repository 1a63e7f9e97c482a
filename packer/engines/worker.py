"""What runs in a worker process: JSON comes in, JSON goes out, until the parent ends it."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import resource
import signal
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from packer.engines.board import Board, Cells
from packer.engines.task import GlanceTask, ShardTask, error_answer, glance_answer, read_task, receipt_answer
from packer.glance import Glance, glance
from packer.shard import build_shard, decode_pieces

READY = ""
"""The first message of a worker: handed a task before, it would keep its parent waiting until it can read."""


def work(pipe: Connection, cells: Cells, raw: Path, out: Path | None) -> None:
    """Do the tasks that come through the pipe, with a thread per cell of the board."""
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent acts for it
    faulthandler.disable()  # a decoder's crash is the parent's to tell, in words and without a core file
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    board = Board(cells)
    with suppress(EOFError, OSError):  # of the pipe alone: the parent has no use for this worker any more
        pipe.send_bytes(READY.encode())
        while True:
            pipe.send_bytes(_answer(pipe.recv_bytes().decode(), raw, out, len(cells), board).encode())


def _exit_with_parent() -> None:
    """However the parent is killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _answer(text: str, raw: Path, out: Path | None, threads: int, board: Board) -> str:
    try:
        return _done(read_task(text), raw, out, threads, board)
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent tells it
        return error_answer(error)


def _done(task: ShardTask | GlanceTask, raw: Path, out: Path | None, threads: int, board: Board) -> str:
    if isinstance(task, GlanceTask):
        if task.condemned is not None:
            return glance_answer(Glance(bad=task.condemned))
        with board.at(0):
            return glance_answer(glance(task.question, raw))
    if task.places is not None:
        decode_pieces(task.spec, raw, task.places, 1, board.at)
        return receipt_answer(None)
    assert out is not None
    return receipt_answer(build_shard(task.spec, raw, out, threads, task.condemned, board.at))
