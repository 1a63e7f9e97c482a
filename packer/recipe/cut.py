"""Cutting pieces into shards, at boundaries that the keys themselves decide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b

from packer.recipe.piece import Piece
from packer.recipe.recipe import Recipe


def cut(pieces: Iterable[Piece], recipe: Recipe) -> Iterator[tuple[Piece, ...]]:
    """Cut sorted pieces into shards, at places that the keys themselves decide.

    Pieces have weights, of which a shard holds `full` on average: 1 each where all rows are of one size, else their
    bytes. A shard weighs full/2 to 2*full (the last of a split may weigh less, a single piece more). It ends after the
    first key, from full/2 on, whose hash is in the lowest weight/full of all hashes; where there is none, after the key
    with the lowest hash. So a pair that comes or goes moves the boundary beside it, rarely a few more.
    """
    waiting = _Waiting()
    for piece in pieces:
        weight, full = recipe.weight(piece)
        while waiting.pieces and waiting.weight + weight > 2 * full:  # without this one, or the shard is too heavy
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
    """Pieces that have no shard yet, and after how many of them the lowest hash would end one."""

    def __init__(self) -> None:
        self.pieces: list[_Weighed] = []
        self._clear()

    def _clear(self) -> None:
        self.pieces.clear()
        self.weight, self._end, self._lowest = 0, 0, 1 << 64

    def add(self, one: _Weighed, full: int) -> None:
        _, weight, digest = one
        self.pieces.append(one)
        self.weight += weight
        if digest < self._lowest and self.weight >= max(1, full // 2):
            self._end, self._lowest = len(self.pieces), digest

    def cut(self, full: int) -> tuple[Piece, ...]:
        """A shard up to the lowest hash; what comes after it waits on."""
        end = self._end or len(self.pieces)
        shard, left = self.pieces[:end], self.pieces[end:]
        self._clear()
        for one in left:
            self.add(one, full)
        return tuple(piece for piece, _, _ in shard)

    def cut_all(self) -> tuple[Piece, ...]:
        """A shard of everything."""
        shard = tuple(piece for piece, _, _ in self.pieces)
        self._clear()
        return shard


def _hash(key: str) -> int:
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big")
