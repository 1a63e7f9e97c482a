"""`Station`: builds the shards of tasks, one after the other, in a pool of one worker process."""

from __future__ import annotations

from contextlib import ExitStack

from packer.engines.task import MOST_REJECTS, Answer, BuiltShard, Refused, Task, answer_of, host_of
from packer.workers.pool import Pool
from packer.workers.run import open_pool
from packer.workers.stored_plan import OpenBuild, open_build
from readers.contract.receipt import Receipt


class Station:
    """Builds one shard after the other. It keeps the plan, OUT and the pool of the last one."""

    def __init__(self, worker: str) -> None:
        self._worker = worker
        """The name of the engine's worker that has this station."""
        self._opened: tuple[tuple[str, str, str | None, str], OpenBuild] | None = None
        self._builds, self._pools = ExitStack(), ExitStack()
        self._pool: tuple[int, Pool] | None = None

    def close(self) -> None:
        """End the worker."""
        self._pools.close()
        self._builds.close()

    def answer(self, text: str) -> Answer:
        """Build the shard that a task names."""
        try:
            task = Task.from_text(text)
            opened = self._open(task)
            if opened.planned.refusal is not None:
                return Refused(f"{host_of(self._worker)} {opened.planned.refusal}")
            return _built(opened.build(task.shard, self._pool_of(task.task_timeout)), self._worker)
        except Exception as error:  # noqa: BLE001 - the coordinator decides what to do
            return answer_of(error, self._worker)

    def _open(self, task: Task) -> OpenBuild:
        key = task.plan, task.sha256, task.raw, task.out
        if self._opened is None or self._opened[0] != key:
            self._opened = None
            self._builds.close()
            self._opened = key, self._builds.enter_context(open_build(*key))
        return self._opened[1]

    def _pool_of(self, task_timeout: int) -> Pool:
        if self._pool is None or self._pool[0] != task_timeout:
            self._pools.close()
            self._pool = task_timeout, self._pools.enter_context(open_pool(1, task_timeout))
        return self._pool[1]


def _built(receipt: Receipt, worker: str) -> BuiltShard:
    rejects = tuple((f"{receipt.split}/{reject.key}", reject.reason) for reject in receipt.rejects[:MOST_REJECTS])
    return BuiltShard(
        receipt.fingerprint, receipt.digest, receipt.rows, len(receipt.rejects), rejects, receipt.bytes, worker
    )
