"""A shard per worker process: no lock is shared, so this is the engine for many cores and many shards."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from multiprocessing.synchronize import Event
from pathlib import Path

from packer.errors import EngineError
from packer.shard import build_shard
from packer.spec import ShardSpec
from readers.contract.receipt import Receipt

Built = Generator[tuple[int, Receipt], None, None]
"""(number of the spec, receipt) as shards are done; closing it stops the rest."""


def in_processes(specs: Sequence[ShardSpec], raw: Path, out: Path, workers: int) -> Built:
    """Memory is a shard per worker: no more shards are handed out than workers can take up."""
    # spawn: a fork of a process with threads (OpenCV's, pyarrow's) may hang.
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker, initargs=(stop,))
    try:
        left = iter(enumerate(specs))
        running: dict[Future[str], int] = {}
        while True:
            for number, spec in islice(left, 2 * workers - len(running)):
                with _ctrl_c_held_back():  # workers are started here, and inherit it for good
                    running[pool.submit(_build, spec.to_text(), raw, out)] = number
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                number = running.pop(future)
                yield number, Receipt.from_text(future.result(), "a worker's receipt")
    except BrokenProcessPool as error:
        raise EngineError(
            "a worker process was killed, perhaps for want of memory; try fewer --workers or a smaller --shard-size"
        ) from error
    finally:
        stop.set()
        try:
            pool.shutdown(cancel_futures=True)
        except KeyboardInterrupt:  # the second Ctrl-C: leave at once; the workers see that their parent is gone
            os._exit(130)


@contextmanager
def _ctrl_c_held_back() -> Iterator[None]:
    """Ctrl-C reaches this thread a little later, and processes started meanwhile never: the parent acts for them."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


_stop: Event | None = None
"""In a worker: set when shards that were handed out but not begun are not wanted any more."""


def _start_worker(stop: Event) -> None:
    """In a worker, first of all: see to it that it goes when its parent goes, however that is killed."""
    global _stop  # how an initializer hands something to the tasks of its process
    _stop = stop
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _build(spec: str, raw: Path, out: Path) -> str:
    """In a worker: JSON comes in, JSON goes out."""
    if _stop is not None and _stop.is_set():
        raise EngineError("the build was stopped")
    return build_shard(ShardSpec.from_text(spec), raw, out).to_text()
