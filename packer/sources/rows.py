"""`Rows`: rows from a function of the user. A row is a key, and what the function returns for it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from packer.decoding.arrays import ARRAY, class_numbers
from packer.decoding.decode import check_same_size, header_of
from packer.decoding.header import Header
from packer.decoding.raw_file import naming
from packer.errors import BadPair, InputError, UsageError
from packer.recipe.row_ref import RowRef
from packer.recipe.source import UNKNOWN, Data, Heads, Loaded
from packer.sources.functions import ONE_AT_A_TIME, call, from_text, plain, to_text
from packer.sources.given_fields import FIELDS, LABEL, identity, take_fields
from readers.contract.manifest import ALL
from readers.contract.tiles import Size

Key: TypeAlias = "str | tuple[str, str]"
"""The key of a row; or its split and its key."""
RULE = "rows 1"
"""The name of the rules by which arrays become rows, in recipes."""
WIDTH = 2
"""The numbers of a state: 128 bits."""


class Functions(NamedTuple):
    """The functions of the user. A worker gets them without the keys."""

    load: Callable[[Any], Any]
    version: Callable[[Any], Any] | None = None
    sizes: Callable[[Any], Any] | None = None


class Rows:
    """Rows that `load` returns: `build_pack(Rows(keys, load), "out", classes=["cell", "wall"])`.

    `keys` are texts, or pairs of a split and a key, or a function that returns these one after the other.
    `load(key)` returns {"image": array, "label": array}: an image of (H, W) or (H, W, 3) bytes and a label of (H, W)
    class numbers; or the bytes of picture files. It runs in worker processes, one call at a time in each.
    `version(key)` returns a text or a number that changes when the row changes. Rows of the same version are not loaded
    again; without it all rows are.
    `sizes` is the (height, width) of all images, or a function that returns it for each key. Native sizes and tiles
    need it. Without it all images must have the size of those in a sample, unless the build has a size to scale to.
    """

    kind: ClassVar[str] = "rows"
    templates: ClassVar[tuple[str, ...]] = ("", "")

    def __init__(
        self,
        keys: Iterable[Key] | Callable[[], Iterable[Key]],
        load: Callable[[Any], Mapping[str, Any]],
        version: Callable[[Any], Any] | None = None,
        sizes: Size | Callable[[Any], Size] | None = None,
    ) -> None:
        if isinstance(keys, (str, bytes, Iterator)):
            raise TypeError("keys: expected a list of texts, or a function that returns an iterator")
        self._keys = keys
        self._functions: Functions | str = Functions(load, version, sizes if callable(sizes) else None)
        self._size = None if sizes is None or callable(sizes) else _size_of(sizes)
        self._scales = False

    @property
    def is_without_size(self) -> bool:
        """True if the size of an image is not known before it is loaded."""
        return self._size is None and self._called.sizes is None

    def of_size(self, size: Size, scales: bool) -> Rows:
        """Return these rows with the size of all images. With `scales`, images of other sizes are scaled to it."""
        rows = copy(self)
        rows._size, rows._scales = size, scales
        return rows

    @property
    def tools(self) -> tuple[str, ...]:
        return (RULE,) if self._scales else (RULE, "all of their size")

    def rows(self) -> Iterator[RowRef]:
        for item in self._keys() if callable(self._keys) else self._keys:
            split, key = (ALL, item) if isinstance(item, str) else _pair(item)
            name = _name(split, key)
            yield RowRef(str(split), str(key), (f"{name}[image]", f"{name}[label]"))

    def heads(self, refs: Sequence[RowRef]) -> Iterator[Heads]:
        for ref in refs:
            try:
                size = self._size_now(ref)
            except BadPair as bad:
                yield str(bad)
            else:
                yield _heads(size or (0, 0))

    def states(self, refs: Sequence[RowRef]) -> NDArray[np.int64]:
        """Return 128 bits of the version of each row; UNKNOWN without one."""
        states = np.full((len(refs), WIDTH), UNKNOWN, np.int64)
        if len(refs) and self._called.version is not None:
            for state, ref in zip(states, refs, strict=True):
                version = self._version(ref)
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
            with _naming(ref), ONE_AT_A_TIME:
                load = self._called.load
                data = list(call("load", lambda item: take_fields(load(item)), _item(ref)))
            heads = []
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
        return json.dumps({"kind": self.kind, "functions": self._text, "size": self._size, "scales": self._scales})

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> Rows:
        rows = cls.__new__(cls)
        rows._keys, rows._functions = (), facts["functions"]
        rows._size, rows._scales = facts["size"] and (facts["size"][0], facts["size"][1]), facts["scales"]
        return rows

    @cached_property
    def _text(self) -> str:
        return self._functions if isinstance(self._functions, str) else to_text(tuple(self._functions))

    @property
    def _called(self) -> Functions:
        """The functions. A worker opens them when it needs them, at a row, so that a crash of theirs has a name."""
        with ONE_AT_A_TIME:
            if isinstance(self._functions, str):
                self._functions = Functions(*from_text(self._functions))
            return self._functions

    def _version(self, ref: RowRef) -> object:
        function = self._called.version
        assert function is not None, "without one nothing is asked"
        try:
            with ONE_AT_A_TIME, _naming(ref):
                version = call("version", function, _item(ref))
        except BadPair as bad:
            raise UsageError(str(bad)) from bad
        if version is not None and not isinstance(version, (str, bytes, int, float)):
            kind = plain(type(version).__name__)
            raise UsageError(f"{_name(ref.split, ref.key)}: version() returned a {kind}; expected a text or a number")
        return version

    def _size_now(self, ref: RowRef) -> Size | None:
        """Return the size that an image must have, if that is known before it is loaded."""
        function = self._called.sizes
        if function is None:
            return self._size
        with _naming(ref), ONE_AT_A_TIME:
            try:
                return _size_of(call("sizes", function, _item(ref)))
            except TypeError as error:
                raise BadPair(f"sizes() returned no size: {plain(str(error))}") from error

    def _check_sizes(self, ref: RowRef, heads: Sequence[Header]) -> None:
        """Refuse an image that has not the size of its label, or not the one that all images have."""
        if len(heads) == len(FIELDS):
            check_same_size(ref.parts[0], heads[0].size, ref.parts[1], heads[1].size)
        size = None if self._scales else self._size_now(ref)
        if size is not None and heads[-1].size != size:
            found, expected = ("x".join(map(str, side)) for side in (heads[-1].size, size))
            raise BadPair(
                f"{ref.parts[-1]} is {found}, not {expected} as sizes or the sample say; give a size to scale to"
            )


def _checked(data: Data, name: str) -> tuple[Data, Header]:
    """Return a field and its header, or raise BadPair if no shard can hold it."""
    if name == LABEL and not isinstance(data, bytes):
        data = class_numbers(data)
    return data, header_of(data, sys.maxsize)  # --max-pixels is checked when it is decoded


def _naming(ref: RowRef) -> AbstractContextManager[None]:
    return naming(_name(ref.split, ref.key))


def _name(split: str, key: str) -> str:
    return key if split == ALL else f"{split}/{key}"


def _item(ref: RowRef) -> Key:
    """Return the key as the user gave it."""
    return ref.key if ref.split == ALL else (ref.split, ref.key)


def _pair(item: object) -> tuple[str, str]:
    if isinstance(item, tuple) and len(item) == 2 and all(isinstance(text, str) for text in item):
        return item
    raise InputError(f"keys: {plain(repr(item))} is not a key; expected a text, or a pair of a split and a key")


def _size_of(given: Any) -> Size:
    """Return a (height, width) that was given; raise TypeError if it is none."""
    if isinstance(given, Sequence) and len(given) == 2 and all(isinstance(side, (int, np.integer)) for side in given):
        height, width = map(int, given)
        if height > 0 and width > 0:
            return height, width
    raise TypeError(f"expected (height, width), found {given!r}")


@lru_cache(maxsize=1024)
def _heads(size: Size) -> tuple[Header, Header]:
    height, width = size
    return Header(ARRAY, width, height, 8, 3), Header(ARRAY, width, height, 8, 1)
