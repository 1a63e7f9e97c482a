"""The plan: what will be packed, known before a pixel is decoded - shards, sizes, bad pairs, bytes, free disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from packer.errors import TargetError
from packer.pairs.find import Pairing
from packer.pixels.resize import NATIVE
from packer.plan.request import Request
from packer.recipe.recipe import Recipe
from packer.recipe.shard_spec import ShardSpec
from readers.contract.manifest import Manifest
from readers.contract.receipt import Receipt
from readers.contract.tiles import Size

SHARD_SLACK = 64 << 10
"""For the disk to be thought large enough: headers, page ends, keys and the receipt of a shard."""


@dataclass(frozen=True)
class Plan:
    """What a build will do."""

    request: Request
    recipe: Recipe
    pairing: Pairing
    specs: tuple[ShardSpec, ...]
    reused: Mapping[int, Receipt]
    """The shards that are there already, by the number of their spec."""
    sizes: Counter[Size]
    rejects: tuple[str, ...]
    free_bytes: int
    current: Manifest | None
    """What is packed at the target now."""
    seconds: Mapping[str, float]
    """What planning took, by its stages."""

    @property
    def pairs(self) -> int:
        return len(self.pairing.pairs)

    @property
    def pieces(self) -> int:
        """Rows, were none rejected: the pairs, or their tiles. A pair that is bad by its headers counts as one."""
        return sum(len(spec.pieces) for spec in self.specs)

    @property
    def rows(self) -> int:
        """The pieces that are good as far as their headers tell."""
        return self.pieces - len(self.rejects)

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(spec.split for spec in self.specs))

    @property
    def bytes(self) -> int:
        """What the rows will take; headers, keys and receipts are small beside them."""
        return self._bytes(self.recipe)

    @property
    def index_bytes(self) -> int | None:
        """What they would take with --labels index, where stored planes are most of the pack."""
        image, label = self.recipe.fields
        if label.encoding != "onehot" or label.row_bytes_at(1, 1) <= image.row_bytes_at(1, 1):
            return None
        return self._bytes(replace(self.recipe, labels="index"))

    def _bytes(self, recipe: Recipe) -> int:
        if recipe.geometry.fit != NATIVE:
            return self.rows * recipe.piece_bytes(self.specs[0].pieces[0])
        return sum(recipe.piece_bytes(piece) for spec in self.specs for piece in spec.pieces)

    @property
    def new_specs(self) -> dict[int, ShardSpec]:
        """The shards that have to be built, by their number."""
        return {number: spec for number, spec in enumerate(self.specs) if number not in self.reused}

    @property
    def needed_bytes(self) -> int:
        """What the disk must have free."""
        pieces = sum(len(spec.pieces) for spec in self.new_specs.values())
        return self.bytes * pieces // max(1, self.pieces) + len(self.new_specs) * SHARD_SLACK

    def check_disk(self) -> None:
        """Refuse beforehand what the disk cannot hold."""
        if self.needed_bytes > self.free_bytes:
            advice = "" if self.index_bytes is None else f"; --labels index needs {self.index_bytes:,} bytes"
            need = f"needs about {self.needed_bytes:,} bytes, the disk has {self.free_bytes:,} free"
            raise TargetError(f"{self.request.out}: {need}{advice}")
