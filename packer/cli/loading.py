"""Load what a command needs when it runs, so that `--help`, `--version` and completion import no library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from packer.cli.log import log_wait
from packer.runtime import no_blas_threads, no_collecting
from packer.signals import ending_at_once


@contextmanager
def loading(workers: bool = False) -> Iterator[None]:
    """Import inside what a command needs. Nothing has begun, so a signal ends the process at once.

    From then on, a wait for a store is logged.

    For a command that needs `workers`, the server that they are forked from starts now: it imports at the same time.
    """
    with ending_at_once(), no_blas_threads(), no_collecting():
        if workers:
            from packer.workers.fork_server import start_fork_server

            start_fork_server()
        yield
        from readers.stores.heard import hear_of_waits

        hear_of_waits(log_wait)
