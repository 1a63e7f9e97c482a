"""An opened packed data set: one generation's manifest, its mapped shard table, and the shards opened so far."""

from __future__ import annotations

import os
import sys
import threading
from collections import OrderedDict
from pathlib import Path

from readers.contract.manifest import MANIFEST, SHARDS, Manifest, Split
from readers.contract.receipt import shard_stem
from readers.contract.table import ShardTable
from readers.formats import opener
from readers.formats.column import ShardFacts
from readers.formats.shard import Shard

MOST_OPEN_SHARDS = 4096 if sys.version_info >= (3, 13) else 128
"""Each open shard holds a map or two, before Python 3.13 also file descriptors, of which a process often has 1024."""


class Pack:
    """One generation of a packed data set. Opening reads one small file and maps another; shards open on first use."""

    def __init__(self, root: Path, manifest: Manifest) -> None:
        self.root = root
        self.manifest = manifest
        self.table = ShardTable.open(root, manifest)
        self._shards: OrderedDict[int, Shard] = OrderedDict()
        self._lock = threading.Lock()
        self._process = os.getpid()

    @classmethod
    def open(cls, root: Path, generation: int | None = None) -> Pack:
        """The current generation, or an earlier one that is still kept."""
        return cls(root, Manifest.load(root, generation))

    def splits(self) -> list[tuple[Split, range, range]]:
        """Every split with the range of its shards and of its rows."""
        ranges = []
        shard = row = 0
        for split in self.manifest.splits:
            ranges.append((split, range(shard, shard + split.shards), range(row, row + split.rows)))
            shard += split.shards
            row += split.rows
        return ranges

    def stem(self, shard: int) -> Path:
        """What the paths of a shard's files begin with."""
        split = next(split for split, shards, _ in self.splits() if shard in shards)
        return self.root / SHARDS / shard_stem(split.name, self.table.fingerprint(shard))

    def shard(self, number: int) -> Shard:
        """A shard, opened when first needed. The least recently used are let go beyond MOST_OPEN_SHARDS."""
        if self._process != os.getpid():  # a fork inherits maps, which is fine, and perhaps a held lock, which is not
            self._lock, self._process = threading.Lock(), os.getpid()
        with self._lock:
            if number in self._shards:
                self._shards.move_to_end(number)
                return self._shards[number]
            facts = ShardFacts(self.table.rows(number), self.manifest.fields)
            self._shards[number] = shard = opener(self.manifest.storage)(self.stem(number), facts)
            if len(self._shards) > MOST_OPEN_SHARDS:
                self._shards.popitem(last=False)
            return shard


def is_pack(root: Path) -> bool:
    """Whether a packed data set was published here."""
    return (root / MANIFEST).is_file()
