"""Connect to the engine that a URL names."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from packer.engines.engine import Engine
from packer.errors import UsageError


@dataclass(frozen=True)
class Connection:
    """An engine, and a function that counts how many tasks it can run at the same time now."""

    engine: Engine
    slots: Callable[[], int]


def connect(url: str) -> AbstractContextManager[Connection]:
    """Connect to an engine inside. Raise UsageError if the URL is not valid or a package is missing.

    Raise UnavailableError if no cluster answers.
    """
    scheme, _, address = url.partition("://")
    if not address or scheme not in ("dask", "ray"):
        raise UsageError(f"--engine {url}: expected dask://HOST:PORT, ray://HOST:PORT or ray://auto")
    try:
        if scheme == "dask":
            from packer.engines.dask_engine import connect_dask

            return connect_dask(address)
        from packer.engines.ray_engine import connect_ray

        return connect_ray(address)
    except ModuleNotFoundError as error:
        raise UsageError(f"--engine {url}: {error}; pip install 'segpack[{scheme}]'") from error
