"""Find the pairs and shards whose raw files did not change since they were packed.

The stamps of a shard (shards/stamps.py) hold the size and times of its raw files when they were read. A pair whose
files still have them is not opened. A shard of the plan whose rows all have the stamps of one existing shard of the
same recipe *is* that shard. If only times differ, or with `--trust digest`, the SHA-256 digests in its receipt decide.
The finished shards of a killed build have stamps, too, so resuming a build is the same thing.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import chain, repeat
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from packer.config.options import DIGEST, MTIME
from packer.recipe.row_ref import RowRef
from packer.recipe.shard_spec import ShardSpec
from packer.shards.build_shard import whole_shard
from packer.shards.stamps import ShardStamps, row_text, state_of, state_to_keep, write_stamps
from readers.contract.manifest import SHARDS
from readers.contract.receipt import SUFFIX, Receipt
from readers.contract.regular_files import digest_raw
from readers.contract.tiles import Size

THREADS, CHUNK, TOGETHER = 16, 256, 64
"""Chunks of files that are asked for by one thread, and by all threads before one tries alone again."""
SLOW = 50e-6
"""Seconds a file. If an answer takes longer, the disk or the network is waited for, and many threads wait together.
Otherwise threads are slower than one: each answer takes two microseconds, and they take turns to run Python."""
NO_STATE = -2
"""The mtime of a file that was not asked for, or that has no stamp. No file has it, nor one that cannot be read."""


class FileStates:
    """The size and times of the files of all pairs now. Each file is asked for once."""

    def __init__(self, raw: Path, refs: Sequence[RowRef]) -> None:
        self._raw, self._refs = str(raw), refs
        self._states = np.full((len(refs), 6), NO_STATE, np.int64)

    def of(self, numbers: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return (N,6): the state of the image and of the label of the pairs with these numbers."""
        new = numbers[self._states[numbers, 1] == NO_STATE]
        chunks = [new[first : first + CHUNK] for first in range(0, len(new), CHUNK)]
        with ThreadPoolExecutor(THREADS) as pool:
            while chunks:
                started, chunk = time.monotonic(), chunks.pop()
                self._states[chunk] = self._chunk(chunk)
                if time.monotonic() - started > 2 * len(chunk) * SLOW:
                    together, chunks = chunks[-TOGETHER:], chunks[:-TOGETHER]
                    for chunk, states in zip(together, pool.map(self._chunk, together), strict=True):
                        self._states[chunk] = states
        return self._states[numbers]

    def _chunk(self, numbers: NDArray[np.intp]) -> NDArray[np.int64]:
        raw, refs = self._raw, self._refs
        paths = [f"{raw}/{path}" for number in numbers.tolist() for path in refs[number].parts]
        return np.fromiter(chain.from_iterable(map(state_of, paths)), np.int64, 3 * len(paths)).reshape(-1, 6)


class PreviousBuild:
    """The stamps and receipts of a pack, compared with the sorted pairs and their files as they are now."""

    def __init__(
        self, out: Path, raw: Path, refs: Sequence[RowRef], stamps: Sequence[ShardStamps], trust: str = MTIME
    ) -> None:
        self._out, self._raw, self._refs, self._trust = out, raw, refs, trust
        self._stamps = stamps
        self._states = FileStates(raw, refs)
        self._numbers: dict[str, NDArray[np.intp]] = {}
        self._by_start = {(shard.recipe, shard.split, len(shard.records), shard.first_key): shard for shard in stamps}

    def sizes(self, judged: str) -> list[Size | None]:
        """Return the picture size of each unchanged pair whose headers were judged by the same rules, else None."""
        if self._trust == DIGEST:
            return [None] * len(self._refs)
        same, sizes = self._compare([shard for shard in self._stamps if shard.judged == judged])
        known = np.where(same & (sizes > 0).all(1), sizes[:, 0].astype(np.uint64) << np.uint64(32) | sizes[:, 1], 0)
        values, indices = np.unique(known, return_inverse=True)
        shared = [(value >> 32, value & 0xFFFFFFFF) if value else None for value in values.tolist()]
        return [shared[index] for index in indices.tolist()]

    def unchanged(self, recipe: str) -> list[bool]:
        """Return which pairs are in a shard of this recipe and have files of the same size and times."""
        same, _ = self._compare([shard for shard in self._stamps if shard.recipe == recipe])
        unchanged: list[bool] = same.tolist()
        return unchanged

    def _compare(self, stamps: Sequence[ShardStamps]) -> tuple[NDArray[np.bool_], NDArray[np.uint32]]:
        """Return which pairs have files in the state of their newest stamp, and the picture sizes in these stamps."""
        states = np.full((len(self._refs), 6), NO_STATE, np.int64)
        sizes = np.zeros((len(self._refs), 2), np.uint32)
        for shard in stamps:
            numbers = self._pairs_of(shard)
            found = numbers >= 0
            states[numbers[found]] = shard.records["state"][found]
            sizes[numbers[found]] = shard.records["size"][found]
        same = states[:, 1] != NO_STATE
        stamped = np.flatnonzero(same)
        same[stamped] = (states[stamped] == self._states.of(stamped)).all(1)
        return same, sizes

    def _pairs_of(self, shard: ShardStamps) -> NDArray[np.intp]:
        """Return the number of the pair of each row of a shard, -1 if no pair has its files.

        Both are sorted by key, so an unchanged shard is found in one piece.
        """
        if shard.stem not in self._numbers:
            rows = len(shard.records)
            start = bisect_left(self._refs, (shard.split, shard.first_key))
            if row_text(ref.texts for ref in self._refs[start : start + rows]) == shard.text:
                numbers = np.arange(start, start + rows)
            else:
                numbers = np.fromiter(map(self._by_files.get, shard.files, repeat(-1)), np.intp, rows)
            self._numbers[shard.stem] = numbers
        return self._numbers[shard.stem]

    @cached_property
    def _by_files(self) -> dict[str, int]:
        """The number of each pair, by its image and label."""
        return {"\0".join(ref.parts): number for number, ref in enumerate(self._refs)}

    def receipt(self, spec: ShardSpec, recipe: str, retry_bad: bool) -> Receipt | None:
        """Return the receipt of the shard that this spec would become, if that shard exists and has all its files."""
        pieces = spec.pieces
        stamps = self._by_start.get((recipe, spec.split, len(pieces), pieces[0].key))
        if stamps is None or stamps.text != row_text(piece.texts for piece in pieces):
            return None
        receipt = whole_shard(self._out / SHARDS / (stamps.stem + SUFFIX))
        if receipt is None or (retry_bad and receipt.rejects):
            return None
        if (receipt.recipe, receipt.split, len(receipt.sources)) != (recipe, spec.split, len(pieces)):
            return None
        now = self._states.of(self._pairs_of(stamps))
        differing = np.flatnonzero((stamps.records["state"] != now).any(1))
        if self._trust == DIGEST:
            differing = np.arange(len(pieces))
        if not len(differing) or self._same_digests(spec, receipt, stamps, differing):
            return receipt
        return None

    def _same_digests(self, spec: ShardSpec, receipt: Receipt, stamps: ShardStamps, indices: NDArray[np.intp]) -> bool:
        """Return whether the files of these pieces have the digests of the receipt. If so, renew the stamps."""
        states = stamps.records["state"].copy()
        for index in indices:  # before the bytes are read
            image, label = spec.pieces[index].ref.parts
            states[index] = (*state_to_keep(self._raw / image), *state_to_keep(self._raw / label))
        expected = {
            path: digest
            for index in indices
            for path, digest in zip(
                spec.pieces[index].ref.parts, (receipt.sources[index].image, receipt.sources[index].label), strict=True
            )
        }
        with ThreadPoolExecutor(THREADS) as pool:
            if not all(pool.map(lambda path: self._digest(path) == expected[path], expected)):
                return False
        records = stamps.records.copy()
        records["state"] = states
        write_stamps(self._out, stamps.stem, stamps.recipe, stamps.judged, records, stamps.text)
        return True

    def _digest(self, path: str) -> str | None:
        try:
            return digest_raw(self._raw / path)
        except OSError:
            return None
