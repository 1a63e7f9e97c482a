"""Find the pairs and shards whose raw files did not change since they were packed.

The stamps of a shard (shards/stamps.py) hold the size and times of its raw files when they were read. A pair whose
files still have them is not opened. A shard of the plan whose rows all have the stamps of one existing shard of the
same recipe *is* that shard. If only times differ, or with `--trust digest`, the SHA-256 digests in its receipt decide.
The finished shards of a killed build have stamps, too, so resuming a build is the same thing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from packer.config.options import DIGEST, MTIME
from packer.pairs.pair import Pair
from packer.recipe.shard_spec import ShardSpec
from packer.shards.build_shard import whole_shard
from packer.shards.stamps import (
    RECORD,
    RowStamp,
    ShardStamps,
    file_hashes,
    row_hashes,
    state_of,
    state_to_keep,
    write_stamps,
)
from readers.contract.manifest import SHARDS
from readers.contract.receipt import SUFFIX, Receipt
from readers.contract.regular_files import digest_raw
from readers.contract.tiles import Size

THREADS, CHUNK = 16, 256
"""On a network file system, each thread waits for the answer to its own chunk of files."""

Files = tuple[str, str]
"""An image and a label, relative to the raw folder."""


class FileStates:
    """The size and times of raw files now. Each file is asked for once."""

    def __init__(self, raw: Path) -> None:
        self._raw = str(raw)
        self._rows: dict[Files, int] = {}
        self._states: NDArray[np.int64] = np.empty((0, 6), np.int64)

    def of(self, files: Iterable[Files]) -> NDArray[np.int64]:
        """Return (N,6): the state of each image and of its label."""
        files = list(files)
        self._ask(list(dict.fromkeys(pair for pair in files if pair not in self._rows)))
        return self._states[[self._rows[pair] for pair in files]]

    def _ask(self, new: Sequence[Files]) -> None:
        start, end = len(self._rows), len(self._rows) + len(new)
        if end > len(self._states):
            self._states = np.concatenate([self._states[:start], np.empty((max(start, len(new)), 6), np.int64)])
        self._rows.update(zip(new, range(start, end), strict=True))
        chunks = [new[first : first + CHUNK] for first in range(0, len(new), CHUNK)]
        with ThreadPoolExecutor(THREADS) as pool:
            for chunk, states in zip(chunks, pool.map(self._chunk, chunks), strict=True):
                self._states[start : start + len(chunk)] = states
                start += len(chunk)

    def _chunk(self, files: Sequence[Files]) -> NDArray[np.int64]:
        raw = self._raw
        return np.array(
            [(*state_of(f"{raw}/{image}"), *state_of(f"{raw}/{label}")) for image, label in files], np.int64
        )


class PreviousBuild:
    """The stamps and receipts of a pack, compared with the raw files as they are now."""

    def __init__(self, out: Path, raw: Path, stamps: Sequence[ShardStamps], trust: str = MTIME) -> None:
        self._out, self._raw, self._trust = out, raw, trust
        self._stamps = stamps
        self._states = FileStates(raw)
        self._hashed: tuple[Sequence[Pair], NDArray[np.uint64]] = ((), file_hashes(()))
        self._by_start: dict[tuple[str, int, int], ShardStamps] = {
            (shard.recipe, len(shard.records), int(shard.records["row"][0, 0])): shard
            for shard in stamps
            if len(shard.records)
        }

    def sizes(self, pairs: Sequence[Pair], judged: str) -> list[Size | None]:
        """Return the picture size of each unchanged pair whose headers were judged by the same rules, else None."""
        if self._trust == DIGEST:
            return [None] * len(pairs)
        same, found = self._compare(pairs, [shard for shard in self._stamps if shard.judged == judged])
        same &= (found["size"] > 0).all(1)
        return [(int(h), int(w)) if ok else None for ok, (h, w) in zip(same, found["size"].tolist(), strict=True)]

    def unchanged(self, pairs: Sequence[Pair], recipe: str) -> list[bool]:
        """Return which pairs are in a shard of this recipe and have files of the same size and times."""
        same, _ = self._compare(pairs, [shard for shard in self._stamps if shard.recipe == recipe])
        return [bool(pair) for pair in same]

    def _compare(
        self, pairs: Sequence[Pair], stamps: Sequence[ShardStamps]
    ) -> tuple[NDArray[np.bool_], NDArray[np.void]]:
        """Return which pairs have a stamp that fits their files now, and the newest stamp of each pair."""
        records = np.concatenate([np.zeros(1, RECORD), *(shard.records for shard in stamps)])
        order = np.argsort(records["files"][:, 0], kind="stable")
        hashes = self._hashes(pairs)
        last = np.searchsorted(records["files"][order, 0], hashes[:, 0], side="right") - 1
        found = records[order[np.maximum(last, 0)]]
        same = (found["files"] == hashes).all(1)
        stamped = np.flatnonzero(same)
        now = self._states.of((pairs[index].image, pairs[index].label) for index in stamped.tolist())
        same[stamped] = (found["state"][stamped] == now).all(1)
        return same, found

    def _hashes(self, pairs: Sequence[Pair]) -> NDArray[np.uint64]:
        """Return the hashes of the pairs' paths. Those of the last call are kept, as `sizes` and `unchanged` share."""
        if self._hashed[0] is not pairs:
            self._hashed = (pairs, file_hashes((pair.image, pair.label) for pair in pairs))
        return self._hashed[1]

    def receipt(self, spec: ShardSpec, recipe: str, retry_bad: bool) -> Receipt | None:
        """Return the receipt of the shard that this spec would become, if that shard exists and has all its files."""
        pieces = spec.pieces
        hashes = row_hashes(spec.split, ((piece.key, piece.image, piece.label) for piece in pieces))
        stamps = self._by_start.get((recipe, len(pieces), int(hashes[0, 0])))
        if stamps is None or not (stamps.records["row"] == hashes).all():
            return None
        receipt = whole_shard(self._out / SHARDS / (stamps.stem + SUFFIX))
        if receipt is None or (retry_bad and receipt.rejects):
            return None
        if (receipt.recipe, receipt.split, len(receipt.sources)) != (recipe, spec.split, len(pieces)):
            return None
        now = self._states.of(piece.files for piece in pieces)
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
            image, label = spec.pieces[index].files
            states[index] = (*state_to_keep(self._raw / image), *state_to_keep(self._raw / label))
        expected = {
            path: digest
            for index in indices
            for path, digest in zip(
                spec.pieces[index].files, (receipt.sources[index].image, receipt.sources[index].label), strict=True
            )
        }
        with ThreadPoolExecutor(THREADS) as pool:
            if not all(pool.map(lambda path: self._digest(path) == expected[path], expected)):
                return False
        rows = [
            RowStamp(piece.key, *piece.files, ((s[0], s[1], s[2]), (s[3], s[4], s[5])), (size[0], size[1]))
            for piece, s, size in zip(spec.pieces, states.tolist(), stamps.records["size"].tolist(), strict=True)
        ]
        write_stamps(self._out, stamps.stem, stamps.recipe, stamps.judged, spec.split, rows)
        return True

    def _digest(self, path: str) -> str | None:
        try:
            return digest_raw(self._raw / path)
        except OSError:
            return None
