"""What runs in a worker process: JSON comes in, JSON goes out, until the parent ends it."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import resource
import threading
from multiprocessing.connection import Connection
from pathlib import Path

from packer.engines.board import Board, Cells
from packer.engines.task import Task, error_answer, receipt_answer
from packer.shard import build_shard, decode_pieces

READY = b""
"""The first message of a worker: handed a task before, it would keep its parent waiting until it can read."""


def work(pipe: Connection, cells: Cells, raw: Path, out: Path) -> None:
    """Do the tasks that come through the pipe, with a thread per cell of the board."""
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    faulthandler.disable()  # a decoder's crash is the parent's to tell, in words and without a core file
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    board = Board(cells)
    pipe.send_bytes(READY)
    while True:
        pipe.send_bytes(_answer(pipe.recv_bytes().decode(), raw, out, len(cells), board).encode())


def _exit_with_parent() -> None:
    """However the parent is killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _answer(text: str, raw: Path, out: Path, threads: int, board: Board) -> str:
    try:
        task = Task.from_text(text)
        if task.places is None:
            return receipt_answer(build_shard(task.spec, raw, out, threads, task.condemned, board.at))
        decode_pieces(task.spec, raw, task.places, 1, board.at)
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent tells it
        return error_answer(error)
    return receipt_answer(None)
