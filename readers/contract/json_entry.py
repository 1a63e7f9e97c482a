"""`Entry`: an object of untrusted JSON. Values are taken by key and checked; every problem is collected.

`loads` parses JSON in which no key occurs twice within one object: Python's parser takes the last value.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

T = TypeVar("T")

MOST_PROBLEMS = 1000
"""More are not collected: a file of many wrong entries must not need many times its size in memory."""
MOST_ENTRIES = 65_536
"""The most objects that a list may have; no list of classes, splits or files is longer."""

MOST_OF_KEY = 60
"""A message has this many characters of a key."""


@dataclass(frozen=True)
class JsonProblem:
    """A value of a document that is wrong: its path in the document, and what was expected."""

    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


class Entry:
    """A JSON object that is being read. A wrong value is added to `problems`, and a harmless value is returned."""

    def __init__(self, value: object, where: str, problems: list[JsonProblem]) -> None:
        self.where = where
        self.problems = problems
        self._taken: set[str] = set()
        self._values: dict[str, object] = {}
        if isinstance(value, dict):
            self._values = value
        else:
            self.problem("", f"expected an object, found {_shown(value)}")

    def problem(self, key: str, message: str) -> None:
        """Add a problem with `key` of this object."""
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(JsonProblem(".".join(part for part in (self.where, key) if part), message))

    def has(self, key: str) -> bool:
        """Return whether the object has an optional key."""
        return key in self._values

    def text(self, key: str) -> str:
        return self._take(key, str, "a text", "")

    def whole(self, key: str, least: int = 0) -> int:
        """Take a whole number from `least` on and below 2**63 (what a file can hold)."""
        value = self._take(key, int, "a whole number", least)
        if not _is_whole(value, least):
            self.problem(key, f"expected a whole number from {least} on, found {_shown(value)}")
            return least
        return value

    def maybe(self, key: str, take: Callable[[str], T]) -> T | None:
        """Return `take(key)`, or None if the value is null."""
        if key in self._values and self._values[key] is None:
            self._taken.add(key)
            return None
        return take(key)

    def choice(self, key: str, options: tuple[str, ...]) -> str:
        """Take a text that is one of `options`."""
        value = self.text(key)
        if value not in options:
            self.problem(key, f"expected one of {', '.join(options)}, found {value!r}")
            return options[0]
        return value

    def wholes(self, key: str, least: int = 0) -> tuple[int, ...]:
        """Take a list of whole numbers."""
        return self._list(key, lambda value: _is_whole(value, least), f"a whole number from {least} on")

    def shape(self, key: str) -> tuple[int | None, ...]:
        """Take a list of whole numbers from 1 on, with null for a side that differs from row to row."""
        return self._list(key, lambda value: value is None or _is_whole(value, 1), "a whole number from 1 on, or null")

    def numbers(self, key: str) -> tuple[float, ...]:
        """Take a list of finite numbers."""
        return tuple(map(float, self._list(key, _is_finite, "a number")))

    def exact_numbers(self, key: str) -> tuple[float, ...]:
        """Take a list of finite numbers, whole ones as such."""
        return self._list(key, _is_finite, "a number")

    def scalar(self, key: str) -> float | str:
        """Take a finite number, a whole one as such, or a text."""
        value = self._take(key, object, "a number or a text", 0)
        if isinstance(value, str) or _is_finite(value):
            return cast("float | str", value)
        self.problem(key, f"expected a number or a text, found {_shown(value)}")
        return 0

    def number(self, key: str) -> float:
        """Take a finite number."""
        value = self._take(key, object, "a number", 0)
        if _is_finite(value):
            return cast("float", value)
        self.problem(key, f"expected a number, found {_shown(value)}")
        return 0

    def truth(self, key: str) -> bool:
        return self._take(key, bool, "true or false", False)

    def texts(self, key: str) -> tuple[str, ...]:
        """Take a list of texts."""
        return self._list(key, lambda value: isinstance(value, str), "a text")

    def lists(self, key: str) -> list[list[Any]]:
        """Take a list of lists, whose items are not checked."""
        return list(self._list(key, lambda value: isinstance(value, list), "a list"))

    def entry(self, key: str) -> Entry:
        """Take the object below `key`."""
        return Entry(self._take(key, dict, "an object", {}), f"{self.where}.{key}".strip("."), self.problems)

    def entries(self, key: str) -> list[Entry]:
        """Take the objects in the list below `key`."""
        path = f"{self.where}.{key}".strip(".")
        values = self._take(key, list, "a list", [])
        if len(values) > MOST_ENTRIES:
            self.problem(key, f"expected at most {MOST_ENTRIES} objects, found {len(values)}")
            return []
        return [Entry(value, f"{path}.{number}", self.problems) for number, value in enumerate(values)]

    def anything(self, key: str) -> dict[str, Any]:
        """Take an object whose content is not checked."""
        return self._take(key, dict, "an object", {})

    def close(self) -> None:
        """Add a problem for each key that was not taken: unknown keys are refused."""
        for key in sorted(set(self._values) - self._taken):
            self.problem(key, "is not known to this version")

    def _list(self, key: str, valid: Callable[[Any], bool], expected: str) -> tuple[Any, ...]:
        """Take a list of valid values. The first invalid value is noted as a problem, and the list becomes empty."""
        values = self._take(key, list, "a list", [])
        if all(map(valid, values)):
            return tuple(values)
        for index, value in enumerate(values):
            if not valid(value):
                self.problem(f"{key}.{index}", f"expected {expected}, found {_shown(value)}")
                return ()
        return tuple(values)

    def _take(self, key: str, kind: type[T], expected: str, stand_in: T) -> T:
        self._taken.add(key)
        if key not in self._values:
            self.problem(key, f"is missing; expected {expected}")
            return stand_in
        value = self._values[key]
        if not isinstance(value, kind):
            self.problem(key, f"expected {expected}, found {_shown(value)}")
            return stand_in
        return value


def _shown(value: object) -> str:
    """Return a value for a message: numbers in digits, others with their type, all cut to 40 characters."""
    if isinstance(value, (int, float)):
        return repr(value)[:40]
    return "null" if value is None else f"{type(value).__name__} {str(value)[:40]!r}"


def _is_whole(value: object, least: int) -> bool:
    return type(value) is int and least <= value < 2**63


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and -sys.float_info.max <= value <= sys.float_info.max


def fingerprint(document: object) -> str:
    """Return the SHA-256 of a document's canonical JSON: the same values give the same 64 hex digits everywhere."""
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


class RepeatedKeyError(ValueError):
    """A key occurs twice within one object."""


def loads(text: str | bytes) -> Any:
    """Parse a text. Raise RepeatedKeyError with the key, or the ValueError of a text that is not JSON."""
    return json.loads(text, object_pairs_hook=unique)


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these pairs: the hook of a JSON decoder."""
    values = dict(pairs)
    if len(values) < len(pairs):
        raise repeated(key for key, _ in pairs)
    return values


def repeated(keys: Iterable[str]) -> RepeatedKeyError:
    """Return the error of keys if one occurs twice."""
    most = Counter(keys).most_common(1)[0][0]
    return RepeatedKeyError(f"the key {most[:MOST_OF_KEY]!r} occurs twice")
