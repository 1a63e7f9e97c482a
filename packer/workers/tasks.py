"""`TaskRunner`: runs one task after the other, in a worker process or in this one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import cv2

from packer.recipe.source import Source
from packer.shards.alike_heads import alike_heads
from packer.shards.build_shard import PairMark, build_shard, decode_pieces
from packer.shards.inspect import LabelCounts, inspect_pair
from packer.shards.measure import measure_rows
from packer.shards.scratch import Scratch
from packer.shards.threads import Threads, one_thread
from packer.sources.reopen import reopen
from packer.workers.memory import ColumnMemory
from packer.workers.messages import (
    HeadsTask,
    InspectTask,
    MeasureTask,
    ShardTask,
    error_answer,
    heads_answer,
    inspect_answer,
    measure_answer,
    read_task,
    shard_answer,
)
from readers.contract.manifest import SHARDS

NO_MEMORY = "needs more memory than there is"
"""The reason of a reject that needs too much memory."""


class NoMemoryError(Exception):
    """Memory ran out at the pair with this index."""

    def __init__(self, index: int) -> None:
        super().__init__(index)
        self.index = index


class TaskRunner:
    """Keeps the memory of a shard's columns from one task to the next.

    `mark(index)` is entered while a thread works on a pair. `no_memory(index)` is called if memory runs out at a
    pair, and `writing()` when a shard is decoded and its files are about to be written. `threads()` is the number of
    threads to decode a shard with; it may change while they do.
    """

    def __init__(
        self, mark: PairMark, no_memory: Callable[[int], None], writing: Callable[[], None], threads: Threads
    ) -> None:
        self._mark, self._no_memory, self._writing, self._threads = mark, no_memory, writing, threads
        self._memory = ColumnMemory()
        self._source_text = ""
        self._source: Source | None = None

    def use_source(self, text: str) -> None:
        """Read the following tasks from the source with this text. It is opened by the first of them."""
        if text != self._source_text:
            self._source_text, self._source = text, None

    def run(self, text: str) -> str:
        """Do the task of this message and return the message that answers it."""
        try:
            task = read_task(text)
            if self._source is None:
                self._source = reopen(self._source_text)
            if isinstance(task, InspectTask):
                return self._inspect(task, self._source)
            if isinstance(task, MeasureTask):
                cv2.setNumThreads(0)  # as for a shard
                return measure_answer(measure_rows(task.spec, task.others, self._source, self._marked))
            if isinstance(task, HeadsTask):
                return heads_answer(alike_heads(task.refs, self._source.heads(task.refs)))
            return self._shard(task, self._source)
        except NoMemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - the parent raises it
            return error_answer(error)

    def _inspect(self, task: InspectTask, source: Source) -> str:
        if task.crashed is not None:
            return inspect_answer(LabelCounts(bad=task.crashed))
        with self._marked(0):
            return inspect_answer(inspect_pair(task.request, source))

    def _shard(self, task: ShardTask, source: Source) -> str:
        out = Path(task.out)
        if task.indices is not None:
            with Scratch(out / SHARDS) as scratch:
                decode_pieces(task.spec, source, task.indices, one_thread, self._marked, self._memory, scratch)
            return shard_answer(None)
        return shard_answer(
            build_shard(
                task.spec,
                source,
                out,
                self._threads,
                task.crashed,
                self._marked,
                self._writing,
                self._memory,
                task.rewrite,
            )
        )

    @contextmanager
    def _marked(self, index: int) -> Iterator[None]:
        """Mark a pair. If memory runs out, it need not be to blame: pairs in other threads use memory, too."""
        with self._mark(index):
            try:
                yield
            except MemoryError as error:
                self._no_memory(index)
                raise NoMemoryError(index) from error
            except cv2.error as error:
                if error.code != cv2.Error.StsNoMem:
                    raise
                self._no_memory(index)
                raise NoMemoryError(index) from error
