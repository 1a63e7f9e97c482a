"""What runs in a worker process: JSON comes in, JSON goes out, until the parent ends it."""

from __future__ import annotations

import errno
import faulthandler
import multiprocessing
import os
import resource
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import cv2

from packer.shards.build_shard import build_shard, decode_pieces
from packer.workers.heartbeat import Board, Cells, Pulse
from packer.workers.inspect import Glance, glance
from packer.workers.memory import Scratch, keep_memory
from packer.workers.messages import GlanceTask, ShardTask, error_answer, glance_answer, read_task, receipt_answer

READY = ""
"""The first message of a worker: handed a task before, it would keep its parent waiting until it can read."""
SETTLING = "settling"
"""That a worker has decoded its shard, and writes: another may decode while this one waits for the disk."""

OUT_OF_MEMORY = errno.ENOMEM
"""The exit code of a worker that has not the memory for a pair."""
BEAT = 0.5
"""Seconds from one sign of life to the next."""


@dataclass(frozen=True)
class _Kit:
    """What a worker works with, from one task to the next."""

    raw: Path
    out: Path | None
    threads: int
    board: Board
    settling: Callable[[], None]
    memory: Scratch


def work(pipe: Connection, cells: Cells, pulse: Pulse, raw: Path, out: Path | None) -> None:
    """Do the tasks that come through the pipe, with a thread per cell of the board."""
    threading.Thread(target=_live_with_parent, args=(pulse,), daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent acts for it
    faulthandler.disable()  # a decoder's crash is the parent's to tell, in words and without a core file
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    keep_memory()
    kit = _Kit(raw, out, len(cells), Board(cells), partial(pipe.send_bytes, SETTLING.encode()), Scratch())
    with suppress(EOFError, OSError):  # of the pipe alone: the parent has no use for this worker any more
        pipe.send_bytes(READY.encode())
        while True:
            text = pipe.recv_bytes().decode()
            pipe.send_bytes(_answer(text, kit).encode())


def _live_with_parent(pulse: Pulse) -> None:
    """Give signs of life, and end when the parent does, however it is killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    while parent.is_alive():
        pulse.value += 1
        parent.join(BEAT)
    os._exit(1)


@contextmanager
def _at(board: Board, place: int) -> Iterator[None]:
    """While a thread works on a pair. Without memory for it the worker dies at it, as by the kernel's hand: whether the
    pair is to blame, or those in work beside it, is found out like that of any death."""
    with board.at(place):
        try:
            yield
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        except cv2.error as error:
            if error.code == cv2.Error.StsNoMem:
                os._exit(OUT_OF_MEMORY)
            raise


def _answer(text: str, kit: _Kit) -> str:
    try:
        return _done(read_task(text), kit)
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent tells it
        return error_answer(error)


def _done(task: ShardTask | GlanceTask, kit: _Kit) -> str:
    watch = partial(_at, kit.board)
    if isinstance(task, GlanceTask):
        if task.condemned is not None:
            return glance_answer(Glance(bad=task.condemned))
        with watch(0):
            return glance_answer(glance(task.question, kit.raw))
    if task.places is not None:
        decode_pieces(task.spec, kit.raw, task.places, 1, watch, kit.memory)
        return receipt_answer(None)
    assert kit.out is not None
    return receipt_answer(
        build_shard(task.spec, kit.raw, kit.out, kit.threads, task.condemned, watch, kit.settling, kit.memory)
    )
