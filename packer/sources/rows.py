"""`Rows`: rows from a function of the user. A row is a key, and what the function returns for it."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from itertools import compress
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from packer.decoding.arrays import ARRAY, check_bands_last, class_numbers
from packer.decoding.decode import check_same_size, header_of
from packer.decoding.header import Header
from packer.decoding.raw_file import naming
from packer.errors import BadPair, UsageError
from packer.recipe.row_ref import RowRef
from packer.recipe.source import UNKNOWN, FieldData, Heads, Loaded, Source
from packer.sources.array_volume import header_of_volume, slices_of_array
from packer.sources.given_fields import FIELDS, LABEL, identity
from packer.sources.portable_functions import FUNCTIONS
from packer.sources.row_functions import PICTURE_SIDES, SIDES, VOLUME_SIDES, RowFunctions, size_of
from packer.sources.row_keys import Key, Lacking, Without, name_of, split_and_key
from readers.contract.tiles import Size

PLAIN = (Header(ARRAY, 0, 0, 8, 3), Header(ARRAY, 0, 0, 8, 1))
"""The types of an image and a label whose headers no sample showed."""
RULE = "rows 1"
"""The name of the rules by which arrays become rows, in recipes."""
VOLUME_RULE = "rows as volumes 1"
"""The name of the rules by which arrays become volumes."""
WIDTH = 2
"""The numbers of a state: 128 bits."""


class Rows(Source):
    """Rows that `load` returns: `build_pack(Rows(keys, load), "out", classes=["cell", "wall"])`.

    `keys` are texts, or pairs of a split and a key, or a function that returns these one after the other.
    `load(key)` returns {"image": array, "label": array}: an image of (H, W) or (H, W, 3) bytes and a label of (H, W)
    class numbers; or the bytes of picture files. It runs in worker processes, one call at a time in each.
    `version(key)` returns a text or a number that changes when the row changes. Rows of the same version are not loaded
    again; without it all rows are.
    `sizes` is the (height, width) of all images, or a function that returns it for each key. Native sizes and tiles
    need it. Without it all images must have the size of those in a sample, unless the build has a size to scale to.
    With `volumes=True` in the build a row is a volume: arrays of (D, H, W), or (D, H, W, B) of several bands, and sizes
    of (depth, height, width).
    `without={"label": keys}` names the rows that lack a field, for which `load` does not return it.
    `types={"image": array, "label": array}` are arrays of any size with the types and bands that `load` returns.
    Without it each build of fields that are stored unchanged loads a sample of rows first, to see their types.
    Rows have the fields of the build: `build_pack(Rows(keys, load), "out", fields=[ValuesField("depth")], classes=3)`.
    """

    kind: ClassVar[str] = "rows"

    def __init__(
        self,
        keys: Iterable[Key] | Callable[[], Iterable[Key]],
        load: Callable[[Any], Mapping[str, Any]],
        version: Callable[[Any], Any] | None = None,
        sizes: Size | Callable[[Any], Size] | None = None,
        without: Without = None,
        types: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        if isinstance(keys, (str, bytes, Iterator)):
            raise TypeError("keys: expected a list of texts, or a function that returns an iterator")
        self._keys = keys
        self._functions = RowFunctions(load, version, sizes if callable(sizes) else None)
        self._size = None if sizes is None or callable(sizes) else size_of(sizes, _sides_of(sizes))
        self._scales = False
        self._sides = PICTURE_SIDES
        self._lacking = Lacking(without)
        self._fields: tuple[str, ...] = FIELDS
        self._types: tuple[Header, ...] = PLAIN
        self._examples = dict(types or {})

    @property
    def types_are_known(self) -> bool:
        return bool(self._examples)

    @property
    def sizes_are_known(self) -> bool:
        return self._size is not None or self._functions.has_sizes

    @property
    def gives_volumes(self) -> bool:
        return self._sides == VOLUME_SIDES

    def as_volumes(self) -> Rows:
        rows = copy(self)
        rows._sides = VOLUME_SIDES
        return rows

    def of_size(self, size: Size, scales: bool) -> Rows:
        rows = copy(self)
        rows._size, rows._scales = size, scales
        return rows

    def with_fields(self, names: Sequence[str]) -> Rows:
        """Return these rows with the fields that `load` must return."""
        rows = copy(self)
        rows._fields, rows._types = tuple(names), (PLAIN[0],) * len(names)
        return rows

    def like(self, refs: Sequence[RowRef], heads: Sequence[Sequence[Header]]) -> Rows:
        types = {name: Counter[Header]() for name in self._fields}
        for ref, headers in zip(refs, heads, strict=True):
            for name, header in zip(compress(self._fields, ref.parts), headers, strict=False):
                types[name][replace(header, stored_width=0, stored_height=0, orientation=1, slices=None)] += 1
        rows = copy(self)
        rows._types = tuple(max(counts, key=counts.__getitem__, default=PLAIN[0]) for counts in types.values())
        return rows

    @property
    def templates(self) -> tuple[str, ...]:
        return ("",) * len(self._fields)

    @property
    def tools(self) -> tuple[str, ...]:
        rule = VOLUME_RULE if self.gives_volumes else RULE
        return (rule,) if self._scales else (rule, "all of their size")

    @property
    def keeps_splits(self) -> bool:
        return True  # the functions get a key as the user gave it: a text, or a split and a key

    def rows(self) -> Iterator[RowRef]:
        self._lacking.check_fields(self._fields)
        self._check_sides()
        seen = []
        for item in self._keys() if callable(self._keys) else self._keys:
            row = split, key = split_and_key(item)
            name = name_of(split, key)
            if not self._lacking.names(row):
                yield RowRef(split, key, tuple([f"{name}[{field}]" for field in self._fields]))
                continue
            seen.append(row)
            lacks = self._lacking.lacks
            yield RowRef(split, key, tuple(["" if lacks(row, field) else f"{name}[{field}]" for field in self._fields]))
        self._lacking.check_rows(seen)

    def heads(self, refs: Sequence[RowRef]) -> Iterator[Heads]:
        types = self._stated_types() if self.types_are_known else self._types
        for ref in refs:
            try:
                size = self._size_now(ref)
            except BadPair as bad:
                yield str(bad)
            else:
                heads = _heads(types, size or (0,) * self._sides)
                yield heads if all(ref.parts) else tuple(compress(heads, ref.parts))

    def states(self, refs: Sequence[RowRef]) -> NDArray[np.int64]:
        """Return 128 bits of the version of each row; UNKNOWN without one."""
        states = np.full((len(refs), WIDTH), UNKNOWN, np.int64)
        if len(refs) and self._functions.has_version:
            for state, ref in zip(states, refs, strict=True):
                version = self._functions.version(ref)
                if version is not None:
                    facts = repr((version, self._size, self._scales)).encode(errors="backslashreplace")
                    state[:] = np.frombuffer(blake2b(facts, digest_size=8 * WIDTH).digest(), "<i8")
                    state[0] &= np.iinfo(np.int64).max
        return states

    def load(self, ref: RowRef) -> Loaded:
        identities = [""] * len(ref.parts)
        try:
            data, heads = list[Any](self._functions.load(ref, self._fields, self._sides)), []
            for number, (part, name) in enumerate(zip(ref.parts, self._fields, strict=True)):
                if not part:
                    data[number] = b""
                    continue
                with naming(part):
                    data[number], head = self._checked(data[number], name)
                heads.append(head)
                identities[number] = identity(data[number])
                if self.gives_volumes:
                    data[number] = slices_of_array(data[number], part)
            self._check_sizes(ref, heads)
        except BadPair as bad:
            return Loaded.refused(bad, (), identities)
        return Loaded(tuple(data), tuple(identities))

    def to_text(self) -> str:
        """Return the functions without the keys."""
        facts = {"size": self._size, "scales": self._scales, "fields": self._fields, "sides": self._sides}
        return json.dumps({"kind": self.kind, FUNCTIONS: self._functions.text, **facts})

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> Rows:
        rows = cls.__new__(cls)
        rows._keys, rows._functions, rows._lacking = (), RowFunctions.of_text(facts[FUNCTIONS]), Lacking(None)
        rows._fields, rows._types, rows._examples = tuple(facts["fields"]), PLAIN, {}
        rows._size, rows._scales = facts["size"] and tuple(facts["size"]), facts["scales"]
        rows._sides = facts["sides"]
        return rows

    def _stated_types(self) -> tuple[Header, ...]:
        """Return the types of the arrays that stand for those that `load` returns."""
        types = []
        for name in self._fields:
            if name not in self._examples:
                raise UsageError(f"types: has no {name}; name an array for each of {', '.join(self._fields)}")
            try:
                types.append(self._checked(self._examples[name], name)[1])
            except BadPair as bad:
                raise UsageError(f"types: {name} {bad}") from bad
        return tuple(types)

    def _size_now(self, ref: RowRef) -> Size | None:
        """Return the size that an image must have, if that is known before it is loaded."""
        return self._functions.size(ref, self._sides) if self._functions.has_sizes else self._size

    def _check_sizes(self, ref: RowRef, heads: Sequence[Header]) -> None:
        """Refuse fields of different sizes, and a row that has not the size that all rows have."""
        parts = [part for part in ref.parts if part]
        for part, header in zip(parts, heads, strict=True):
            check_same_size(parts[0], heads[0].size, part, header.size)
        size = None if self._scales else self._size_now(ref)
        if size is not None and heads[-1].size != size:
            actual, expected = ("x".join(map(str, side)) for side in (heads[-1].size, size))
            part = parts[-1]
            hint = (
                "give the size of each: Rows(keys, load, sizes=...)"
                if self.gives_volumes
                else "give a size to scale to"
            )
            raise BadPair(f"{part} is {actual}, not {expected} as sizes or the sample say; {hint}")

    def _checked(self, data: FieldData, name: str) -> tuple[FieldData, Header]:
        """Return a field and its header, or raise BadPair if no shard can hold it."""
        if name == LABEL and not isinstance(data, bytes):
            data = class_numbers(data)
        if self.gives_volumes:
            return data, header_of_volume(data)
        if not isinstance(data, bytes):
            check_bands_last(data.shape, data.dtype)
        return data, header_of(data, sys.maxsize)  # --max-pixels is checked when it is decoded

    def _check_sides(self) -> None:
        """Refuse a size that has the sides of pictures if the rows are volumes, or the other way round."""
        if self._size is not None and len(self._size) != self._sides:
            instead = "with volumes=True" if self._sides == PICTURE_SIDES else "without volumes=True"
            raise UsageError(f"sizes: {self._size} is not a {SIDES[self._sides]}; give one, or build {instead}")


def _sides_of(size: object) -> int:
    """Return how many sides a size that was given should have: 3 if it has 3, else 2."""
    return VOLUME_SIDES if isinstance(size, Sequence) and len(size) == VOLUME_SIDES else PICTURE_SIDES


@lru_cache(maxsize=1024)
def _heads(types: tuple[Header, ...], size: Size) -> tuple[Header, ...]:
    """Return headers of these types for a row of this size."""
    slices = size[0] if len(size) == VOLUME_SIDES else None
    height, width = size[-2:]
    return tuple(
        replace(header, stored_width=width, stored_height=height, orientation=1, slices=slices) for header in types
    )
