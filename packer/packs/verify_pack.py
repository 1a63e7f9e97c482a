"""`verify_pack`: verify a pack in a folder or in a store."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from packer.packs.verify import Damage, verify
from packer.progress import Progress, no_progress
from readers.contract.manifest import Manifest
from readers.machine import usable_cores
from readers.stores.open_store import is_url


def verify_pack(
    out: str | PathLike[str],
    *,
    deep: bool = False,
    workers: int | None = None,
    scratch: str | PathLike[str] | None = None,
    progress: Progress = no_progress,
) -> list[Damage]:
    """Check every byte of the current generation of a pack; an empty list means that it is whole.

    With `deep`, every row is also read as in training. For a URL, as many shards as `workers` are below `scratch` at
    the same time, and paths are names below the URL. Raises NoPackError if `out` is not a pack, and DamagedError if its
    manifest cannot be read.
    """
    if is_url(out):
        from packer.packs.verify_stored import verify_stored  # a pack in a folder needs no store

        return verify_stored(out, workers or usable_cores(), progress, deep, None if scratch is None else Path(scratch))
    root = Path(out)
    with progress("verifying", Manifest.load(root).bytes, "B") as advance:
        return verify(root, workers or usable_cores(), advance, deep)
