"""A pack that is built for the first time: what is built of it so far, as a pack."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from packer.publish.next_manifest import remade_manifest
from readers.contract.errors import NoPackError
from readers.contract.live import BUILT, read_built
from readers.contract.manifest import LIVE, SHARDS, Manifest, is_pack
from readers.contract.receipt import shard_stem
from readers.contract.receipt_facts import AllReceipts
from readers.contract.shard_table import RECORD, ShardTable, table_header
from readers.contract.system import open_to_read
from readers.pack import Pack
from readers.stores.checksums import read_receipt


class PackSoFar(Pack):
    """The shards that are built of a pack, before it is published. It does not grow while it is open."""

    def __init__(self, root: Path) -> None:
        planned = Manifest.load(root / LIVE)
        receipts = _built(root, planned)
        if Manifest.load(root / LIVE) != planned:
            raise NoPackError(f"{root}: another build has just begun there; try again")
        if not receipts.rows:
            raise NoPackError(f"{root}: is being built, and no shard is finished yet; try again later")
        created = f"so far, {receipts.rows:,} of {planned.rows:,} rows"
        manifest, table = remade_manifest(replace(planned, created=created), receipts)
        records = np.frombuffer(table, RECORD, offset=len(table_header(len(receipts))))
        super().__init__(root, manifest, table=ShardTable(records))


def open_so_far(out: Path) -> Pack:
    """Open a pack, or what is built of it so far if it was never published."""
    return PackSoFar(out) if not is_pack(out) and is_pack(out / LIVE) else Pack.open(out)


def _built(root: Path, planned: Manifest) -> AllReceipts:
    """Read the receipts of all shards that are built."""
    receipts = AllReceipts()
    splits = [split.name for split in planned.splits for _ in range(split.shards)]
    try:
        file = open_to_read(root / LIVE / BUILT)
    except FileNotFoundError:  # a build begins there just now
        return receipts
    try:
        for number, split in enumerate(splits):
            shard = read_built(file, number)
            if shard is not None:
                stem = root / SHARDS / shard_stem(split, shard.fingerprint)
                receipts.add(number, read_receipt(root, stem, shard.receipt))
    finally:
        os.close(file)
    return receipts
