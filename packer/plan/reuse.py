"""Find the rows and shards that did not change since they were packed.

The stamps of a shard (shards/stamps.py) hold the states of its rows when they were read, such as the size and times of
their files. A row that still has its state is not opened. A shard of the plan whose rows all have the stamps of one
existing shard of the same recipe *is* that shard. Where states differ or are unknown, or with `--trust digest`, the
identities in its receipt decide, such as the BLAKE3 of files. The finished shards of a killed build have stamps, too,
so resuming a build is the same thing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from packer.config.options import DIGEST, MTIME
from packer.recipe.piece import text_of
from packer.recipe.ref_table import CHUNK, RefTable
from packer.recipe.row_ref import RowRef
from packer.recipe.shard_spec import ShardSpec
from packer.recipe.source import UNKNOWN, Source
from packer.shards.receipt_on_disk import whole_shard
from packer.shards.stamps import ShardStamps, StoredStamps, write_stamps
from packer.spill.long_text import long_table
from readers.contract.manifest import SHARDS
from readers.contract.receipt import SUFFIX, Receipt


class RowStates:
    """The states of all rows now. Each is asked for once."""

    def __init__(self, source: Source, refs: RefTable) -> None:
        self._source, self._refs = source, refs
        self.width = source.states([]).shape[1]
        self._states = long_table(len(refs), self.width)
        self._asked = np.zeros(len(refs), np.bool_)

    def of(self, numbers: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the state of each row with these numbers."""
        new = np.sort(numbers[~self._asked[numbers]])
        self._ask_for(new[np.diff(new, prepend=-1) > 0])  # numpy.unique would import numpy.ma: a tenth of a quiet night
        return self._states[numbers]

    def ask(self, marked: NDArray[np.bool_]) -> None:
        """Ask for the states of all marked rows that are not known yet, very many together."""
        waiting = np.empty(0, np.intp)
        for first in range(0, len(marked), CHUNK):
            part = slice(first, first + CHUNK)
            waiting = np.append(waiting, first + np.flatnonzero(marked[part] & ~self._asked[part]))
            if len(waiting) >= CHUNK:
                self._ask_for(waiting)
                waiting = waiting[:0]
        self._ask_for(waiting)

    def _ask_for(self, numbers: NDArray[np.intp]) -> None:
        if len(numbers):
            self._states[numbers] = self._source.states(self._refs.take(numbers))
            self._asked[numbers] = True


class RowsByParts:
    """Finds rows by their parts, with 16 bytes for each."""

    def __init__(self, refs: RefTable) -> None:
        self._refs = refs
        hashes = np.fromiter((hash("\0".join(ref.parts)) for ref in refs), np.int64, len(refs))
        self._order = np.argsort(hashes)
        self._hashes = hashes[self._order]

    def numbers(self, parts: Sequence[str]) -> NDArray[np.intp]:
        """Return the number of the row with each of these parts, -1 if there is none."""
        codes = np.fromiter(map(hash, parts), np.int64, len(parts))
        ranges = (np.searchsorted(self._hashes, codes, side).tolist() for side in ("left", "right"))
        return np.fromiter(map(self._number, parts, *ranges), np.intp, len(parts))

    def _number(self, parts: str, first: int, last: int) -> int:
        """Return the number of the row with these parts among those with their hash."""
        same = (number for number in self._order[first:last].tolist() if "\0".join(self._refs[number].parts) == parts)
        return next(same, -1)


class PreviousBuild:
    """The stamps and receipts of a pack, compared with the present sorted rows."""

    def __init__(
        self, out: Path, source: Source, refs: RefTable, stamps: Sequence[StoredStamps], trust: str = MTIME
    ) -> None:
        self._out, self._source, self._refs, self._trust = out, source, refs, trust
        self._states, self._sides = RowStates(source, refs), 3 if source.gives_volumes else 2
        form = (source.kind, self._states.width, self._sides)
        self._stamps = [shard for shard in stamps if (shard.source, shard.width, shard.sides) == form]
        self._numbers: dict[str, NDArray[np.intp] | int] = {}
        self._by_start = {(shard.recipe, shard.split, shard.rows, shard.first_key): shard for shard in self._stamps}

    def sizes(self, judged: str) -> NDArray[np.uint32]:
        """Return (N, sides): the sizes of unchanged rows whose headers were judged by the same rules, else 0."""
        if self._trust == DIGEST:
            return np.zeros((len(self._refs), self._sides), np.uint32)
        sizes = np.zeros((len(self._refs), self._sides), np.uint32)
        same = self._compare([shard for shard in self._stamps if shard.judged == judged], sizes)
        for first in range(0, len(sizes), CHUNK):
            some, part = sizes[first : first + CHUNK], same[first : first + CHUNK]
            some[~part | (some == 0).any(1)] = 0
        return sizes

    def unchanged(self, recipe: str) -> NDArray[np.bool_]:
        """Return which rows are in a shard of this recipe and did not change."""
        return self._compare([shard for shard in self._stamps if shard.recipe == recipe])

    def _compare(self, stamps: Sequence[StoredStamps], sizes: NDArray[np.uint32] | None = None) -> NDArray[np.bool_]:
        """Return which rows are in the state of their newest stamp, and fill in the picture sizes in these stamps."""
        same = np.zeros(len(self._refs), np.bool_)
        newest = np.full(len(self._refs), -1, np.int32)
        for index, shard in enumerate(map(StoredStamps.load, stamps)):
            numbers, present = self._found(shard)
            if sizes is not None:
                sizes[numbers] = shard.records["size"][present]
            newest[numbers] = np.where(shard.records["state"][present, 0] == UNKNOWN, -1, index)
        self._states.ask(newest >= 0)
        for index, shard in enumerate(map(StoredStamps.load, stamps)):
            numbers, present = self._found(shard)
            compared = newest[numbers] == index
            states = shard.records["state"][present][compared]
            same[numbers[compared]] = (states == self._states.of(numbers[compared])).all(1)
        return same

    def _found(self, shard: ShardStamps) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return the numbers that rows of a shard have now, and which of its rows these are."""
        numbers = self._numbers_of(shard)
        present = numbers >= 0
        return numbers[present], present

    def _numbers_of(self, shard: ShardStamps) -> NDArray[np.intp]:
        """Return the number that each row of a shard has now, -1 if no row has its parts.

        Both are sorted by key, so an unchanged shard is found in one piece.
        """
        rows = len(shard.records)
        if shard.stem not in self._numbers:
            start = bisect_left(self._refs, (shard.split, shard.text.partition("\0")[0]))
            is_there = self._refs.text(start, min(start + rows, len(self._refs))) == shard.text
            self._numbers[shard.stem] = start if is_there else self._by_parts.numbers(shard.parts)
        numbers = self._numbers[shard.stem]
        return np.arange(numbers, numbers + rows) if isinstance(numbers, int) else numbers

    @cached_property
    def _by_parts(self) -> RowsByParts:
        return RowsByParts(self._refs)

    def receipt(self, spec: ShardSpec, recipe: str, retry_bad: bool) -> Receipt | None:
        """Return the receipt of the shard that this spec would become, if that shard exists and has all its files."""
        pieces = spec.pieces
        stored = self._by_start.get((recipe, spec.split, len(pieces), pieces[0].key))
        stamps = None if stored is None else stored.load()
        if stamps is None or stamps.text != text_of(pieces):
            return None
        receipt = whole_shard(self._out / SHARDS / (stamps.stem + SUFFIX))
        if receipt is None or (retry_bad and receipt.rejects):
            return None
        if (receipt.recipe, receipt.split, len(receipt.sources)) != (recipe, spec.split, len(pieces)):
            return None
        then, now = stamps.records["state"], self._states.of(self._numbers_of(stamps))
        differing = np.flatnonzero((then != now).any(1) | (then[:, 0] == UNKNOWN))
        if self._trust == DIGEST:
            differing = np.arange(len(pieces))
        if not len(differing) or self._is_identical(spec, receipt, stamps, differing):
            return receipt
        return None

    def _is_identical(self, spec: ShardSpec, receipt: Receipt, stamps: ShardStamps, indices: NDArray[np.intp]) -> bool:
        """Return whether the rows of these pieces have the identities in the receipt. If so, renew the stamps."""
        indices_by_ref: dict[RowRef, list[int]] = {}
        for index in indices.tolist():
            indices_by_ref.setdefault(spec.pieces[index].ref, []).append(index)
        refs = list(indices_by_ref)
        states = self._source.states(refs)  # before the bytes are read
        for ref, identity in zip(refs, self._source.identities(refs), strict=True):
            if identity is None or _of_fields(ref, identity) != receipt.sources[indices_by_ref[ref][0]].identities:
                return False
        records = stamps.records.copy()
        for ref, state in zip(refs, states, strict=True):
            records["state"][indices_by_ref[ref]] = state
        write_stamps(self._out, replace(stamps, records=records))
        return True


def _of_fields(ref: RowRef, identity: Sequence[str]) -> tuple[str, ...]:
    """Return the texts of an identity for the fields that the row has, as in a receipt."""
    return tuple(text for text, part in zip(identity, ref.parts, strict=True) if part)
