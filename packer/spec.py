"""The shard spec: the pairs of one shard and the recipe, as JSON. It is the unit of everything that `packer` does."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b

from packer.errors import EngineError
from packer.pairing import Pair
from packer.recipe import Recipe
from readers.contract.checked import Entry, Problem


@dataclass(frozen=True)
class ShardSpec:
    """What one shard is to be made of: any worker on any machine makes the same bytes of it."""

    split: str
    pairs: tuple[Pair, ...]
    recipe: Recipe

    def to_text(self) -> str:
        pairs = [[pair.key, pair.image, pair.label] for pair in self.pairs]
        return json.dumps({"split": self.split, "pairs": pairs, "recipe": self.recipe.to_json()})

    @classmethod
    def from_text(cls, text: str) -> ShardSpec:
        problems: list[Problem] = []
        entry = Entry(json.loads(text), "", problems)
        split = entry.text("split")
        pairs = tuple(Pair(split, key, image, label) for key, image, label in entry.lists("pairs"))
        spec = cls(split, pairs, Recipe.from_json(entry.entry("recipe")))
        entry.close()
        if problems:
            raise EngineError("a shard spec is not valid: " + "; ".join(str(problem) for problem in problems))
        return spec


def cut(pairs: Iterable[Pair], rows: int) -> Iterator[tuple[Pair, ...]]:
    """Cut sorted pairs into shards of about `rows`, at places that the keys themselves decide.

    A shard has rows/2 to 2*rows pairs (the last of a split may have fewer). It ends after the first key, from rows/2
    on, whose hash is in the lowest 1/rows of all hashes; where there is none, after the key with the lowest hash. So a
    pair that comes or goes moves the boundary beside it, rarely a few more.
    """
    least, most = max(1, rows // 2), 2 * rows
    threshold = (1 << 64) // rows
    waiting: list[Pair] = []
    hashes: list[int] = []
    for pair in pairs:
        waiting.append(pair)
        hashes.append(_hash(pair.key))
        if len(waiting) >= least and hashes[-1] < threshold:
            end = len(waiting)
        elif len(waiting) == most:
            end = min(range(least - 1, most), key=hashes.__getitem__) + 1
        else:
            continue
        yield tuple(waiting[:end])
        del waiting[:end], hashes[:end]
    if waiting:
        yield tuple(waiting)


def _hash(key: str) -> int:
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big")
