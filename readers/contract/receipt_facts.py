"""`ReceiptFacts`: what a build keeps of a shard's receipt. `AllReceipts`: facts and statistics of all shards.

A receipt has several objects for each row; of 10 million rows they would take 15 GB. Its facts take 12 bytes a row.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby, islice
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.psnr import PsnrCounts
from readers.contract.receipt import FLAT, Note, Receipt, Reject, shard_stem
from readers.contract.statistics import FieldStatistics

HASH = np.dtype([("crc32", ">u4"), ("bits", ">u8")])
"""The look of a row in a receipt: its hex digits as numbers. A picture of one colour has no bits."""
MOST_NOTES = 20
"""The first notes of a build that are named."""
MOST_TOTALS = 100
"""The most sums of counts in notes that are kept."""
PAINTED = "objects painted"
"""Annotations that a label shows. With the other sums of objects they are all that their files have."""
NO_DATA = "files of {} that name {} as no data"
"""The words of a count: the field, and the value in the headers of its files."""
OTHERS = "objects for other reasons"
NO_DIGESTS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Notes:
    """The number of rows with a note, and the first of them. All notes are in the receipts."""

    rows: int = 0
    first: tuple[tuple[str, str, str], ...] = ()
    """Split, key and text."""
    totals: Mapping[str, int] = field(default_factory=dict)
    """The sums of what sources counted, by the words behind them, such as "objects hidden by others"."""

    @property
    def sums(self) -> tuple[str, ...]:
        """The sums as texts."""
        return tuple(count_text(count, what) for what, count in self.totals.items())

    @property
    def objects(self) -> tuple[int, int]:
        """The objects that are painted, and all that were annotated."""
        every = (count for what, count in self.totals.items() if what.startswith("objects "))
        return self.totals.get(PAINTED, 0), sum(every)


@dataclass(frozen=True)
class ShardNotes:
    """The number of rows with a note; the first notes, and the last one. Tiles of one picture count as one row."""

    rows: int
    first: tuple[Note, ...]
    last: Note

    @classmethod
    def of(cls, notes: tuple[Note, ...], name: Callable[[str], str]) -> ShardNotes | None:
        """Count notes, which are in the order of the rows. `name` makes the key of a picture from the key of a tile."""
        if not notes:
            return None
        once = (note for note, _ in groupby(Note(name(note.key), note.text) for note in notes))
        first = tuple(islice(once, MOST_NOTES))
        last, rows = first[-1], len(first)
        for note in once:
            last, rows = note, rows + 1
        return cls(rows, first, last)


@dataclass(frozen=True)
class ReceiptFacts:
    """The facts of a receipt, without the facts of each row."""

    split: str
    fingerprint: str
    digest: str
    """The SHA-256 of the receipt."""
    fields: tuple[str, ...]
    pieces: int
    """The rows and the rejects."""
    rows: int
    bytes: int
    rejects: tuple[Reject, ...]
    notes: ShardNotes | None
    counts: Mapping[str, int]
    hashes: NDArray[Any]
    """The look of each row, of the dtype HASH; nothing if the rows have no picture."""
    flat: NDArray[np.int32]
    """The rows whose picture has one colour."""

    @property
    def stem(self) -> str:
        return shard_stem(self.split, self.fingerprint)

    @classmethod
    def planned(cls, split: str, fields: tuple[str, ...], rows: int, size: int) -> ReceiptFacts:
        """Return what is known of a shard before it is built."""
        nothing = np.empty(0, HASH), np.empty(0, np.int32)
        return cls(split, "0" * 32, "0" * 64, fields, rows, rows, size, (), None, {}, *nothing)


class AllReceipts(Mapping[int, ReceiptFacts]):
    """The facts of the receipts of a build by the numbers of their shards, in order. They may come in any order."""

    def __init__(self, digests: Mapping[str, str] = NO_DIGESTS, name: Callable[[str], str] = str) -> None:
        """`digests` has digests of receipts by their fingerprints, `name` makes the key of a picture from the key of a
        row."""
        self._known, self._name = digests, name
        self._facts: dict[int, ReceiptFacts] = {}
        self.statistics: dict[str, dict[str, FieldStatistics]] = {}
        """The sum of the statistics of each field, by split."""
        self.psnr: dict[str, PsnrCounts] = {}
        """The rows of each field that is stored as JPEG."""

    def __len__(self) -> int:
        return len(self._facts)

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._facts))

    def __getitem__(self, shard: int) -> ReceiptFacts:
        return self._facts[shard]

    @property
    def rows(self) -> int:
        return sum(facts.rows for facts in self._facts.values())

    @property
    def pieces(self) -> int:
        return sum(facts.pieces for facts in self._facts.values())

    def copy(self) -> AllReceipts:
        """Return the same facts, to which others may be added."""
        other = AllReceipts(self._known, self._name)
        other._facts = dict(self._facts)
        other.psnr = {name: counts.copy() for name, counts in self.psnr.items()}
        other.statistics = {split: dict(sums) for split, sums in self.statistics.items()}
        return other

    def add(self, shard: int, receipt: Receipt) -> None:
        """Add the facts of a receipt, which is not kept."""
        hashes, flat = _hashes(receipt.looks)
        for name, values in receipt.psnr.items():
            self.psnr.setdefault(name, PsnrCounts()).add(values)
        facts = ReceiptFacts(
            receipt.split,
            receipt.fingerprint,
            self._digest(receipt),
            receipt.fields,
            len(receipt.sources),
            receipt.rows,
            receipt.bytes,
            receipt.rejects,
            ShardNotes.of(receipt.notes, self._name),
            receipt.counts,
            hashes,
            flat,
        )
        self.put(shard, facts, receipt.statistics)

    def put(self, shard: int, facts: ReceiptFacts, statistics: Mapping[str, FieldStatistics]) -> None:
        """Add facts of a shard, and its statistics."""
        sums = self.statistics.setdefault(facts.split, {})
        for name, more in statistics.items():
            sums[name] = sums[name] + more if name in sums else more
        self._facts[shard] = facts

    def _digest(self, receipt: Receipt) -> str:
        """Return the SHA-256 of a receipt's text. If the file has the known one, it is not encoded again."""
        if receipt.digest and receipt.digest == self._known.get(receipt.fingerprint):
            return receipt.digest
        return hashlib.sha256(receipt.to_text().encode()).hexdigest()

    @property
    def losses(self) -> dict[str, str]:
        """The loss of each field that is stored as JPEG, in words."""
        return {name: str(psnr) for name, psnr in self.psnr.items()}

    @property
    def splits(self) -> dict[str, list[ReceiptFacts]]:
        """The facts of the shards of each split, both in the order of the shards."""
        members: dict[str, list[ReceiptFacts]] = {}
        for facts in self.values():
            members.setdefault(facts.split, []).append(facts)
        return members

    @property
    def notes(self) -> Notes:
        """The notes of all shards."""
        count, named, before = 0, list[tuple[str, str, str]](), None
        totals = Counter[str]()
        for facts in self.values():
            totals.update(facts.counts)
            if facts.notes is None:
                continue
            goes_on = before == (facts.split, facts.notes.first[0])  # a picture with tiles in two shards
            count += facts.notes.rows - goes_on
            named += [(facts.split, *note) for note in facts.notes.first[goes_on:]]
            del named[MOST_NOTES:]
            before = facts.split, facts.notes.last
        return Notes(count, tuple(named), most_of(totals))


def most_of(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the largest counts, with painted objects first. The other objects are counted together."""
    ordered = sorted(counts, key=lambda what: (what != PAINTED, -counts[what], what))
    most = {what: counts[what] for what in ordered[:MOST_TOTALS]}
    rest = sum(counts[what] for what in ordered[MOST_TOTALS:] if what.startswith("objects "))
    return {**most, OTHERS: most.get(OTHERS, 0) + rest} if rest else most


def count_text(count: int, what: str) -> str:
    """Return a count with its words, such as "1 object without a pixel"."""
    return f"{count:,} {what.replace('s ', ' ', 1) if count == 1 else what}"


def _hashes(looks: tuple[str, ...]) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return the looks as numbers, and the indices of pictures of one colour."""
    digits = "".join(looks)
    flat = [index for index, look in enumerate(looks) if look.endswith(FLAT)] if FLAT in digits else []
    data = bytes.fromhex(digits.replace(FLAT, "0" * 16))
    return np.frombuffer(data, HASH), np.array(flat, np.int32)
