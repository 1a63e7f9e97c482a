"""Dask distributed as an engine: `dask://HOST:PORT` is a scheduler."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any

from distributed import Client, get_worker

from packer.engines.engine import Build, Connection
from packer.engines.task import id_of, worker_text
from packer.errors import UnavailableError

CONTINUE = "nothing was published; the same command continues with the shards that are there"


class DaskEngine:
    """Gives tasks to a client of Dask. Dask's own retries are off, because `submit_all` tries again.

    A worker sends its answer as an event, through the stream that later reports the end of the task. To ask for the
    result costs more round trips, to the scheduler and from there to the worker: 40 % of the CPU time of a task that
    does nothing. The result is asked for only if the event was lost, for example because the scheduler was away.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._topic = f"segpack-{secrets.token_hex(8)}"
        self._answers: dict[str, str] = {}
        self._pending: dict[Any, list[str] | None] = {}
        """The tasks that have not finished, with the workers that may have each; None means all."""
        self._avoided = set[str]()
        self.threads: dict[str, int] = {}
        """The threads of each worker when they were counted."""
        client.subscribe_topic(self._topic, self._keep)

    def submit(self, build: Build, task: str, /) -> Future[str]:
        future: Future[str] = Future()
        workers = [worker for worker in self.threads if worker not in self._avoided] if self._avoided else None
        sent = self._client.submit(_build, build, task, self._topic, pure=False, retries=0, workers=workers or None)
        self._pending[sent] = workers or None
        sent.add_done_callback(lambda done: self._finish(done, future))
        return future

    def avoid(self, worker: str) -> None:
        self._avoided.add(id_of(worker))

    def slots(self) -> int:
        """Count the threads of the workers that get tasks. Take back tasks whose workers have all left."""
        with suppress(OSError):  # the scheduler is away; the client connects again by itself
            self.threads = self._client.nthreads()
        left = [
            task for task, workers in list(self._pending.items()) if workers and self.threads.keys().isdisjoint(workers)
        ]
        if left:
            self._client.cancel(left)
        return sum(threads for worker, threads in self.threads.items() if worker not in self._avoided)

    def shutdown(self, wait: bool = True) -> None:
        """Have the scheduler forget the tasks that have not finished."""
        if is_closed(self._client):
            return
        self._client.unsubscribe_topic(self._topic)
        if not wait:
            self._client.cancel(list(self._pending))

    def _keep(self, event: tuple[float, tuple[str, str]]) -> None:
        _, (key, answer) = event
        self._answers[key] = answer

    def _finish(self, done: Any, future: Future[str]) -> None:
        """Pass on an answer or an error. Dask calls this in a thread of its own."""
        self._pending.pop(done, None)
        answer = self._answers.pop(done.key, None)
        try:
            future.set_result(done.result() if answer is None or done.status != "finished" else answer)
        except BaseException as error:  # noqa: BLE001 - engines raise what they like
            future.set_exception(error)


def _build(build: Build, task: str, topic: str) -> str:
    """Run a task in a worker of Dask, and send its answer."""
    worker = get_worker()
    answer = build(task, worker_text(worker.address))
    worker.log_event(topic, (worker.get_current_task(), answer))
    return answer


def is_closed(client: Any) -> bool:
    """Return whether a client has given up on its scheduler. What it had submitted never ends."""
    return client.status in ("closing", "closed")


@contextmanager
def connect_dask(address: str) -> Iterator[Connection]:
    """Connect to a scheduler."""
    try:
        client: Any = Client(f"tcp://{address}", set_as_default=False)
    except (OSError, ValueError) as error:
        raise UnavailableError(f"dask://{address}: no scheduler answers ({error})") from error
    with client:
        engine = DaskEngine(client)

        def slots() -> int:
            if is_closed(client):
                raise UnavailableError(f"dask://{address}: the scheduler went away and did not come back; {CONTINUE}")
            return engine.slots()

        try:
            yield Connection(engine, slots, lambda: engine.threads)
        finally:
            engine.shutdown(wait=False)
