"""`packer index`: write the files of cells that a pack of an older release lacks."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from packer.errors import UsageError
from packer.packs.generations import check_pack
from packer.progress import Progress, no_progress
from packer.publish.lock import locked
from packer.publish.target import tidy
from packer.shards.stored_cells import damaged_cells, without_cells
from packer.workers.add_cells import add_cells
from readers.machine import usable_cores
from readers.pack import Pack
from readers.stores.open_store import is_url


def index_pack(
    out: str | PathLike[str],
    *,
    again: bool = False,
    workers: int | None = None,
    progress: Progress = no_progress,
) -> int:
    """Count the classes of each cell of the current generation of a pack, and return how many shards were counted.

    `loader(crop=RandomCrop(..., holds=...))` draws by these counts. Shards that have whole files are left alone, so a
    killed run goes on where it was; with `again` all are counted. Readers of the pack are not disturbed. Raises
    UsageError for a URL, DamagedError if a row cannot be read, BusyError if another process is changing the pack.
    """
    if is_url(out):
        raise UsageError(
            f"{out}: packer index counts in a folder; packer pull {out} OUT, packer index OUT, packer push"
        )
    root = Path(out)
    check_pack(root)  # a folder that is not a pack gets no lock file
    with locked(root):
        tidy(root)
        pack = Pack.open(root)
        shards = list(range(len(pack.table))) if again else [*without_cells(pack), *damaged_cells(pack)]
        with progress("counting", sum(map(pack.table.rows, shards)), "rows") as advance:
            add_cells(pack, shards, advance, workers or usable_cores())
        return len(shards)
