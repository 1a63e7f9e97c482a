"""The keys of `Rows` as users give them: a text, or a pair of a split and a key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from packer.errors import InputError, Problem, UsageError
from packer.recipe.row_ref import RowRef
from packer.sources.functions import plain
from packer.sources.given_fields import LABEL
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


def unlabelled_of(without: Without) -> frozenset[tuple[str, str]]:
    """Return the splits and keys of the rows without a label. No other field may be missing."""
    if not isinstance(without, Mapping):
        if without is None:
            return frozenset()
        raise TypeError(f'without: expected a mapping such as {{"label": keys}}, found {without!r}')
    for name in without:
        if name != LABEL:
            raise UsageError(f"without: {plain(repr(name))} cannot be missing; a row may lack its label only")
    keys = without.get(LABEL, ())
    if isinstance(keys, (str, bytes)):
        raise TypeError(f"without: expected a list of keys, found {keys!r}")
    return frozenset(map(split_and_key, keys))


def check_known(unlabelled: Iterable[tuple[str, str]]) -> None:
    """Raise an error that names the rows without a label that are in no list of keys."""
    names = tuple(name_of(split, key) for split, key in sorted(unlabelled))
    if names:
        raise InputError("without: names rows that are not there", [Problem("is not in keys", "", names, "key")])
