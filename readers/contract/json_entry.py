"""Reading JSON that nobody vouches for: take values by key, remember every problem with its place."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

MOST_PROBLEMS = 1000
"""More are not remembered: a file of many wrong entries must not take many times its size."""
MOST_ENTRIES = 65_536
"""How many objects a list may have; no list of classes, splits or files is longer."""


@dataclass(frozen=True)
class Problem:
    """Something wrong in a document: where, and what was expected there."""

    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


class Entry:
    """One JSON object being read. Wrong values become problems and a harmless stand-in, so reading goes on."""

    def __init__(self, value: object, where: str, problems: list[Problem]) -> None:
        self.where = where
        self.problems = problems
        self._taken: set[str] = set()
        self._values: dict[str, object] = {}
        if isinstance(value, dict):
            self._values = value
        else:
            self.problem("", f"expected an object, found {_kind(value)}")

    def problem(self, key: str, message: str) -> None:
        """Remember that `key` of this object is wrong."""
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(Problem(".".join(part for part in (self.where, key) if part), message))

    def text(self, key: str) -> str:
        return self._take(key, str, "a text", "")

    def whole(self, key: str, least: int = 0) -> int:
        """A whole number of at least `least`, below 2**63 (what a file can hold)."""
        value = self._take(key, int, "a whole number", least)
        if isinstance(value, bool) or not least <= value < 2**63:
            self.problem(key, f"expected a whole number from {least} on, found {value!r}")
            return least
        return value

    def maybe(self, key: str, take: Callable[[str], T]) -> T | None:
        """`take(key)`, or None where the document says null."""
        if key in self._values and self._values[key] is None:
            self._taken.add(key)
            return None
        return take(key)

    def choice(self, key: str, options: tuple[str, ...]) -> str:
        """A text that is one of `options`."""
        value = self.text(key)
        if value not in options:
            self.problem(key, f"expected one of {', '.join(options)}, found {value!r}")
            return options[0]
        return value

    def wholes(self, key: str, least: int = 0) -> tuple[int, ...]:
        """A list of whole numbers."""
        values = self._take(key, list, "a list", [])
        for place, value in enumerate(values):
            if type(value) is not int or not least <= value < 2**63:
                self.problem(f"{key}.{place}", f"expected a whole number from {least} on, found {value!r}")
                return ()
        return tuple(values)

    def shape(self, key: str) -> tuple[int | None, ...]:
        """A list of whole numbers from 1 on, with null for what differs from row to row."""
        values = self._take(key, list, "a list", [])
        for place, value in enumerate(values):
            if value is not None and (type(value) is not int or not 1 <= value < 2**63):
                self.problem(f"{key}.{place}", f"expected a whole number from 1 on, or null, found {value!r}")
                return ()
        return tuple(values)

    def numbers(self, key: str) -> tuple[float, ...]:
        """A list of finite numbers."""
        values = self._take(key, list, "a list", [])
        for place, value in enumerate(values):
            if type(value) not in (int, float) or not -sys.float_info.max <= value <= sys.float_info.max:
                self.problem(f"{key}.{place}", f"expected a number, found {value!r}")
                return ()
        return tuple(float(value) for value in values)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        values = self._take(key, list, "a list", [])
        for place, value in enumerate(values):
            if not isinstance(value, str):
                self.problem(f"{key}.{place}", f"expected a text, found {_kind(value)}")
                return ()
        return tuple(values)

    def lists(self, key: str) -> list[list[Any]]:
        """A list of lists, for others to look into."""
        values = self._take(key, list, "a list", [])
        for place, value in enumerate(values):
            if not isinstance(value, list):
                self.problem(f"{key}.{place}", f"expected a list, found {_kind(value)}")
                return []
        return values

    def entry(self, key: str) -> Entry:
        """The object below `key`."""
        return Entry(self._take(key, dict, "an object", {}), f"{self.where}.{key}".strip("."), self.problems)

    def entries(self, key: str) -> list[Entry]:
        """The objects in the list below `key`."""
        place = f"{self.where}.{key}".strip(".")
        values = self._take(key, list, "a list", [])
        if len(values) > MOST_ENTRIES:
            self.problem(key, f"expected at most {MOST_ENTRIES} objects, found {len(values)}")
            return []
        return [Entry(value, f"{place}.{number}", self.problems) for number, value in enumerate(values)]

    def anything(self, key: str) -> dict[str, Any]:
        """An object that is kept as it is, for others to interpret."""
        return self._take(key, dict, "an object", {})

    def close(self) -> None:
        """Every key must have been taken: what is not understood is not passed over."""
        for key in sorted(set(self._values) - self._taken):
            self.problem(key, "is not known to this version")

    def _take(self, key: str, kind: type[T], words: str, stand_in: T) -> T:
        self._taken.add(key)
        if key not in self._values:
            self.problem(key, f"is missing; expected {words}")
            return stand_in
        value = self._values[key]
        if not isinstance(value, kind):
            self.problem(key, f"expected {words}, found {_kind(value)}")
            return stand_in
        return value


def _kind(value: object) -> str:
    return "null" if value is None else f"{type(value).__name__} {str(value)[:40]!r}"


def fingerprint(document: object) -> str:
    """The SHA-256 of a document's canonical JSON: the same facts give the same 64 hex digits everywhere."""
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
