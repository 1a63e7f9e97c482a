"""`LivePack`: a pack that is read while it is built. A shard is asked for, and opened when it is built.

It has the rows that were planned. A pair that turns out to be bad has no row: until the pack is opened again, another
row of its shard stands for it.
"""

from __future__ import annotations

import os
import secrets
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

from readers.contract.atomic import machine
from readers.contract.errors import DamagedError, ReadError
from readers.contract.live import (
    BUILDER,
    BUILT,
    MOST_WANTED,
    PUBLISHED,
    READERS,
    WANTED,
    LiveShard,
    read_built,
    write_wanted,
)
from readers.contract.manifest import LIVE, LOCK, SHARDS, Manifest
from readers.contract.receipt import shard_stem
from readers.contract.shard_table import ShardTable
from readers.contract.statistics import FieldStatistics, Statistics, total
from readers.contract.system import open_to_read
from readers.formats.column import ShardFacts
from readers.pack import Pack
from readers.stores.checksums import read_receipt
from readers.stores.locks import ReadLock, is_locked

PAUSES = 0.005, 0.1
"""Seconds between looks at a shard that is waited for: at first, and at most."""
ASK = 0.3
"""Seconds from one look at the shards that are needed to the next."""
MOST_REMEMBERED = 1 << 16
"""The built shards whose facts stay in memory."""
MOST_NAMED = 3
"""A warning names at most this many bad pairs."""
FIRST_SHARDS = 8
"""The shards of each split, at most, from which statistics come as long as a pack is built."""
MOST_STARTS = 3
"""The builders that a reader starts without waiting for them."""

Restart = Callable[[bool], bool]
"""Starts a builder in the place of one that was killed. If it waits, it returns whether there was anything to build."""


class LiveShards:
    """The shards of OUT/live as a reader sees them."""

    def __init__(self, out: Path, restart: Restart | None = None) -> None:
        self._folder, self._restart, self._starts = out / LIVE, restart, 0
        self._lock = ReadLock(self._folder / READERS, wait=True)  # the builder goes on as long as a reader has it
        self._file = open_to_read(self._folder / BUILT)
        weakref.finalize(self, os.close, self._file)
        self._process = os.getpid()
        self._wanted = self._own_file()
        self._coming: tuple[int, ...] = ()
        self._urgent: dict[int, None] = {}
        self._built: dict[int, LiveShard] = {}

    def _own_file(self) -> Path:
        return self._folder / WANTED / f"{machine()}-{os.getpid()}-{secrets.token_hex(4)}"

    def known(self, number: int) -> LiveShard | None:
        """Return the facts of a shard; None if it is not built."""
        shard = self._built.get(number) or read_built(self._file, number)
        if shard is not None:
            if len(self._built) >= MOST_REMEMBERED:
                self._built.clear()
            self._built[number] = shard
        return shard

    def wait(self, number: int) -> LiveShard:
        """Return the facts of a shard when it is built."""
        shard, pause, looked = self.known(number), PAUSES[0], time.monotonic()
        if shard is not None:
            return shard
        self._urgent[number] = None
        try:
            self._ask()
            while (shard := self.known(number)) is None:
                time.sleep(pause)
                pause = min(PAUSES[1], 1.5 * pause)
                if time.monotonic() > looked + 1:
                    looked = time.monotonic()
                    self._check_builder(number)
                    self._ask()  # the next builder has removed all wishes
        finally:
            self._urgent.pop(number, None)
        return shard

    def need(self, numbers: Iterable[int]) -> None:
        """Ask for shards that are needed next, in this order."""
        self._coming = tuple(islice((number for number in numbers if self.known(number) is None), MOST_WANTED))
        self._ask()

    def _ask(self) -> None:
        if self._process != os.getpid():  # a forked process has wishes of its own
            self._process, self._wanted = os.getpid(), self._own_file()
        numbers = dict.fromkeys([*self._urgent, *self._coming])
        with suppress(OSError):  # the order is a wish; all shards come in the end
            write_wanted(self._wanted, islice(numbers, MOST_WANTED))

    def _check_builder(self, number: int) -> None:
        """Start another builder if none is left for the shard. Raise ReadError if that is in vain, and let go of the
        pack, so that another build may begin there."""
        try:
            self._check(number)
        except ReadError:
            self._lock.close()
            raise

    def _check(self, number: int) -> None:
        out = self._folder.parent
        if os.fstat(self._file).st_nlink == 0:
            raise DamagedError(f"{out}: another build has begun there; open the data set again")
        if self._is_changed() or read_built(self._file, number) is not None:
            return
        why = self.last_words()
        if why != PUBLISHED and (why or self._restart is None):
            raise ReadError(f"{out}: the pack is not built to its end: {why or 'its builder was killed'}")
        begins = not why and self._restart is not None and self._restart(True)
        if not begins and read_built(self._file, number) is None:
            raise DamagedError(f"{out}: the raw files changed while the pack was built; open the data set again")

    def begin_again(self) -> None:
        """Start a builder, and do not wait for it, if the last one was killed: it may be the pack's last reader that
        asks."""
        if self._restart is None or self._starts >= MOST_STARTS or self._is_changed() or self.last_words():
            return
        self._starts += 1
        self._restart(False)

    def _is_changed(self) -> bool:
        """Return whether a process plans, builds or publishes the pack."""
        return builds(self._folder) or is_locked(self._folder.parent / LOCK)

    def last_words(self) -> str:
        """Return why the last builder has ended; nothing if it was killed, or works."""
        try:
            return (self._folder / BUILDER).read_text(errors="replace").strip()
        except FileNotFoundError:
            return "its folder was removed"

    def close(self) -> None:
        """Ask for nothing any more."""
        with suppress(OSError):
            self._wanted.unlink()


def builds(folder: Path) -> bool:
    """Return whether a builder works in this folder OUT/live."""
    return is_locked(folder / BUILDER)


class LiveTable(ShardTable):
    """The table of a plan. A row is located when its shard is built."""

    def __init__(self, planned: ShardTable, live: LiveShards, root: Path, parts: Sequence[tuple[str, range]]) -> None:
        """Take the split and the shards of each part of the pack."""
        super().__init__(planned._records)
        self._live, self._root, self._parts = live, root, parts
        self._named = set[int]()
        """The shards whose bad pairs were named."""

    def fingerprint(self, shard: int) -> str:
        return self._live.wait(shard).fingerprint

    def receipt(self, shard: int) -> str:
        return self._live.wait(shard).receipt

    def locate(self, row: int) -> tuple[int, int]:
        return self._there(*super().locate(row))

    def locate_all(self, rows: Sequence[int]) -> Iterator[tuple[int, int]]:
        for shard, inside in super().locate_all(rows):
            yield self._there(shard, inside)

    def _there(self, shard: int, inside: int) -> tuple[int, int]:
        """Return where a planned row is, or the row that stands for it."""
        rows = self._live.wait(shard).rows
        if inside < rows:
            return shard, inside
        split, part = next((split, part) for split, part in self._parts if shard in part)
        self._name_bad(split, shard)
        for other in (*range(shard, part.stop), *range(part.start, shard)):
            if rows := self._live.wait(other).rows:
                return other, inside % rows
        raise ReadError(f"all pairs of shards {part.start} to {part.stop - 1} are bad; packer build says why")

    def _name_bad(self, split: str, shard: int) -> None:
        """Warn of the bad pairs of a shard, once."""
        if shard in self._named:
            return
        self._named.add(shard)
        stem = self._root / SHARDS / shard_stem(split, self.fingerprint(shard))
        rejects = read_receipt(self._root, stem, self.receipt(shard)).rejects
        bad = "; ".join(f"{reject.key}: {reject.reason}" for reject in rejects[:MOST_NAMED])
        more = f"; and {len(rejects) - MOST_NAMED} more" if len(rejects) > MOST_NAMED else ""
        words = "another row stands for it" if len(rejects) == 1 else "other rows stand for them"
        warnings.warn(f"{self._root}: bad pair {bad}{more}; {words}", RuntimeWarning, stacklevel=2)


class LivePack(Pack):
    """A pack that is being built, with the rows of its plan."""

    def __init__(self, root: Path, live: LiveShards) -> None:
        manifest = Manifest.load(root / LIVE)
        planned = ShardTable.open(root / LIVE, manifest)
        super().__init__(root, manifest, table=planned)
        named = ((split.name, part.shards) for split in manifest.splits for part in split.parts)
        parts = [(name, range(end - shards, end)) for (name, shards), end in zip(named, self._part_ends, strict=True)]
        self.live, self.table = live, LiveTable(planned, live, root, parts)

    def is_near(self, number: int) -> bool:
        """Return whether a shard can be opened without waiting for it."""
        return self.live.known(number) is not None

    def has_all(self, rows: range) -> bool:
        """Return whether all shards with these rows are built."""
        first, last = self.table.shards_at([rows.start, rows.stop - 1])
        return all(map(self.is_near, range(first, last + 1)))

    def measured(self) -> Manifest:
        """Return the manifest with statistics of the first shards of each split."""
        splits, read = [], 0
        for split, shards, _ in self.splits():
            sums = list[dict[str, FieldStatistics]]()
            built = [number for number in shards if self.is_near(number)] or [shards[0]]
            for number in built[:FIRST_SHARDS]:
                receipt = read_receipt(self.root, self.stem(number), self.table.receipt(number))
                sums.append(dict(receipt.statistics))
                read += receipt.rows
            statistics: Statistics = total(self.manifest.fields, sums)
            splits.append(replace(split, statistics=statistics))
        if read < self.manifest.rows:
            warnings.warn(
                f"{self.root}: is being built; mean, deviation and weights count {read:,} of "
                f"{self.manifest.rows:,} rows. Open it again, and all rows count",
                RuntimeWarning,
                stacklevel=3,
            )
        return replace(self.manifest, splits=tuple(splits))

    def _facts(self, number: int) -> ShardFacts:
        return replace(super()._facts(number), rows=self.live.wait(number).rows)


class Wishes:
    """Asks for the shards of coming batches, in the order in which they are needed. Until a pack is published, each
    pass looks at its beginning and at its end whether the builder was killed."""

    def __init__(self, live: LiveShards, batches: Iterator[Sequence[int]]) -> None:
        self._live, self._batches = live, batches
        self._coming: deque[Sequence[int]] = deque()
        self._asked = 0.0
        self._live.begin_again()
        self._top_up()

    def received(self) -> None:
        """Note that the next batch was received."""
        if self._coming:
            self._coming.popleft()
        if time.monotonic() > self._asked + ASK:
            self._top_up()

    def close(self) -> None:
        """Ask for nothing any more."""
        self._live.close()
        self._live.begin_again()

    def _top_up(self) -> None:
        needed = dict.fromkeys(shard for shards in self._coming for shard in shards)
        missing = sum(self._live.known(shard) is None for shard in needed)
        while missing < MOST_WANTED:
            shards = next(self._batches, None)
            if shards is None:
                break
            self._coming.append(shards)
            new = dict.fromkeys(shard for shard in shards if shard not in needed)
            missing += sum(self._live.known(shard) is None for shard in new)
            needed |= new
        self._live.need(needed)
        self._asked = time.monotonic()
