"""Cut pieces into shards. The keys decide where, so that history leaves no trace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from packer.pixels.resize import Geometry
from packer.recipe.blocks import Blocks
from packer.recipe.piece import Piece, PieceTable, keys_of
from packer.recipe.recipe import Recipe
from packer.recipe.ref_table import CHUNK, RefTable


def parts_of(
    refs: RefTable, sizes: NDArray[np.uint32], rows: range, geometry: Geometry, blocks: Blocks | None = None
) -> Iterator[PieceTable]:
    """Yield the pieces of the rows of a split, those with the same fields together: the parts of the split in order."""
    presence = refs.presence(rows.start, rows.stop)
    numbers = sorted(set(presence.tolist()), reverse=True)  # np.unique would import masked arrays, every night
    for number in numbers if len(numbers) > 1 else ():
        chosen = presence == number
        part = refs.chosen(rows.start, rows.stop, chosen)
        yield PieceTable(part, sizes[rows.start : rows.stop][chosen], geometry, range(len(part)), blocks)
    if len(numbers) == 1:
        yield PieceTable(refs, sizes, geometry, rows, blocks)


def cut(pieces: Sequence[Piece], recipe: Recipe) -> Iterator[Sequence[Piece]]:
    """Cut sorted pieces into shards. The hashes of the keys decide where.

    Pieces have weights. A shard holds `full` of them on average. The weight is 1 if all rows have one size, else the
    bytes of the row. A shard weighs full/2 to 2*full; the last of a split may weigh less, a single piece more. A shard
    ends after the first key, from full/2 on, whose hash is in the lowest weight/full of all hashes. If no key has such
    a hash, it ends after the key with the lowest. So a pair that is added or removed moves the nearest boundary only,
    rarely a few more.
    """
    start = 0
    for end in _ends(*recipe.weights(pieces), key_hashes(keys_of(pieces))) if len(pieces) else ():
        yield pieces[start:end]
        start = end


def _ends(weights: NDArray[np.int64], full: int, hashes: NDArray[np.uint64]) -> Iterator[int]:
    """Yield the end of each shard. Where it is depends only on the pieces from its start on."""
    total = np.cumsum(weights)
    full = min(full, 2 * int(total[-1]) + 2)  # that much is never reached, and it fits in 64 bits
    low = np.flatnonzero(_are_low(weights, full, hashes))
    start = before = 0
    while start < len(weights):
        first = int(
            np.searchsorted(total, before + max(1, full // 2))
        )  # the shard may end after this piece, or a later
        last = int(np.searchsorted(total, before + 2 * full))  # and must end after this one
        is_last = last >= len(weights)
        if not is_last and last > start and total[last] > before + 2 * full:
            last -= 1  # with this piece, the shard would be too heavy
        next_low = int(np.searchsorted(low, first))
        if next_low < len(low) and low[next_low] <= last:
            start = int(low[next_low]) + 1
        elif is_last:
            start = len(weights)
        else:
            start = 1 + (last if first > last else first + int(hashes[first : last + 1].argmin()))
        before = int(total[start - 1])
        yield start


def _are_low(weights: NDArray[np.int64], full: int, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return which hashes are in the lowest weight/full of all hashes."""
    low = np.empty(len(hashes), np.bool_)
    for first in range(0, len(hashes), CHUNK):  # numpy.unique takes several times the memory of the weights
        some = slice(first, first + CHUNK)
        values, indices = np.unique(weights[some], return_inverse=True)
        highest = np.array([min((weight << 64) // full, 1 << 64) - 1 for weight in values.tolist()], np.uint64)
        low[some] = hashes[some] <= highest[indices]
    return low


def key_hashes(keys: Iterable[str]) -> NDArray[np.uint64]:
    """Return a hash of each key."""
    rest, hashes = iter(keys), [np.empty(0, np.uint64)]
    while digests := b"".join([blake2b(key.encode(), digest_size=8).digest() for key in islice(rest, CHUNK)]):
        hashes.append(np.frombuffer(digests, ">u8").astype(np.uint64))
    return np.concatenate(hashes)
