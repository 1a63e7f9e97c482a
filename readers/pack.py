"""`Pack`: an opened packed data set: a generation's manifest, its mapped shard table, and the shards opened so far."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from readers.contract.errors import DamagedError, RequestError, VersionError
from readers.contract.fields import IMAGE, LABEL, READABLE, Field
from readers.contract.files import plain_file, sha256
from readers.contract.folds import TRAIN, VAL, fold_numbers
from readers.contract.kinds import PICTURE
from readers.contract.manifest import ALL, SHARDS, Manifest, Split, generation_path
from readers.contract.place import Place
from readers.contract.receipt import Receipt, shard_stem
from readers.contract.shard_table import ShardTable, field_bits, table_path
from readers.contract.tiles import Tile, picture_of
from readers.delivered import LABELLED, VALID, valid_mask
from readers.formats import opener, shard_paths
from readers.formats.column import MissingError, ShardFacts, damage_at
from readers.formats.shard import Shard
from readers.stores.checksums import check_files, read_receipt
from readers.stores.evict import CacheFullError

if TYPE_CHECKING:
    from readers.stores.cache import CachedPack

MOST_OPEN_SHARDS = 4096 if sys.version_info >= (3, 13) else 128
"""Each open shard has a memory map or two. Before Python 3.13 each map also has a file descriptor, and processes are
often limited to 1024 of these."""

MOST_HELD_SHARDS = 128
"""The same for shards of a cache: the lock of each has a file descriptor."""

MOST_RECEIPTS = 16
"""The shards whose places stay in memory."""
BOTH = (IMAGE, LABEL)
"""The fields of a sample by default, if a pack has them."""


class Pack:
    """One generation of a packed data set. Opening reads one small file and maps another; shards open on first use."""

    def __init__(
        self,
        root: Path,
        manifest: Manifest,
        digests: bool = False,
        read_lock: object = None,
        cached: CachedPack | None = None,
        table: ShardTable | None = None,
    ) -> None:
        self.root = root
        self._read_lock = read_lock  # held as long as this object: the files of a staged copy are not deleted
        self.cached = cached  # if given, shards may be missing in `root`
        self.name = root if cached is None else cached.url
        """The folder or the URL, for messages."""
        self.manifest = manifest
        self.table = ShardTable.open(root, manifest) if table is None else table
        self._split_ends = list(accumulate(split.shards for split in manifest.splits))
        self._parts = [part for split in manifest.splits for part in split.parts]
        self._part_ends = list(accumulate(part.shards for part in self._parts))
        self._digests = digests
        self._checked: set[int] = set()
        self._read: tuple[str, ...] | None = None
        if digests and sha256(table_path(root, manifest.table)) != manifest.table:
            raise DamagedError(f"{table_path(root, manifest.table)}: its SHA-256 is not the one in the manifest")
        self._shards: OrderedDict[int, Shard] = OrderedDict()
        self._places: dict[int, tuple[Place | None, ...]] = {}
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._most_open = MOST_OPEN_SHARDS
        if cached is not None:
            self._most_open = MOST_HELD_SHARDS
            cached.cache.add(self)

    @classmethod
    def open(cls, root: Path, generation: int | None = None, digests: bool = False) -> Pack:
        """Open the current generation, or an earlier one that is still kept. With `digests`, the files of each shard
        are compared with their checksums before the shard is opened."""
        return cls(root, Manifest.load(root, generation), digests)

    def splits(self) -> list[tuple[Split, range, range]]:
        """Return every split with the range of its shards and of its rows."""
        ranges = []
        shard = row = 0
        for split in self.manifest.splits:
            ranges.append((split, range(shard, shard + split.shards), range(row, row + split.rows)))
            shard += split.shards
            row += split.rows
        return ranges

    def rows_of(self, split: str | None) -> range:
        """Return the rows of a split; None means the only split."""
        splits = self.splits()
        if split == ALL or (split is None and len(splits) == 1):
            return range(self.manifest.rows)
        for entry, _, rows in splits:
            if entry.name == split:
                return rows
        names = ", ".join(map(repr, dict.fromkeys([*(entry.name for entry, _, _ in splits), ALL])))
        problem = f"there is no split {split!r}" if split else "has several splits, so name one"
        folds = ", ".join(map(str, fold_numbers(entry.name for entry, _, _ in splits)))
        of_fold = f'; or split= "{TRAIN}" or "{VAL}" with fold= one of {folds}' if folds else ""
        raise RequestError(f"{self.name}: {problem}: split= one of {names}{of_fold}")

    def measured(self) -> Manifest:
        """Return the manifest, with the statistics of all rows."""
        return self.manifest

    @property
    def fields(self) -> tuple[Field, ...]:
        """The stored fields that are read, by default all."""
        return tuple(map(self.manifest.field, self._read)) if self._read else self.manifest.fields

    def select(self, names: Sequence[str] | None) -> tuple[Field, ...]:
        """Return the stored fields with these names, in this order; None means image and label if they are there, else
        all. Shards that are opened from now on read no other columns."""
        stored_names = tuple(field.name for field in self.manifest.fields)
        usual = BOTH if set(BOTH) <= set(stored_names) else stored_names
        chosen = usual if names is None else tuple(names)
        valid = valid_mask(self.manifest.fields[0].sides)
        derived = {field.name: field for field in (LABELLED, valid) if field.name not in stored_names}
        stored = tuple(name for name in chosen if name not in derived)
        if isinstance(names, str) or not stored or len({*chosen}) < len(chosen):
            raise RequestError(f"fields={names!r}: expected names, each once, such as fields={stored_names[-1:]!r}")
        for name in stored:
            if name not in stored_names:
                listed = ", ".join(map(repr, stored_names))
                raise RequestError(f"{self.name}: there is no field {name!r}: fields= some of {listed}")
        for name in stored:
            if (encoding := self.manifest.field(name).encoding) not in READABLE:
                problem = f"the field {name!r} is stored as {encoding!r}, which this release cannot read"
                raise VersionError(f"{self.name}: {problem}; update segpack")
        has_picture = any(self.manifest.field(name).kind == PICTURE for name in stored)
        if VALID in chosen and VALID in derived and not has_picture:
            raise RequestError(f'fields={names!r}: "valid" says where a picture has data; read the picture, too')
        self._read = stored
        return tuple(derived.get(name) or self.manifest.field(name) for name in chosen)

    def split_of(self, shard: int) -> Split:
        """Return the split of a shard."""
        return self.manifest.splits[bisect_right(self._split_ends, shard)]

    def split_at(self, row: int) -> Split:
        """Return the split of a row."""
        return next(split for split, _, rows in self.splits() if row in rows)

    def fields_of(self, shard: int) -> tuple[Field, ...]:
        """Return the fields that a shard has. The table must agree with the manifest."""
        part = self._parts[bisect_right(self._part_ends, shard)]
        if self.table.fields(shard) != field_bits([field.name for field in self.manifest.fields], part.fields):
            raise DamagedError(
                f"{self.stem(shard)}: the table and the manifest differ in its fields; run packer verify {self.root}"
            )
        return tuple(map(self.manifest.field, part.fields))

    def stem(self, shard: int) -> Path:
        """Return the common beginning of the paths of a shard's files."""
        return self.root / SHARDS / shard_stem(self.split_of(shard).name, self.table.fingerprint(shard))

    def shard(self, number: int) -> Shard:
        """Return a shard, opened when first needed. Beyond MOST_OPEN_SHARDS the least recently used is closed."""
        if self.cached is not None:
            return self._cached_shard(self.cached, number)
        with self._own_lock():
            return self._known(number) or self._add(number, self._open(number))

    def shards(self, numbers: Iterable[int]) -> list[Shard]:
        """Return shards that are open at the same time."""
        if self.cached is None:
            return list(map(self.shard, numbers))
        try:
            return [self._cached_shard(self.cached, number, wait=False) for number in numbers]
        except CacheFullError:
            pass  # outside of this block nothing of the batch is held
        with self.cached.cache.turn():
            return list(map(self.shard, numbers))

    def _cached_shard(self, cached: CachedPack, number: int, wait: bool = True) -> Shard:
        """Do the same with a shard that may have to be fetched, which other threads do not wait for."""
        cached.cache.relieve()
        with self._own_lock():
            shard = self._known(number)
        if shard is not None:
            return shard
        stem, digest = self.stem(number).name, self.table.receipt(number)
        held = cached.hold(stem, digest, wait)
        try:
            shard = self._open(number)
        except DamagedError:
            held.close()
            if not cached.drop(stem, self._paths(number)):
                raise
            held = cached.hold(stem, digest, wait)
            shard = self._open(number)
        weakref.finalize(shard, held.close)  # the files stay as long as the shard is open
        with self._own_lock():
            return self._known(number) or self._add(number, shard)

    def place(self, row: int) -> Place | None:
        """Return where the pixels of a row are in the world; None if its files do not say it."""
        number, inside = self.table.locate(row)
        places = self._places.get(number)
        if places is None:
            places = self._read_receipt(number).places
            if len(self._places) >= MOST_RECEIPTS:
                self._places.clear()
            self._places[number] = places
        return places[inside] if places else None

    def picture_place(self, row: int) -> Place | None:
        """Return the place of a row; of a tile, the place of the picture that it was cut from."""
        place, (number, inside) = self.place(row), self.table.locate(row)
        key = self.shard(number).key(inside)
        if place is None or picture_of(key) == key:
            return place
        top, left = Tile.of(key).origin
        return place.part((-top, -left))

    def _read_receipt(self, number: int) -> Receipt:
        """Read the receipt of a shard, which comes with the shard into a cache."""
        if self.cached is None:
            return read_receipt(self.root, self.stem(number), self.table.receipt(number))
        with closing(self.cached.hold(self.stem(number).name, self.table.receipt(number))):
            return read_receipt(self.root, self.stem(number), self.table.receipt(number))

    def fetch(self, number: int) -> None:
        """Fetch a shard into the cache if it is not there; its last use is now. Raises CacheFullError."""
        if self.cached is not None:
            self.cached.fetch(self.stem(number).name, self.table.receipt(number)).close()

    def is_near(self, number: int) -> bool:
        """Return whether a shard can be opened without fetching it."""
        return self.cached is None or number in self._shards or self.cached.has(self.stem(number).name)

    def has_all(self, rows: range) -> bool:
        """Return whether none of the shards with these rows has to be fetched."""
        if self.cached is None:
            return True
        first, last = self.table.shards_at([rows.start, rows.stop - 1])
        stems = self.cached.stems()
        return len(stems) > last - first and all(self.stem(shard).name in stems for shard in range(first, last + 1))

    def shards_of(self, rows: Sequence[int]) -> list[int]:
        """Return the shards with these rows, each once, in the order of the rows."""
        return list(dict.fromkeys(self.table.shards_at(rows)))

    def close_shards(self) -> None:
        """Close all shards; those that are being read at this moment close afterwards."""
        with self._own_lock():
            closed, self._shards = self._shards, OrderedDict()
        del closed

    def release(self, number: int) -> None:
        """Close a shard that no coming batch needs, so that its space in the cache can be used."""
        with self._own_lock():
            closed = self._shards.pop(number, None)
        del closed

    def _own_lock(self) -> threading.Lock:
        if self._process != os.getpid():  # a forked process shares the maps, but may inherit a lock that stays held
            self._lock, self._process = threading.Lock(), os.getpid()
        return self._lock

    def _known(self, number: int) -> Shard | None:
        if number not in self._shards:
            return None
        self._shards.move_to_end(number)
        return self._shards[number]

    def _add(self, number: int, shard: Shard) -> Shard:
        self._shards[number] = shard
        if len(self._shards) > self._most_open:
            self._shards.popitem(last=False)
        return shard

    def _open(self, number: int) -> Shard:
        # A bound method would tie pack and shard together, and the files would stay open until Python collects garbage.
        explain_missing = partial(_explained, self.root, self.manifest.generation)
        explain = explain_missing if self.cached is None else self.cached.explained
        try:
            with damage_at(self.stem(number), ValueError, OverflowError, LookupError):
                shard = self._opened(number)
        except MissingError as missing:
            raise explain(missing) from missing
        shard.explain = explain
        return shard

    def _opened(self, number: int) -> Shard:
        stem = self.stem(number)
        facts = self._facts(number)
        paths = self._paths(number)
        for path in paths:
            with damage_at(path):
                plain_file(self.root, path)
        if self._digests and number not in self._checked:
            check_files(self.root, stem, read_receipt(self.root, stem, self.table.receipt(number)), paths)
            self._checked.add(number)
        return opener(self.manifest.storage)(stem, facts)

    def _facts(self, number: int) -> ShardFacts:
        return ShardFacts(self.table.rows(number), self.fields_of(number), self._read)

    def _paths(self, number: int) -> list[Path]:
        """Return the files of a shard that are read."""
        return shard_paths(self.manifest.storage)(self.stem(number), self._facts(number))


def _explained(root: Path, generation: int, missing: MissingError) -> DamagedError:
    """Return the error to raise for a missing file: `packer gc` deletes the files of old generations."""
    if generation_path(root, generation).exists():
        return DamagedError(f"{missing}; find out what else is damaged with: packer verify {root}")
    return DamagedError(
        f"{root}: packer gc has deleted generation {generation}, which was opened here; "
        "open the data set again to read the current one. "
        "A longer gc --grace, or a higher --keep, leaves time to finish"
    )
