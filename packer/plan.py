"""The plan: what will be packed, known before a pixel is decoded - shards, sizes, bad pairs, bytes, free disk."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

from packer.audit import audit, no_classes
from packer.class_table import class_table
from packer.engines import TASK_TIMEOUT
from packer.errors import BadPair, InputError, TargetError, UsageError
from packer.eyes import Eyes
from packer.formats import writer
from packer.geometry import NATIVE, TILE, Geometry
from packer.labels import AUTO, BINARY, BINARY_CLASSES, LabelRules, settle
from packer.pairing import Pair, Pairing, PairingRules, find_pairs
from packer.pictures.decode import decoder_identity
from packer.pictures.rules import MOST_PIXELS, ImageRules
from packer.piece import Piece, pieces
from packer.recipe import Recipe
from packer.rows import check_pair
from packer.spec import ShardSpec, cut
from readers.contract.classes import ClassTable
from readers.contract.errors import DamagedError, NoPackError
from readers.contract.manifest import Manifest
from readers.contract.tiles import Size

MIB = 1 << 20
SHARD_SLACK = 64 << 10
"""For the disk to be thought large enough: headers, page ends, keys and the receipt of a shard."""
CHECK_THREADS = 16
"""Reading headers waits for the disk more than for the processor."""


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


@dataclass(frozen=True)
class Plan:
    """What a build will do."""

    request: Request
    recipe: Recipe
    pairing: Pairing
    specs: tuple[ShardSpec, ...]
    sizes: Counter[Size]
    rejects: tuple[str, ...]
    free_bytes: int
    current: Manifest | None
    """What is packed at the target now."""

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
    def needed_bytes(self) -> int:
        """What the disk must have free."""
        again = self.current.bytes if self.current and self.current.recipe == self.recipe.to_json() else 0
        return max(0, self.bytes - again) + len(self.specs) * SHARD_SLACK

    def check_disk(self) -> None:
        """Refuse beforehand what the disk cannot hold."""
        if self.needed_bytes > self.free_bytes:
            advice = "" if self.index_bytes is None else f"; --labels index needs {self.index_bytes:,} bytes"
            need = f"needs about {self.needed_bytes:,} bytes, the disk has {self.free_bytes:,} free"
            raise TargetError(f"{self.request.out}: {need}{advice}")


def make_plan(request: Request) -> Plan:
    """Find the pairs, judge every header, and cut the shards."""
    _check_options(request)
    pairing = find_pairs(request.raw, request.pairing, leave_out=request.out)
    eyes = Eyes(request.raw, request.workers, request.task_timeout, request.max_pixels)
    classes = class_table(request.raw, request.classes, request.ignore)
    if classes is None and request.label_codec == BINARY:
        classes = BINARY_CLASSES
    if classes is None:
        raise no_classes(eyes, request.raw, pairing.pairs)
    rules = settle(LabelRules(request.label_codec, request.unknown, request.threshold, request.divisor), classes)
    image_rules = ImageRules(request.image_range, request.alpha, request.max_pixels)
    sizes, verdicts = _check_headers(pairing.pairs, request.raw, image_rules, rules.lossy)
    wrong = audit(eyes, pairing.pairs, classes, rules, request.label_codec, request.palettes_differ)
    rejects = [reason for _, reason in sorted({**verdicts, **wrong}.items())]
    recipe = Recipe(
        storage=request.storage,
        classes=classes,
        geometry=_geometry(request, sizes, rejects),
        image_dtype=request.image_dtype,
        labels=request.labels,
        image_rules=image_rules,
        label_rules=rules,
        shard_bytes=request.shard_bytes,
        image_template=pairing.image_template,
        label_template=pairing.label_template,
        tools=(decoder_identity(), writer(request.storage).tool()),
    )
    specs = [
        ShardSpec(split, shard, recipe)
        for split, members in groupby(zip(pairing.pairs, sizes, strict=True), key=lambda member: member[0].split)
        for shard in cut(_pieces(members, recipe.geometry), recipe)
    ]
    counts = Counter(size for size in sizes if size is not None)
    return Plan(request, recipe, pairing, tuple(specs), counts, tuple(rejects), *_target(request.out))


def _check_options(request: Request) -> None:
    """Options that need others."""
    if request.fit == NATIVE and request.size not in (None, NATIVE):
        raise UsageError("--fit native: keeps every picture's own size, so --size makes no sense beside it")
    if request.size == NATIVE and request.fit not in (None, NATIVE):
        raise UsageError(
            f"--size native: keeps every picture as it is, so --fit {request.fit} makes no sense beside it"
        )
    if request.fit not in (None, "stretch", NATIVE) and request.size is None:
        raise UsageError(f"--fit {request.fit}: needs --size, the size that the pictures are fitted to")
    if (request.overlap or request.edge != "pad") and request.fit != TILE:
        raise UsageError("--overlap and --edge: are for --fit tile")
    if isinstance(request.size, tuple) and request.overlap >= min(request.size):
        raise UsageError(
            f"--overlap {request.overlap}: must be smaller than the tiles, which are {_shown(request.size)}"
        )
    if isinstance(request.size, tuple) and request.size[0] * request.size[1] > MOST_PIXELS:
        raise UsageError(f"--size {_shown(request.size)}: is over the limit of {MOST_PIXELS} pixels")


def _geometry(request: Request, sizes: Sequence[Size | None], rejects: Sequence[str]) -> Geometry:
    if NATIVE in (request.size, request.fit):
        return Geometry(None, NATIVE, request.interpolation)
    size = request.size if isinstance(request.size, tuple) else _common_size(sizes, rejects)
    return Geometry(size, request.fit or "stretch", request.interpolation, request.overlap, request.edge)


def _pieces(members: Iterable[tuple[Pair, Size | None]], geometry: Geometry) -> Iterator[Piece]:
    return (piece for pair, size in members for piece in pieces(pair, size, geometry))


def _check_headers(
    pairs: Sequence[Pair], raw: Path, rules: ImageRules, lossy_labels: bool
) -> tuple[list[Size | None], dict[int, str]]:
    """The size of each pair, None for a bad one, and what is wrong with the bad ones by their place."""

    def judge(pair: Pair) -> Size | str:
        try:
            return check_pair(pair, raw, rules, lossy_labels)
        except BadPair as bad:
            return str(bad)

    with ThreadPoolExecutor(CHECK_THREADS) as pool:
        verdicts = list(pool.map(judge, pairs))
    sizes = [None if isinstance(verdict, str) else verdict for verdict in verdicts]
    return sizes, {place: verdict for place, verdict in enumerate(verdicts) if isinstance(verdict, str)}


def _common_size(sizes: Sequence[Size | None], rejects: Sequence[str]) -> Size:
    """The size that all pictures have; where they differ, the user must choose one."""
    counts = Counter(size for size in sizes if size is not None)
    if not counts:
        raise InputError("every pair is bad; mend them", rejects)
    if len(counts) > 1:
        shown = [f"{_shown(size)}: {count} pairs" for size, count in counts.most_common(20)]
        more = [f"… and {len(counts) - 20} more sizes"] if len(counts) > 20 else []
        raise InputError(
            "the pictures have several sizes (height x width); choose one, such as --size 512x512, and how they are "
            "fitted: --fit stretch, letterbox, crop-or-pad, shorter-side or tile; or keep each one's: --size native",
            [*shown, *more],
        )
    return next(iter(counts))


def _shown(size: Size) -> str:
    return f"{size[0]}x{size[1]}"


def _target(out: Path) -> tuple[int, Manifest | None]:
    """Free bytes on the disk that `out` is or will be on, and what is packed there now."""
    place = out.absolute()
    while not place.exists():
        place = place.parent
    try:
        current = Manifest.load(out)
    except (NoPackError, DamagedError):
        current = None
    return shutil.disk_usage(place).free, current
