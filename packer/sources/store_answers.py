"""`explained`: what a store that does not answer means for a build, and an object that is not there for a row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from packer.errors import BusyError, EngineError, LostFile
from readers.contract.errors import RequestError, StoreBusyError, StoreError

MISSING = "is not in the store any more"


@contextmanager
def explained() -> Iterator[None]:
    """Turn a store that does not answer into an error that ends the build: it says nothing about a row."""
    try:
        yield
    except FileNotFoundError as error:
        raise LostFile(MISSING) from error
    except RequestError:
        raise
    except StoreBusyError as error:
        raise BusyError(str(error)) from error
    except StoreError as error:
        raise EngineError(str(error)) from error
