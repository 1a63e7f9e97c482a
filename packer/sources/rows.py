"""`Rows`: rows from a function of the user. A row is a key, and what the function returns for it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import lru_cache
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from packer.decoding.arrays import ARRAY, class_numbers
from packer.decoding.decode import check_same_size, header_of
from packer.decoding.header import Header
from packer.decoding.raw_file import naming
from packer.errors import BadPair
from packer.recipe.row_ref import RowRef
from packer.recipe.source import UNKNOWN, Data, Heads, Listing, Loaded, Wanted
from packer.sources.given_fields import FIELDS, LABEL, identity
from packer.sources.row_functions import RowFunctions, size_of
from packer.sources.row_keys import Key, Without, check_known, name_of, split_and_key, unlabelled_of
from readers.contract.tiles import Size

RULE = "rows 1"
"""The name of the rules by which arrays become rows, in recipes."""
WIDTH = 2
"""The numbers of a state: 128 bits."""


class Rows:
    """Rows that `load` returns: `build_pack(Rows(keys, load), "out", classes=["cell", "wall"])`.

    `keys` are texts, or pairs of a split and a key, or a function that returns these one after the other.
    `load(key)` returns {"image": array, "label": array}: an image of (H, W) or (H, W, 3) bytes and a label of (H, W)
    class numbers; or the bytes of picture files. It runs in worker processes, one call at a time in each.
    `version(key)` returns a text or a number that changes when the row changes. Rows of the same version are not loaded
    again; without it all rows are.
    `sizes` is the (height, width) of all images, or a function that returns it for each key. Native sizes and tiles
    need it. Without it all images must have the size of those in a sample, unless the build has a size to scale to.
    `without={"label": keys}` names the rows that have no label, for which `load` returns none.
    """

    kind: ClassVar[str] = "rows"
    templates: ClassVar[tuple[str, ...]] = ("", "")

    def __init__(
        self,
        keys: Iterable[Key] | Callable[[], Iterable[Key]],
        load: Callable[[Any], Mapping[str, Any]],
        version: Callable[[Any], Any] | None = None,
        sizes: Size | Callable[[Any], Size] | None = None,
        without: Without = None,
    ) -> None:
        if isinstance(keys, (str, bytes, Iterator)):
            raise TypeError("keys: expected a list of texts, or a function that returns an iterator")
        self._keys = keys
        self._functions = RowFunctions(load, version, sizes if callable(sizes) else None)
        self._size = None if sizes is None or callable(sizes) else size_of(sizes)
        self._scales = False
        self._unlabelled = unlabelled_of(without)

    @property
    def is_without_size(self) -> bool:
        """True if the size of an image is not known before it is loaded."""
        return self._size is None and not self._functions.has_sizes

    def of_size(self, size: Size, scales: bool) -> Rows:
        """Return these rows with the size of all images. With `scales`, images of other sizes are scaled to it."""
        rows = copy(self)
        rows._size, rows._scales = size, scales
        return rows

    @property
    def tools(self) -> tuple[str, ...]:
        return (RULE,) if self._scales else (RULE, "all of their size")

    def rows(self) -> Iterator[RowRef]:
        waiting = set(self._unlabelled)
        for item in self._keys() if callable(self._keys) else self._keys:
            row = split, key = split_and_key(item)
            waiting.discard(row)
            name = name_of(split, key)
            yield RowRef(split, key, (f"{name}[image]", "" if row in self._unlabelled else f"{name}[label]"))
        check_known(waiting)

    def list_rows(self, wanted: Wanted) -> Listing:
        return Listing(self.rows(), type(self).__name__)

    def heads(self, refs: Sequence[RowRef]) -> Iterator[Heads]:
        for ref in refs:
            try:
                size = self._size_now(ref)
            except BadPair as bad:
                yield str(bad)
            else:
                heads = _heads(size or (0, 0))
                yield heads if ref.parts[1] else heads[:1]

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

    def identities(self, refs: Sequence[RowRef]) -> Iterator[None]:
        """Yield None: only loading a row shows what it is."""
        return (None for _ in refs)

    def load(self, ref: RowRef) -> Loaded:
        identities = ["", ""]
        try:
            data, heads = list(self._functions.load(ref)), []
            for number, (part, name) in enumerate(zip(ref.parts, FIELDS, strict=True)):
                if not part:
                    data[number] = b""
                    continue
                with naming(part):
                    data[number], head = _checked(data[number], name)
                heads.append(head)
                identities[number] = identity(data[number])
            self._check_sizes(ref, heads)
        except BadPair as bad:
            return Loaded((), tuple(identities), str(bad))
        return Loaded(tuple(data), tuple(identities))

    def to_text(self) -> str:
        """Return the functions without the keys."""
        return json.dumps(
            {"kind": self.kind, "functions": self._functions.text, "size": self._size, "scales": self._scales}
        )

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> Rows:
        rows = cls.__new__(cls)
        rows._keys, rows._functions, rows._unlabelled = (), RowFunctions.of_text(facts["functions"]), frozenset()
        rows._size, rows._scales = facts["size"] and (facts["size"][0], facts["size"][1]), facts["scales"]
        return rows

    def _size_now(self, ref: RowRef) -> Size | None:
        """Return the size that an image must have, if that is known before it is loaded."""
        return self._functions.size(ref) if self._functions.has_sizes else self._size

    def _check_sizes(self, ref: RowRef, heads: Sequence[Header]) -> None:
        """Refuse an image that has not the size of its label, or not the one that all images have."""
        if len(heads) == len(FIELDS):
            check_same_size(ref.parts[0], heads[0].size, ref.parts[1], heads[1].size)
        size = None if self._scales else self._size_now(ref)
        if size is not None and heads[-1].size != size:
            found, expected = ("x".join(map(str, side)) for side in (heads[-1].size, size))
            part = [part for part in ref.parts if part][-1]
            raise BadPair(f"{part} is {found}, not {expected} as sizes or the sample say; give a size to scale to")


def _checked(data: Data, name: str) -> tuple[Data, Header]:
    """Return a field and its header, or raise BadPair if no shard can hold it."""
    if name == LABEL and not isinstance(data, bytes):
        data = class_numbers(data)
    return data, header_of(data, sys.maxsize)  # --max-pixels is checked when it is decoded


@lru_cache(maxsize=1024)
def _heads(size: Size) -> tuple[Header, Header]:
    height, width = size
    return Header(ARRAY, width, height, 8, 3), Header(ARRAY, width, height, 8, 1)
