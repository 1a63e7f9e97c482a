"""Dask distributed as an engine: `dask://HOST:PORT` is a scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from distributed import Client

from packer.engines.connect import Connection
from packer.errors import UnavailableError


@contextmanager
def connect_dask(address: str) -> Iterator[Connection]:
    """Connect to a scheduler. Dask's own retries are off, because `submit_all` tries again."""
    try:
        client: Any = Client(f"tcp://{address}", set_as_default=False)
    except (OSError, ValueError) as error:
        raise UnavailableError(f"dask://{address}: no scheduler answers ({error})") from error
    known = 0

    def slots() -> int:
        nonlocal known
        with suppress(OSError):  # the scheduler is away; the client connects again by itself
            known = sum(client.nthreads().values())
        return known

    with client:
        executor = client.get_executor(pure=False, retries=0)
        try:
            yield Connection(executor, slots)
        finally:
            executor.shutdown(wait=False)
