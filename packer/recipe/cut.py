"""Cut pieces into shards. The keys decide where, so that history leaves no trace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b

from packer.recipe.piece import Piece
from packer.recipe.recipe import Recipe


def cut(pieces: Iterable[Piece], recipe: Recipe) -> Iterator[tuple[Piece, ...]]:
    """Cut sorted pieces into shards. The hashes of the keys decide where.

    Pieces have weights, of which a shard holds `full` on average. The weight is 1 if all rows have one size, else the
    bytes of the row. A shard weighs full/2 to 2*full; the last of a split may weigh less, a single piece more. A shard
    ends after the first key, from full/2 on, whose hash is in the lowest weight/full of all hashes. If no key has such
    a hash, it ends after the key with the lowest. So a pair that is added or removed moves the nearest boundary only,
    rarely a few more.
    """
    waiting = _Waiting()
    for piece in pieces:
        weight, full = recipe.weight(piece)
        while waiting.pieces and waiting.weight + weight > 2 * full:  # with this piece, the shard would be too heavy
            yield waiting.cut(full)
        digest = _hash(piece.key)
        waiting.add((piece, weight, digest), full)
        if waiting.weight >= max(1, full // 2) and digest < (weight << 64) // full:
            yield waiting.cut_all()
        elif waiting.weight >= 2 * full:
            yield waiting.cut(full)
    if waiting.pieces:
        yield waiting.cut_all()


_Weighed = tuple[Piece, int, int]
"""A piece, its weight and its hash."""


class _Waiting:
    """Pieces that are not in a shard yet, and how many of them a cut after the lowest hash would take."""

    def __init__(self) -> None:
        self.pieces: list[_Weighed] = []
        self._clear()

    def _clear(self) -> None:
        self.pieces.clear()
        self.weight, self._end, self._lowest = 0, 0, 1 << 64

    def add(self, weighed: _Weighed, full: int) -> None:
        _, weight, digest = weighed
        self.pieces.append(weighed)
        self.weight += weight
        if digest < self._lowest and self.weight >= max(1, full // 2):
            self._end, self._lowest = len(self.pieces), digest

    def cut(self, full: int) -> tuple[Piece, ...]:
        """Return a shard up to the lowest hash; keep the pieces after it."""
        end = self._end or len(self.pieces)
        shard, left = self.pieces[:end], self.pieces[end:]
        self._clear()
        for weighed in left:
            self.add(weighed, full)
        return tuple(piece for piece, _, _ in shard)

    def cut_all(self) -> tuple[Piece, ...]:
        """Return a shard of all pieces."""
        shard = tuple(piece for piece, _, _ in self.pieces)
        self._clear()
        return shard


def _hash(key: str) -> int:
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big")
