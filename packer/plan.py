"""The plan: what will be packed, known before a pixel is decoded - shards, sizes, bad pairs, bytes, free disk."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

from packer.class_table import TABLE_NAMES, class_table
from packer.errors import BadPair, InputError, TargetError, UsageError
from packer.formats import writer
from packer.geometry import Geometry
from packer.header import MOST_PIXELS
from packer.images import decode_label, decoder_identity
from packer.pairing import Pair, Pairing, PairingRules, find_pairs
from packer.recipe import Recipe
from packer.rows import check_pair, open_picture
from packer.spec import ShardSpec, cut
from readers.contract.errors import DamagedError, NoPackError
from readers.contract.manifest import Manifest

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
    classes: str | None = None
    ignore: tuple[str, ...] = ()
    unknown: str = "error"
    size: tuple[int, int] | None = None
    fit: str = "stretch"
    interpolation: str = "area"
    labels: str = "onehot"
    image_dtype: str = "uint8"
    shard_bytes: int = 128 * MIB


@dataclass(frozen=True)
class Plan:
    """What a build will do."""

    request: Request
    recipe: Recipe
    pairing: Pairing
    specs: tuple[ShardSpec, ...]
    sizes: Counter[tuple[int, int]]
    rejects: tuple[str, ...]
    free_bytes: int
    current: Manifest | None
    """What is packed at the target now."""

    @property
    def pairs(self) -> int:
        return sum(len(spec.pairs) for spec in self.specs)

    @property
    def rows(self) -> int:
        """The pairs that are good as far as their headers tell."""
        return self.pairs - len(self.rejects)

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(spec.split for spec in self.specs))

    @property
    def bytes(self) -> int:
        """What the rows will take; headers, keys and receipts are small beside them."""
        return self.rows * self.recipe.row_bytes

    @property
    def index_bytes(self) -> int | None:
        """What they would take with --labels index, where stored planes are most of the pack."""
        image, label = self.recipe.fields
        if label.encoding != "onehot" or label.row_bytes <= image.row_bytes:
            return None
        return self.rows * replace(self.recipe, labels="index").row_bytes

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
    if request.fit != "stretch" and request.size is None:
        raise UsageError(f"--fit {request.fit}: needs --size, the size that the pictures are fitted to")
    pairing = find_pairs(request.raw, request.pairing, leave_out=request.out)
    classes = class_table(request.raw, request.classes, request.ignore)
    if classes is None:
        raise _no_classes(request.raw, pairing)
    sizes, rejects = _check_headers(pairing.pairs, request.raw)
    size = request.size or _common_size(sizes, rejects)
    if size[0] * size[1] > MOST_PIXELS:
        raise InputError(f"--size {size[0]}x{size[1]}: is over the limit of {MOST_PIXELS} pixels")
    recipe = Recipe(
        storage=request.storage,
        classes=classes,
        geometry=Geometry(size, request.fit, request.interpolation),
        image_dtype=request.image_dtype,
        labels=request.labels,
        unknown=request.unknown,
        shard_bytes=request.shard_bytes,
        image_template=pairing.image_template,
        label_template=pairing.label_template,
        tools=(decoder_identity(), writer(request.storage).tool()),
    )
    specs = [
        ShardSpec(split, pairs, recipe)
        for split, members in groupby(pairing.pairs, key=lambda pair: pair.split)
        for pairs in cut(members, recipe.shard_rows)
    ]
    return Plan(request, recipe, pairing, tuple(specs), sizes, tuple(rejects), *_target(request.out))


def _check_headers(pairs: Sequence[Pair], raw: Path) -> tuple[Counter[tuple[int, int]], list[str]]:
    """The sizes of the good pairs, and what is wrong with the bad ones."""

    def judge(pair: Pair) -> tuple[int, int] | str:
        try:
            return check_pair(pair, raw)
        except BadPair as bad:
            return str(bad)

    with ThreadPoolExecutor(CHECK_THREADS) as pool:
        verdicts = list(pool.map(judge, pairs))
    rejects = [verdict for verdict in verdicts if isinstance(verdict, str)]
    return Counter(verdict for verdict in verdicts if not isinstance(verdict, str)), rejects


def _common_size(sizes: Counter[tuple[int, int]], rejects: Sequence[str]) -> tuple[int, int]:
    """The one size that all pictures have."""
    if not sizes:
        raise InputError("every pair is bad; mend them", rejects)
    if len(sizes) > 1:
        shown = [f"{height}x{width}: {count} pairs" for (height, width), count in sizes.most_common(20)]
        more = [f"… and {len(sizes) - 20} more sizes"] if len(sizes) > 20 else []
        raise InputError(
            "the pictures have several sizes (height x width); choose one, such as --size 512x512, and how they are "
            "fitted: --fit stretch, letterbox or crop-or-pad",
            [*shown, *more],
        )
    return next(iter(sizes))


def _no_classes(raw: Path, pairing: Pairing) -> InputError:
    """Show what the labels hold, so that the answer can be typed at once."""
    found: set[int] = set()
    looked_at = pairing.pairs[:: max(1, len(pairing.pairs) // 16)][:16]
    for pair in looked_at:
        try:
            with open_picture(raw / pair.label) as file:
                pixels = decode_label(file.read(), as_index=True)
        except (BadPair, OSError):
            continue
        if pixels.ndim == 2:
            found |= set(pixels.reshape(-1).tolist())
    summary = f"{raw}: no class table; put {TABLE_NAMES[0]} (name,r,g,b) there, or name one with --classes FILE"
    if not found:
        return InputError(summary)
    classes = [value for value in found if value != 255]
    proposal = f"perhaps --classes {max(classes, default=0) + 1}" + (" --ignore 255" if 255 in found else "")
    if len(classes) < 2 <= len(found):
        proposal = f"perhaps --classes {','.join(map(str, sorted(found)))}"
    values = ", ".join(map(str, sorted(found)[:30])) + (", …" if len(found) > 30 else "")
    return InputError(
        f"{summary}; the labels hold numbers, so a number of classes will do, {proposal}",
        [f"values in a sample of {len(looked_at)} of {len(pairing.pairs)} labels: {values}"],
    )


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
