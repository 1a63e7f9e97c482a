"""An opened packed data set: one generation's manifest, its mapped shard table, and the shards opened so far."""

from __future__ import annotations

import os
import sys
import threading
from bisect import bisect_right
from collections import OrderedDict
from itertools import accumulate
from pathlib import Path

from readers.checksums import check_files, read_receipt
from readers.contract.errors import DamagedError
from readers.contract.files import plain_file, sha256
from readers.contract.manifest import MANIFEST, SHARDS, Manifest, Split
from readers.contract.receipt import shard_stem
from readers.contract.shard_table import ShardTable, table_path
from readers.formats import opener, shard_paths
from readers.formats.column import ShardFacts, damage_at
from readers.formats.shard import Shard

MOST_OPEN_SHARDS = 4096 if sys.version_info >= (3, 13) else 128
"""Each open shard holds a map or two, before Python 3.13 also file descriptors, of which a process often has 1024."""


class Pack:
    """One generation of a packed data set. Opening reads one small file and maps another; shards open on first use."""

    def __init__(self, root: Path, manifest: Manifest, digests: bool = False, hold: object = None) -> None:
        self.root = root
        self._hold = hold  # kept as long as this is: it keeps the files in their place
        self.manifest = manifest
        self.table = ShardTable.open(root, manifest)
        self._split_ends = list(accumulate(split.shards for split in manifest.splits))
        self._digests = digests
        self._checked: set[int] = set()
        if digests and sha256(table_path(root, manifest.table)) != manifest.table:
            raise DamagedError(f"{table_path(root, manifest.table)}: its SHA-256 is not the one in the manifest")
        self._shards: OrderedDict[int, Shard] = OrderedDict()
        self._lock = threading.Lock()
        self._process = os.getpid()

    @classmethod
    def open(cls, root: Path, generation: int | None = None, digests: bool = False) -> Pack:
        """The current generation, or an earlier one that is still kept. With `digests`, every shard's files are held
        against their checksums before it is opened."""
        return cls(root, Manifest.load(root, generation), digests)

    def splits(self) -> list[tuple[Split, range, range]]:
        """Every split with the range of its shards and of its rows."""
        ranges = []
        shard = row = 0
        for split in self.manifest.splits:
            ranges.append((split, range(shard, shard + split.shards), range(row, row + split.rows)))
            shard += split.shards
            row += split.rows
        return ranges

    def split_of(self, shard: int) -> Split:
        """The split of a shard."""
        return self.manifest.splits[bisect_right(self._split_ends, shard)]

    def stem(self, shard: int) -> Path:
        """What the paths of a shard's files begin with."""
        return self.root / SHARDS / shard_stem(self.split_of(shard).name, self.table.fingerprint(shard))

    def shard(self, number: int) -> Shard:
        """A shard, opened when first needed. The least recently used are let go beyond MOST_OPEN_SHARDS."""
        if self._process != os.getpid():  # a fork inherits maps, which is fine, and perhaps a held lock, which is not
            self._lock, self._process = threading.Lock(), os.getpid()
        with self._lock:
            if number in self._shards:
                self._shards.move_to_end(number)
                return self._shards[number]
            self._shards[number] = shard = self._open(number)
            if len(self._shards) > MOST_OPEN_SHARDS:
                self._shards.popitem(last=False)
            return shard

    def _open(self, number: int) -> Shard:
        stem = self.stem(number)
        facts = ShardFacts(self.table.rows(number), self.manifest.fields)
        for path in shard_paths(self.manifest.storage)(stem, facts):
            with damage_at(path):
                plain_file(self.root, path)
        if self._digests and number not in self._checked:
            check_files(self.root, stem, read_receipt(self.root, stem, self.table.receipt(number)))
            self._checked.add(number)
        return opener(self.manifest.storage)(stem, facts)


def is_pack(root: Path) -> bool:
    """Whether a packed data set was published here."""
    return (root / MANIFEST).is_file()
