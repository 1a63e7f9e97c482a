"""The keys of `Rows` as users give them: a text, or a pair of a split and a key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from packer.errors import InputError, Problem, UsageError
from packer.recipe.row_ref import RowRef
from packer.sources.portable_functions import plain
from readers.contract.manifest import ALL

Key: TypeAlias = "str | tuple[str, str]"
"""The key of a row; or its split and its key."""
Without: TypeAlias = "Mapping[str, Iterable[Key]] | None"
"""The keys of the rows that lack a field, by its name."""


def split_and_key(item: object) -> tuple[str, str]:
    """Return the split and the key that a user gave."""
    if isinstance(item, str):
        return ALL, str(item)
    if isinstance(item, tuple) and len(item) == 2 and all(isinstance(text, str) for text in item):
        return str(item[0]), str(item[1])
    raise InputError(f"keys: {plain(repr(item))} is not a key; expected a text, or a pair of a split and a key")


def given_key(ref: RowRef) -> Key:
    """Return the key of a row as the user gave it."""
    return ref.key if ref.split == ALL else (ref.split, ref.key)


def name_of(split: str, key: str) -> str:
    """Return the name of a row for messages."""
    return key if split == ALL else f"{split}/{key}"


class Lacking:
    """The rows that lack a field, as a user names them."""

    def __init__(self, without: Without) -> None:
        if without is not None and not isinstance(without, Mapping):
            raise TypeError(f'without: expected a mapping such as {{"label": keys}}, found {without!r}')
        for name, keys in (without or {}).items():
            if isinstance(keys, (str, bytes)):
                raise TypeError(f"without: expected a list of keys for {plain(repr(name))}, found {keys!r}")
        self._rows = {name: frozenset(map(split_and_key, keys)) for name, keys in (without or {}).items()}

    def check_fields(self, names: Sequence[str]) -> None:
        """Refuse a field that rows do not have, and the first field, which no row lacks."""
        for name in self._rows:
            if name not in names[1:]:
                others = ", ".join(names[1:])
                raise UsageError(f"without: {plain(repr(name))} cannot be missing; a row may lack its {others} only")

    def check_rows(self, seen: Iterable[tuple[str, str]]) -> None:
        """Raise an error that names the rows that are in no list of keys."""
        rest = frozenset[tuple[str, str]]().union(*self._rows.values()).difference(seen)
        names = tuple(name_of(split, key) for split, key in sorted(rest))
        if names:
            raise InputError("without: names rows that are not there", [Problem("is not in keys", "", names, "key")])

    def names(self, row: tuple[str, str]) -> bool:
        """Return whether a row lacks a field."""
        return any(row in rows for rows in self._rows.values())

    def lacks(self, row: tuple[str, str], name: str) -> bool:
        return row in self._rows.get(name, ())
