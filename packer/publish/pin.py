"""The pin of a pack: as long as it is there, no build publishes another generation."""

from __future__ import annotations

from pathlib import Path

from packer.errors import PinnedError
from packer.publish.atomic import target_errors, write_atomic
from readers.contract.atomic import sync_folder

PIN = "pinned"
_TEXT = "The current generation is pinned: packer build refuses to publish another one. Undo this with: packer unpin\n"


def is_pinned(out: Path) -> bool:
    """Return whether the pack is pinned. The content of the file does not matter."""
    return (out / PIN).exists() or (out / PIN).is_symlink()


def pin(out: Path) -> None:
    """Pin the current generation. The lock must be held."""
    if not is_pinned(out):
        write_atomic(out / PIN, _TEXT)


def unpin(out: Path) -> bool:
    """Remove the pin, and return whether there was one. The lock must be held."""
    there = is_pinned(out)
    with target_errors(out / PIN):
        (out / PIN).unlink(missing_ok=True)
        sync_folder(out)
    return there


def check_pin(out: Path) -> None:
    """Raise PinnedError if the pack is pinned."""
    if is_pinned(out):
        raise PinnedError(
            f"{out}: is pinned to its current generation, so nothing was published; "
            f"to let builds publish again: packer unpin {out}"
        )
