"""The size of a pack in several encodings, before it is built: a sample of its rows is decoded, encoded and counted."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from random import Random

from packer.pixels.jpeg_rules import JpegRules, can_be_jpeg
from packer.plan.request import Request
from packer.recipe.field_rule import FieldRule
from packer.recipe.piece import Piece
from packer.recipe.recipe import Recipe
from packer.recipe.shard_spec import ShardSpec
from packer.recipe.source import Source
from packer.shards.measure import MeasuredRow
from packer.workers.run import measure_pieces
from readers.contract import giant
from readers.contract.fields import JPEG, RAW, ZSTD
from readers.contract.kinds import PICTURE, VALUES

FEW_ROWS, MOST_ROWS = 256, 1024
"""The rows of a sample, and the rows of the larger one that is taken if the first may be wrong by more than ERROR."""
ERROR = 0.01
MOST_BYTES = 2 << 30
"""The raw bytes of all rows of a sample."""
WAYS = (RAW, RAW), (RAW, ZSTD), (JPEG, ZSTD)
"""Encodings of pictures and of labels that are compared."""
IN_TILES = (RAW, "tiles-zstd"), ("tiles-jpeg", "tiles-zstd")
"""Further ones for large rows, because often only a part of such a row is read. A part of a raw row needs no tiles."""
LARGE = 1 << 20
"""The pixels of a large row."""
TILE = 256
ROWS_OF_JOB = 8
"""The rows that a worker measures at a time."""
DEVIATIONS = 2
"""Standard deviations in the error: 95 of 100 samples are not further away."""

Encodings = Mapping[str, str]
"""The encoding of each field, such as `jpeg:95`."""


@dataclass(frozen=True)
class StoredSize:
    """The bytes of all rows with some encodings. `error` is the part of them by which a sample may be wrong."""

    encodings: Encodings
    bytes: int
    error: float = 0

    @property
    def options(self) -> str:
        """The options of a build that stores the rows so."""
        return " ".join(f"--encode {name}={encoding}" for name, encoding in self.encodings.items() if encoding != RAW)


def encodings_of(rules: Iterable[FieldRule]) -> Encodings:
    """Return the encodings that rules ask for."""
    return {rule.name: rule.stored_as for rule in rules}


def ways_to_store(recipe: Recipe, pixels: float) -> list[Sequence[FieldRule]]:
    """Return the rules of a recipe, then those with other encodings. `pixels` are the pixels of a row on average."""
    ways: list[Sequence[FieldRule]] = [recipe.rules]
    for picture, label in WAYS + IN_TILES if pixels >= LARGE else WAYS:
        way = [_stored_as(rule, _fitting(rule, picture, label)) for rule in recipe.rules]
        if encodings_of(way) not in map(encodings_of, ways):
            ways.append(way)
    return ways


def _fitting(rule: FieldRule, picture: str, label: str) -> str:
    """Return the encoding of a field, if pictures and labels are stored so."""
    if can_be_jpeg(rule.field):
        return picture
    return RAW if rule.field.kind in (PICTURE, VALUES) else label


def _stored_as(rule: FieldRule, encoding: str) -> FieldRule:
    """Return the rule with an encoding; the same rule if it has it, perhaps with another quality or other tiles."""
    if rule.field.encoding == encoding:
        return rule
    field = replace(rule.field, encoding=encoding, tile=None)
    tile = (TILE,) * len(field.sides) if field.is_tiled else None
    return replace(rule, field=replace(field, tile=tile), jpeg=JpegRules() if field.is_jpeg else None)


@dataclass(frozen=True)
class SizeSample:
    """The bytes of some rows of a pack by field and encoding. The stored bytes of a field are in proportion to its raw
    bytes, which are all known."""

    rows: tuple[Mapping[tuple[str, str], int], ...]
    """The bytes of each row by field and encoding, also its raw ones. Those that cannot be are 0."""
    bad: tuple[str, ...]
    """The reasons why other rows of the sample cannot be packed."""
    raw: Mapping[str, int]
    """The raw bytes of each field in the whole pack."""
    total: int
    """The rows of the whole pack."""

    def size(self, encodings: Encodings) -> StoredSize | None:
        """Return the size of the pack with these encodings; None if rows cannot be stored so, or there are none."""
        stored, errors = 0.0, [0.0] * len(self.rows)
        for name, encoding in encodings.items():
            raw, encoded = ([row.get((name, form), 0) for row in self.rows] for form in (RAW, encoding))
            if any(had and not has for had, has in zip(raw, encoded, strict=True)):
                return None
            share = sum(encoded) / sum(raw) if any(raw) else 1.0
            stored += share * self.raw[name]
            errors = [error + has - share * had for error, had, has in zip(errors, raw, encoded, strict=True)]
        if not self.rows:
            return None
        return StoredSize(encodings, round(stored), self._error(errors, stored) if stored else 0)

    def _error(self, errors: Sequence[float], stored: float) -> float:
        """Return the part of the stored bytes by which they may be wrong."""
        count = len(errors)
        unknown = max(0.0, 1 - count / max(1, self.total))
        if count == 1:  # it does not show how much rows differ
            return 1 if unknown and stored != sum(self.raw.values()) else 0
        spread = math.sqrt(sum(error * error for error in errors) / (count - 1))
        return DEVIATIONS * spread * self.total * math.sqrt(unknown / count) / stored


def take_sample(
    specs: Sequence[ShardSpec],
    source: Source,
    request: Request,
    ways: Sequence[Sequence[FieldRule]],
    raw: Mapping[str, int],
    total: int,
) -> SizeSample:
    """Measure rows that are spread over all shards, more of them if the first ones differ much."""
    sizes = list[MeasuredRow]()
    new = {(rule.name, rule.stored_as): rule for way in ways for rule in way if rule.field.is_encoded}
    others = [rule for key, rule in new.items() if key not in encodings_of(ways[0]).items()]
    most = min(MOST_ROWS, max(1, MOST_BYTES * total // max(1, sum(raw.values()))))
    count = sum(len(spec.pieces) for spec in specs)
    few = scattered(count, min(FEW_ROWS, most))
    parts = few, sorted(set(scattered(count, most)) - set(few)) if most > FEW_ROWS else []
    rows = list[dict[tuple[str, str], int]]()
    with ExitStack() as stack:
        if request.rows.objects is not None:
            stack.enter_context(request.rows.objects.named())
        pool = stack.enter_context(request.running.open_pool())
        for part in parts:
            for spec, measured in measure_pieces(list(spread_pieces(specs, part)), others, source, pool):
                rows += (_by_encoding(spec, others, row) for row in measured if row.bad is None)
                sizes += measured
            sample = SizeSample(tuple(rows), tuple(row.bad for row in sizes if row.bad is not None), raw, total)
            estimates = filter(None, (sample.size(encodings_of(way)) for way in ways))
            if all(size.error <= ERROR for size in estimates):
                break
    return sample


def _by_encoding(spec: ShardSpec, others: Sequence[FieldRule], row: MeasuredRow) -> dict[tuple[str, str], int]:
    asked = encodings_of(spec.recipe.rules)
    sizes = {(rule.name, rule.stored_as): size for rule, size in zip(others, row.others, strict=True)}
    for field, raw, stored in zip(spec.fields, row.raw, row.fields, strict=True):
        sizes |= {(field.name, asked[field.name]): stored, (field.name, RAW): raw}
    return sizes


def scattered(count: int, most: int) -> list[int]:
    """Return at most this number of indices, one of each stretch of equal length: at random, as rows may differ in a
    rhythm, and the same ones every time."""
    if count <= most:
        return list(range(count))
    ends = [number * count // most for number in range(most + 1)]
    random = Random(most)
    return [random.randrange(*stretch) for stretch in pairwise(ends)]


def spread_pieces(specs: Sequence[ShardSpec], indices: Sequence[int]) -> Iterator[ShardSpec]:
    """Yield the pieces with these indices among the pieces of all shards, some at a time."""
    ends = list(accumulate(len(spec.pieces) for spec in specs))
    by_shard = defaultdict[int, list[Piece]](list)
    for index in indices:
        spec = specs[shard := bisect_right(ends, index)]
        piece = spec.pieces[index - ends[shard] + len(spec.pieces)]
        if spec.recipe.row_bytes([piece])[0] <= giant.GIANT:  # a worker needs several times as much memory for it
            by_shard[shard].append(piece)
    for shard, pieces in by_shard.items():
        for first in range(0, len(pieces), ROWS_OF_JOB):
            yield replace(specs[shard], pieces=tuple(pieces[first : first + ROWS_OF_JOB]))
