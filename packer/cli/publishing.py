"""The publishing of a command: a signal that comes later changes nothing on disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from packer.cli.loading import loading
from packer.cli.log import LOG

if TYPE_CHECKING:
    from readers.stores.store import Store


@contextmanager
def publishing(out: Path | Store) -> Iterator[None]:
    """Set `LOG.published` while the body publishes a generation of `out`.

    It is True after a normal end. If an error or a signal ends the body, the current manifest decides: the signal may
    come between the rename and the next line. It stays False if the store does not answer.
    """
    with loading():
        from packer.errors import BusyError
        from packer.publish.generation import current_manifest
        from readers.contract.errors import StoreBusyError, StoreError
    before = current_manifest(out)
    try:
        yield
        LOG.published = True
    except (BusyError, StoreBusyError):
        raise  # to ask a store that does not answer would take minutes, and hide this error
    except BaseException:
        with suppress(StoreError):
            LOG.published = current_manifest(out) != before
        raise
