"""Reuse: find the pairs and shards whose raw files did not change since they were packed."""

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
from readers.contract.files import sha256
from readers.contract.manifest import SHARDS
from readers.contract.receipt import SUFFIX, Receipt
from readers.contract.tiles import Size

THREADS, CHUNK = 16, 256
"""Where files are far away, one answer is waited for while others are asked for."""

Files = tuple[str, str]
"""An image and a label, below the raw folder."""


class States:
    """The states of pairs of files of one raw folder."""

    def __init__(self, raw: Path) -> None:
        self._raw = str(raw)
        self._places: dict[Files, int] = {}
        self._states: NDArray[np.int64] = np.empty((0, 6), np.int64)

    def of(self, files: Iterable[Files]) -> NDArray[np.int64]:
        """(N,6): the state of each image and of its label."""
        files = list(files)
        self._look(list(dict.fromkeys(pair for pair in files if pair not in self._places)))
        return self._states[[self._places[pair] for pair in files]]

    def _look(self, new: Sequence[Files]) -> None:
        known, found = len(self._places), len(self._places) + len(new)
        if found > len(self._states):
            self._states = np.concatenate([self._states[:known], np.empty((max(known, len(new)), 6), np.int64)])
        self._places.update(zip(new, range(known, found), strict=True))
        chunks = [new[start : start + CHUNK] for start in range(0, len(new), CHUNK)]
        with ThreadPoolExecutor(THREADS) as pool:
            for chunk, states in zip(chunks, pool.map(self._chunk, chunks), strict=True):
                self._states[known : known + len(chunk)] = states
                known += len(chunk)

    def _chunk(self, files: Sequence[Files]) -> NDArray[np.int64]:
        raw = self._raw
        return np.array(
            [(*state_of(f"{raw}/{image}"), *state_of(f"{raw}/{label}")) for image, label in files], np.int64
        )


THREADS = 16


class Known:
    """What the stamps of a pack tell of the raw files as they are now."""

    def __init__(self, out: Path, raw: Path, stamps: Sequence[ShardStamps], trust: str = MTIME) -> None:
        self._out, self._raw, self._trust = out, raw, trust
        self._stamps = stamps
        self._states = States(raw)
        self._hashed: tuple[Sequence[Pair], NDArray[np.uint64]] = ((), file_hashes(()))
        self._by_start: dict[tuple[str, int, int], ShardStamps] = {
            (one.recipe, len(one.records), int(one.records["row"][0, 0])): one for one in stamps if len(one.records)
        }

    def sizes(self, pairs: Sequence[Pair], judged: str) -> list[Size | None]:
        """The picture size of each pair that was judged by the same rules, and whose files are as they were."""
        same, found = self._as_they_were(pairs, [one for one in self._stamps if one.judged == judged])
        same &= (found["size"] > 0).all(1)
        return [(int(h), int(w)) if ok else None for ok, (h, w) in zip(same, found["size"].tolist(), strict=True)]

    def packed(self, pairs: Sequence[Pair], recipe: str) -> list[bool]:
        """Which pairs are, as they are now, in a shard of this recipe already."""
        same, _ = self._as_they_were(pairs, [one for one in self._stamps if one.recipe == recipe])
        return [bool(one) for one in same]

    def _as_they_were(
        self, pairs: Sequence[Pair], stamps: Sequence[ShardStamps]
    ) -> tuple[NDArray[np.bool_], NDArray[np.void]]:
        """Which pairs have a stamp and files that still look like it, and the newest stamp of each."""
        records = np.concatenate([np.zeros(1, RECORD), *(one.records for one in stamps)])
        if self._trust == DIGEST:
            records = records[:1]
        order = np.argsort(records["files"][:, 0], kind="stable")
        hashes = self._hashes(pairs)
        places = np.searchsorted(records["files"][order, 0], hashes[:, 0], side="right") - 1
        found = records[order[np.maximum(places, 0)]]
        same = (found["files"] == hashes).all(1)
        stamped = np.flatnonzero(same)
        now = self._states.of((pairs[place].image, pairs[place].label) for place in stamped.tolist())
        same[stamped] = (found["state"][stamped] == now).all(1)
        return same, found

    def _hashes(self, pairs: Sequence[Pair]) -> NDArray[np.uint64]:
        """Those of the last pairs are kept: the same are asked for by what judges them and by the recipe."""
        if self._hashed[0] is not pairs:
            self._hashed = (pairs, file_hashes((pair.image, pair.label) for pair in pairs))
        return self._hashed[1]

    def receipt(self, spec: ShardSpec, recipe: str, retry_bad: bool) -> Receipt | None:
        """The receipt of the shard that this spec would become, if it is there already, whole."""
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
        if not len(differing):
            return receipt
        return self._judged_by_digest(spec, receipt, stamps, differing)

    def _judged_by_digest(
        self, spec: ShardSpec, receipt: Receipt, stamps: ShardStamps, places: NDArray[np.intp]
    ) -> Receipt | None:
        """The receipt, if these files hold the bytes that they held; their stamps are renewed."""
        states = [  # before their bytes are read
            (state_to_keep(self._raw / piece.image), state_to_keep(self._raw / piece.label)) for piece in spec.pieces
        ]
        files = {
            path: digest
            for place in places
            for path, digest in zip(
                spec.pieces[place].files, (receipt.sources[place].image, receipt.sources[place].label), strict=True
            )
        }
        with ThreadPoolExecutor(THREADS) as pool:
            if not all(pool.map(lambda path: self._digest(path) == files[path], files)):
                return None
        rows = [
            RowStamp(piece.key, *piece.files, state, (int(size[0]), int(size[1])))
            for piece, state, size in zip(spec.pieces, states, stamps.records["size"], strict=True)
        ]
        write_stamps(self._out, stamps.stem, stamps.recipe, stamps.judged, spec.split, rows)
        return receipt

    def _digest(self, path: str) -> str | None:
        try:
            return sha256(self._raw / path)
        except OSError:
            return None
