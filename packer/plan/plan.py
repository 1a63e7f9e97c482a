"""`Plan`: what a build will do, known before a picture is packed: shards, sizes, bad pairs, bytes, free disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from packer.errors import PackError, Problem, TargetError, by_cause
from packer.pixels.choices import NATIVE, TILE
from packer.plan.found_rows import FoundRows
from packer.plan.problems import BEFORE, problem_of, too_many
from packer.plan.request import Request
from packer.plan.size_sample import Encodings, SizeSample, StoredSize, encodings_of, take_sample, ways_to_store
from packer.publish.free_space import SHARD_SLACK
from packer.publish.recipe_changes import recipe_changes
from packer.recipe.field_rule import FieldRule
from packer.recipe.recipe import Recipe
from packer.recipe.row_ref import RowRef
from packer.recipe.shard_spec import ShardSpec
from packer.shards.giant_rows import may_be_giant
from readers.contract import giant
from readers.contract.kinds import INDEX, ONEHOT
from readers.contract.manifest import Manifest
from readers.contract.receipt_facts import AllReceipts
from readers.contract.tiles import Size


@dataclass(frozen=True)
class Plan:
    """The pairs, the shards to build and the shards to reuse."""

    request: Request
    recipe: Recipe
    found_rows: FoundRows
    specs: tuple[ShardSpec, ...]
    reused: AllReceipts
    """The facts of the shards that exist already, by the index of their spec."""
    unchanged: NDArray[np.bool_]
    """For each row: is it in a shard of this recipe, and did it not change?"""
    sizes: Counter[Size]
    bad: Mapping[int, str]
    """The reasons of bad pairs, by their index: of all headers and of the decoded sample."""
    sampled: int
    """The number of pairs that were decoded."""
    free_bytes: int
    current: Manifest | None
    """The manifest of the pack at the target now."""
    seconds: Mapping[str, float]
    """Seconds of each stage of planning."""

    @property
    def out(self) -> Path:
        """The folder of the pack."""
        return self.request.store.out

    @property
    def pairs(self) -> int:
        return len(self.found_rows.refs)

    @property
    def cuts_tiles(self) -> bool:
        """True if each row becomes several tiles, with keys of their own."""
        return self.recipe.cuts_tiles

    @property
    def had_tiles(self) -> bool:
        """True if the current generation was cut into tiles."""
        return self.current is not None and self.current.recipe.get("fit") == TILE

    @property
    def pieces(self) -> int:
        """The number of rows if none is rejected: pairs, or their tiles. A pair with bad headers counts as one."""
        return sum(len(spec.pieces) for spec in self.specs)

    @property
    def rejects(self) -> tuple[str, ...]:
        """The reasons of the pairs that are known to be bad."""
        return tuple(self.bad.values())

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The bad pairs by their cause."""
        return by_cause(problem_of(ref, reason) for ref, reason in self.bad_pairs)

    @property
    def refusal(self) -> PackError | None:
        """The error with which a build would stop, if too many pairs are known to be bad."""
        return too_many(self.found_rows.refs, self.bad, self.request.judgement.limits, BEFORE)

    @property
    def bad_pairs(self) -> list[tuple[RowRef, str]]:
        """The pairs that are known to be bad, and why."""
        return [(self.found_rows.refs[index], reason) for index, reason in self.bad.items()]

    @property
    def sampled_bad(self) -> int:
        """The number of decoded pairs that are bad, although their headers are not."""
        return len(self.bad) - (self.pairs - sum(self.sizes.values()))

    @cached_property
    def rows(self) -> int:
        """The number of pieces without the pairs that are known to be bad."""
        return sum(map(self.good_pieces, self.specs))

    def good_pieces(self, spec: ShardSpec) -> int:
        """Return the number of pieces of a shard without the pairs that are known to be bad."""
        bad = self._bad_keys
        return len(spec.pieces) - sum((spec.split, piece.ref.key) in bad for piece in spec.pieces if bad)

    @cached_property
    def _bad_keys(self) -> set[tuple[str, str]]:
        return {(ref.split, ref.key) for ref, _ in self.bad_pairs}

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(spec.split for spec in self.specs))

    @property
    def unlabelled(self) -> int:
        """The number of pieces without a label, if others may have one."""
        label = None if self.recipe.label is None else self.recipe.label.field
        return 0 if label is None else sum(len(spec.pieces) for spec in self.specs if label not in spec.fields)

    @property
    def bytes(self) -> int:
        """The raw bytes of the rows; headers, keys and receipts are small in comparison."""
        return self._bytes(self.recipe)

    @cached_property
    def size_sample(self) -> SizeSample | None:
        """Rows that are packed now in several encodings, to know their sizes; None if there are no rows."""
        if not self.rows:
            return None
        return take_sample(self.specs, self.found_rows.source, self.request, self._ways, self._raw_bytes, self.rows)

    @property
    def stored_bytes(self) -> int | None:
        """The stored bytes of the rows, by a sample if they are encoded; None if none can be packed."""
        if not any(field.is_encoded for field in self.recipe.fields) or self.size_sample is None:
            return self.bytes
        size = self.size_sample.size(self.asked)
        return None if size is None else size.bytes

    @property
    def asked(self) -> Encodings:
        """The encodings that were asked for."""
        return encodings_of(self.recipe.rules)

    @property
    def sizes_stored(self) -> list[StoredSize]:
        """The size of the pack with the encodings asked for, then with other encodings. Only sizes that are known."""
        sample = self.size_sample
        return [] if sample is None else list(filter(None, map(sample.size, self.ways_to_store)))

    @property
    def ways_to_store(self) -> list[Encodings]:
        """The encodings that were asked for, then others."""
        return list(map(encodings_of, self._ways))

    @property
    def _ways(self) -> list[Sequence[FieldRule]]:
        pixel = sum(field.pixel_bytes for field in self.recipe.fields)
        return ways_to_store(self.recipe, self.bytes / max(1, pixel * self.rows))

    def fits_disk(self, size: StoredSize) -> bool:
        """Return whether the disk has room for the pack in this size. Other encodings make all shards new ones."""
        if size.encodings == self.asked:
            return self.needed_bytes <= self.free_bytes
        return size.bytes + len(self.specs) * SHARD_SLACK <= self.free_bytes

    @property
    def index_bytes(self) -> int | None:
        """The raw bytes with --labels index, if planes of labels take more than the images; else None.

        Planes that are encoded are small already.
        """
        image, label = self.recipe.fields[0], self.recipe.label
        if label is None or label.field.form != ONEHOT or label.field.is_encoded:
            return None
        if label.field.pixel_bytes <= image.pixel_bytes:
            return None
        rules = (rule.of_form(INDEX) if rule is label else rule for rule in self.recipe.rules)
        return self._bytes(replace(self.recipe, rules=tuple(rules)))

    @property
    def _raw_bytes(self) -> dict[str, int]:
        """The raw bytes of each field."""
        raw_bytes = dict.fromkeys((field.name for field in self.recipe.fields), 0)
        for spec in self.specs:
            size = self._bytes_of(spec, self.recipe)
            pixel = sum(field.pixel_bytes for field in spec.fields)
            for field in spec.fields:
                raw_bytes[field.name] += size * field.pixel_bytes // pixel
        return raw_bytes

    def _bytes(self, recipe: Recipe) -> int:
        return sum(self._bytes_of(spec, recipe) for spec in self.specs)

    def _bytes_of(self, spec: ShardSpec, recipe: Recipe) -> int:
        """Return the raw bytes of a shard."""
        if recipe.geometry.fit != NATIVE:
            return self.good_pieces(spec) * int(recipe.row_bytes(spec.pieces[:1])[0])
        return int(recipe.row_bytes(spec.pieces).sum())

    @property
    def new_specs(self) -> dict[int, ShardSpec]:
        """The shards to build, by the index of their spec."""
        return {index: spec for index, spec in enumerate(self.specs) if index not in self.reused}

    @property
    def needed_bytes(self) -> int:
        """The bytes that must be free on the disk. Only if raw bytes do not fit, a sample of encoded rows is packed."""
        return self._needed(self.bytes) if self._needed(self.bytes) <= self.free_bytes else self._needed(self._known)

    @property
    def _known(self) -> int:
        return self.bytes if self.stored_bytes is None else self.stored_bytes

    def _needed(self, size: int) -> int:
        pieces = sum(len(spec.pieces) for spec in self.new_specs.values())
        scratch = self._scratch_bytes * size // max(1, self.bytes)
        return size * pieces // max(1, self.pieces) + len(self.new_specs) * SHARD_SLACK + scratch

    @property
    def _scratch_bytes(self) -> int:
        """The raw bytes of the giant rows that are in scratch files at the same time, one for each worker."""
        if not may_be_giant(self.recipe.fields):
            return 0
        rows = [int(self.recipe.row_bytes(spec.pieces).max()) for spec in self.new_specs.values()]
        return sum(sorted(size for size in rows if size > giant.GIANT)[-self.request.running.workers :])

    @property
    def largest_bytes(self) -> int:
        """The bytes of the largest shard to build."""
        return max((int(self.recipe.row_bytes(spec.pieces).sum()) for spec in self.new_specs.values()), default=0)

    @property
    def recipe_changes(self) -> tuple[tuple[str, object, object], ...]:
        """Changed options that decide the bytes: key, before, now. Nothing if there is no pack yet."""
        return () if self.current is None else tuple(recipe_changes(self.current.recipe, self.recipe.to_json()))

    def check_disk(self) -> None:
        """Raise TargetError if the disk has too little free space."""
        if self.needed_bytes > self.free_bytes:
            advice = "" if self.index_bytes is None else f"; --labels index needs {self.index_bytes:,} bytes"
            others = (size for size in self.sizes_stored if size.encodings != self.asked)
            if fits := next(filter(self.fits_disk, others), None):
                advice += f"; {fits.options} needs about {fits.bytes:,} bytes"
            need = f"needs about {self.needed_bytes:,} bytes, the disk has {self.free_bytes:,} free"
            raise TargetError(f"{self.out}: {need}{advice}")
