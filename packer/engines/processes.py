"""A shard per worker process: no lock is shared, so this is the engine for many cores and many shards."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from pathlib import Path

from packer.errors import EngineError
from packer.shard import build_shard
from packer.spec import ShardSpec
from readers.contract.receipt import Receipt


def in_processes(specs: Sequence[ShardSpec], raw: Path, out: Path, workers: int) -> Iterator[tuple[int, Receipt]]:
    """Memory is a shard per worker: no more shards are handed out than workers can take up."""
    # spawn: a fork of a process with threads (OpenCV's, pyarrow's) may hang.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_leave_ctrl_c_to_the_parent)
    try:
        left = iter(enumerate(specs))
        running: dict[Future[str], int] = {}
        while True:
            for number, spec in islice(left, 2 * workers - len(running)):
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
        pool.shutdown(cancel_futures=True)


def _leave_ctrl_c_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _build(spec: str, raw: Path, out: Path) -> str:
    """In the worker: JSON comes in, JSON goes out."""
    return build_shard(ShardSpec.from_text(spec), raw, out).to_text()
