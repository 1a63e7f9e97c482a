"""Count the cells of shards that are there, in threads of this process: older releases built them without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from packer.publish.target import sync_shards
from packer.shards.cell_files import write_cells
from packer.shards.stored_cells import counted_fields, stored_cells, without_cells
from readers.contract.errors import DamagedError
from readers.machine import usable_cores
from readers.pack import Pack


def add_cells(pack: Pack, shards: Sequence[int], advance: Callable[[int], object], workers: int) -> None:
    """Write the files of these shards of a pack in a folder. Raise DamagedError if one cannot be read."""

    def add(number: int) -> None:
        shard, fields = pack.shard(number), counted_fields(pack, number)
        write_cells(pack.root, pack.stem(number).name, {field: list(stored_cells(shard, field)) for field in fields})

    with ThreadPoolExecutor(workers) as pool:
        for number, _ in zip(shards, pool.map(add, shards), strict=True):
            advance(pack.table.rows(number))
    sync_shards(pack.root)


def add_missing_cells(out: Path) -> None:
    """Do the same for all shards of a pack that lack a file. A damaged one gets none: `packer verify` names it."""
    pack = Pack.open(out)
    with suppress(DamagedError):
        add_cells(pack, without_cells(pack), lambda rows: None, usable_cores())
