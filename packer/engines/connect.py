"""Connect to the engine that a URL names."""

from __future__ import annotations

from contextlib import AbstractContextManager

from packer.engines.engine import Connection
from packer.errors import UsageError


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
