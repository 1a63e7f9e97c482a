"""The pin of a pack: while it exists, no build publishes another generation."""

from __future__ import annotations

from pathlib import Path

from packer.errors import PinnedError
from packer.publish.atomic import store_errors
from readers.contract.errors import DamagedError
from readers.stores.folder_store import store_of
from readers.stores.store import Store

PIN = "pinned"
_TEXT = "The current generation is pinned: packer build refuses to publish another one. Undo this with: packer unpin\n"


def is_pinned(out: Path | Store) -> bool:
    """Return whether the pack is pinned. The content of the file does not matter."""
    try:
        store_of(out).read(PIN)
    except FileNotFoundError:
        return False
    except DamagedError:  # a link, or a folder
        return True
    return True


@store_errors()
def pin(out: Path | Store) -> None:
    """Pin the current generation. The lock must be held."""
    if not is_pinned(out):
        store_of(out).put(PIN, _TEXT.encode())


@store_errors()
def unpin(out: Path | Store) -> bool:
    """Remove the pin, and return whether there was one. The lock must be held."""
    was_pinned = is_pinned(out)
    store_of(out).delete([PIN])
    return was_pinned


def check_pin(out: Path | Store) -> None:
    """Raise PinnedError if the pack is pinned."""
    if is_pinned(out):
        url = store_of(out).url
        raise PinnedError(
            f"{url}: is pinned to its current generation, so nothing was published; "
            f"to let builds publish again: packer unpin {url}"
        )
