"""The plan: what will be packed, known before a pixel is decoded - shards, sizes, bad pairs, bytes, free disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from packer.engines import TASK_TIMEOUT
from packer.errors import TargetError
from packer.geometry import NATIVE
from packer.labels import AUTO
from packer.pairing import Pairing, PairingRules
from packer.pictures.rules import MOST_PIXELS
from packer.recipe import Recipe
from packer.reuse import MTIME
from packer.spec import ShardSpec
from readers.contract.classes import ClassTable
from readers.contract.manifest import Manifest
from readers.contract.receipt import Receipt
from readers.contract.tiles import Size

MIB = 1 << 20
SHARD_SLACK = 64 << 10
"""For the disk to be thought large enough: headers, page ends, keys and the receipt of a shard."""


@dataclass(frozen=True)
class Request:
    """What the user asked for, one attribute per option of `packer build`; None where it is to be found out."""

    raw: Path
    out: Path
    storage: str = "npy"
    pairing: PairingRules = field(default_factory=PairingRules)
    classes: str | ClassTable | None = None
    ignore: tuple[str, ...] = ()
    label_codec: str = AUTO
    unknown: str = "error"
    threshold: int | None = None
    divisor: int = 1000
    size: Size | str | None = None
    fit: str | None = None
    overlap: int = 0
    edge: str = "pad"
    interpolation: str = "area"
    labels: str = "onehot"
    image_dtype: str = "uint8"
    image_range: tuple[float, float] | None = None
    alpha: str = "refuse"
    max_pixels: int = MOST_PIXELS
    shard_bytes: int = 128 * MIB
    palettes_differ: bool = False
    near_duplicates: bool = False
    workers: int = 1
    task_timeout: int = TASK_TIMEOUT
    trust: str = MTIME
    retry_bad: bool = False


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
