"""`RowFunctions`: the functions of the user that `Rows` calls, each with the key of a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from packer.decoding.raw_file import naming
from packer.errors import BadPair, UsageError
from packer.recipe.row_ref import RowRef
from packer.recipe.source import FieldData
from packer.sources.given_fields import take_fields
from packer.sources.portable_functions import ONE_AT_A_TIME, call, from_text, plain, to_text
from packer.sources.row_keys import given_key, name_of
from readers.contract.tiles import Size

PICTURE_SIDES, VOLUME_SIDES = 2, 3
SIDES = {PICTURE_SIDES: "(height, width)", VOLUME_SIDES: "(depth, height, width)"}
"""The sides of a row in words, by their number."""


class _Functions(NamedTuple):
    load: Callable[[Any], Any]
    version: Callable[[Any], Any] | None = None
    sizes: Callable[[Any], Any] | None = None


class RowFunctions:
    """Calls the functions, one at a time, and names the row if one fails."""

    def __init__(
        self,
        load: Callable[[Any], Any],
        version: Callable[[Any], Any] | None = None,
        sizes: Callable[[Any], Any] | None = None,
    ) -> None:
        self._functions: _Functions | str = _Functions(load, version, sizes)

    @classmethod
    def of_text(cls, text: str) -> RowFunctions:
        """Return the functions that have this text. They are opened when one is called."""
        functions = cls.__new__(cls)
        functions._functions = text
        return functions

    @cached_property
    def text(self) -> str:
        """The functions for a worker."""
        return self._functions if isinstance(self._functions, str) else to_text(tuple(self._functions))

    @property
    def has_version(self) -> bool:
        return self._called.version is not None

    @property
    def has_sizes(self) -> bool:
        return self._called.sizes is not None

    def load(self, ref: RowRef, names: Sequence[str], sides: int) -> tuple[FieldData, ...]:
        """Return copies of the fields of a row, which has 2 sides or 3."""
        presence = dict(zip(names, map(bool, ref.parts), strict=True))
        with naming(name_of(ref.split, ref.key)), ONE_AT_A_TIME:
            load = self._called.load
            fields: tuple[FieldData, ...] = call(
                "load", lambda key: take_fields(load(key), presence, sides), given_key(ref)
            )
            return fields

    def version(self, ref: RowRef) -> object:
        """Return the version of a row. A version that fails stops the build."""
        function = self._called.version
        assert function is not None, "without one nothing is asked"
        try:
            with ONE_AT_A_TIME, naming(name_of(ref.split, ref.key)):
                version = call("version", function, given_key(ref))
        except BadPair as bad:
            raise UsageError(str(bad)) from bad
        if version is not None and not isinstance(version, (str, bytes, int, float)):
            kind = plain(type(version).__name__)
            raise UsageError(f"{name_of(ref.split, ref.key)}: version() returned a {kind}; expected a text or a number")
        return version

    def size(self, ref: RowRef, sides: int) -> Size:
        """Return the size that a row must have, of 2 sides or 3."""
        function = self._called.sizes
        assert function is not None, "without one nothing is asked"
        with naming(name_of(ref.split, ref.key)), ONE_AT_A_TIME:
            try:
                return size_of(call("sizes", function, given_key(ref)), sides)
            except TypeError as error:
                raise BadPair(f"sizes() returned no size: {plain(str(error))}") from error

    @property
    def _called(self) -> _Functions:
        """The functions. A worker opens them when it needs them, at a row, so that a crash of theirs has a name."""
        with ONE_AT_A_TIME:
            if isinstance(self._functions, str):
                self._functions = _Functions(*from_text(self._functions))
            return self._functions


def size_of(size: Any, sides: int) -> Size:
    """Return a size that was given, of 2 sides or 3; raise TypeError if it is none."""
    if isinstance(size, Sequence) and len(size) == sides and all(isinstance(side, (int, np.integer)) for side in size):
        whole = tuple(map(int, size))
        if min(whole) > 0:
            return whole
    raise TypeError(f"expected {SIDES[sides]}, found {size!r}")
