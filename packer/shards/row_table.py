"""`RowTable`: the facts of all rows of a shard while it is built, in arrays. Objects would take eight times as much."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from operator import add

import numpy as np

from packer.recipe.piece import Piece
from packer.recipe.source import receipt_text
from packer.shards.row_counts import CountedFields, RowCounts
from packer.shards.rows import Row
from packer.shards.stamps import record
from readers.contract.cells import is_counted
from readers.contract.count_cells import RowCells
from readers.contract.fields import Field
from readers.contract.place import Place
from readers.contract.receipt import Note, Reject, RowInput
from readers.contract.receipt_facts import most_of
from readers.contract.statistics import Statistics, no_rows


class RowTable:
    """One place for each piece of a shard. Threads put the rows there, in any order."""

    def __init__(self, pieces: Sequence[Piece], fields: Sequence[Field], counted: CountedFields, width: int) -> None:
        self._pieces = pieces
        nothing = no_rows(fields)
        self._crc32 = np.zeros((len(nothing), len(pieces)), np.uint32)
        self._psnr = np.zeros((len(nothing), len(pieces)), np.uint16)
        self._looks = np.zeros(len(pieces), "S24")
        self._digests = np.zeros((len(pieces), len(nothing)), "S64")
        self._rejects: dict[int, str] = {}
        self._notes: dict[int, str] = {}
        self._places: dict[int, Place] = {}
        self._cells: dict[int, tuple[RowCells, ...]] = {}
        self._adding = threading.Lock()
        self._sums = Counter[str]()
        self._fields, self._counted = tuple(fields), counted
        self._counts = RowCounts.empty(self._counted.classes, len(pieces))
        self._statistics = list(nothing.values())
        self.stamps = np.zeros(len(pieces), record(width, len(fields[0].sides)))
        """The state and the size of each row, as stamps.py writes them."""

    def put(self, index: int, row: Row) -> None:
        self._looks[index] = row.look.encode()
        self._digests[index] = [text.encode() for text in row.source.identities]
        self.stamps["state"][index], self.stamps["size"][index] = row.state, row.size or 0
        if row.reject is not None:
            self._rejects[index] = row.reject
            return
        self._crc32[:, index], self._psnr[:, index] = row.crc32, row.psnr
        self._cells[index] = row.cells
        self._counts.put(index, self._counted, self._fields, row.statistics)
        if row.note:
            self._notes[index] = row.note
        if row.place is not None:
            self._places[index] = row.place
        with self._adding:
            self._statistics = list(map(add, self._statistics, row.statistics))
            self._sums.update(row.counts or {})

    @property
    def statistics(self) -> Statistics:
        """The statistics of all rows that are packed."""
        return dict(zip(self._names, self._statistics, strict=True))

    @property
    def counts(self) -> RowCounts:
        """The counts of each row that is packed."""
        return self._counts.rows(self.kept)

    @property
    def cells(self) -> dict[Field, list[RowCells]]:
        """For each field with classes the cells of each row that is packed."""
        fields, kept = filter(is_counted, self._fields), self.kept
        return {field: [self._cells[index][number] for index in kept] for number, field in enumerate(fields)}

    @property
    def _names(self) -> list[str]:
        return [field.name for field in self._fields]

    @property
    def kept(self) -> Sequence[int]:
        """The indices of the rows that are packed."""
        every = range(len(self._pieces))
        return [index for index in every if index not in self._rejects] if self._rejects else every

    @property
    def sources(self) -> tuple[RowInput, ...]:
        return tuple(
            RowInput(piece.key, *(digest.decode() for digest in digests))
            for piece, digests in zip(self._pieces, self._digests.tolist(), strict=True)
        )

    @property
    def rejects(self) -> tuple[Reject, ...]:
        return tuple(Reject(self._pieces[index].key, reason) for index, reason in sorted(self._rejects.items()))

    @property
    def notes(self) -> tuple[Note, ...]:
        return tuple(Note(self._pieces[index].key, text) for index, text in sorted(self._notes.items()))

    @property
    def places(self) -> tuple[Place | None, ...]:
        """The place of each row that is packed; nothing if no row has one."""
        return tuple(map(self._places.get, self.kept)) if self._places else ()

    @property
    def sums(self) -> dict[str, int]:
        """The sums of what the source counted in the rows, by what is counted."""
        sums = Counter[str]()
        for what, count in self._sums.items():
            sums[receipt_text(what)] += count
        return dict(sorted(most_of(sums).items()))

    @property
    def crc32(self) -> dict[str, tuple[int, ...]]:
        """For each field the checksum of each row that is packed."""
        kept = self.kept
        return {name: tuple(sums[kept].tolist()) for name, sums in zip(self._names, self._crc32, strict=True)}

    @property
    def psnr(self) -> dict[str, tuple[int, ...]]:
        """For each field that is stored as JPEG the PSNR of each row that is packed."""
        kept = self.kept
        pairs = zip(self._fields, self._psnr, strict=True)
        return {field.name: tuple(psnr[kept].tolist()) for field, psnr in pairs if field.is_jpeg}

    @property
    def looks(self) -> tuple[str, ...]:
        """The hash of the first picture of each row that is packed; nothing if rows have none."""
        looks = tuple(self._looks[index].decode() for index in self.kept)
        return looks if any(looks) else ()
