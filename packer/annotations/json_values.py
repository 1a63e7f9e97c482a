"""Values of a JSON file, checked: what is not valid makes a bad pair, in bounded memory and time."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.errors import BadPair
from readers.contract.json_entry import RepeatedKeyError, loads

MOST_BYTES = 64 << 20
"""The most bytes of a file for one picture."""
MOST_POINTS = 1_000_000
"""The most points of a polygon."""
MOST_DISTANCE = 1e9
"""The most pixels that a point may lie from the picture: a library that paints computes with 32 bits."""


def parse_json(data: bytes, parse: Callable[[bytes], Any] = loads) -> dict[str, Any]:
    """Parse a file that holds a table, and refuse a key that occurs twice."""
    if len(data) > MOST_BYTES:
        raise BadPair(f"is larger than {MOST_BYTES >> 20} MiB, too large for the annotations of one picture")
    if not data.strip():
        raise BadPair("is empty; a file for a picture without objects has an empty list of them")
    document = parsed(data, parse)
    if not isinstance(document, dict):
        raise BadPair("is not a JSON table")
    return document


def parsed(data: bytes, parse: Callable[[bytes], Any]) -> Any:
    """Return what a parser makes of these bytes. Raise BadPair if they are not valid."""
    try:
        return parse(data)
    except RecursionError:
        raise BadPair("is nested too deeply") from None
    except RepeatedKeyError as error:
        raise BadPair(f"has a table in which {error}; keep one") from None
    except ValueError as error:
        raise BadPair(f"is not valid JSON ({error})") from None


def table_or_none(data: bytes) -> dict[str, Any] | None:
    """Parse a file that may be anything. None: it does not hold a table. A key may occur twice: reading refuses it."""
    try:
        return parse_json(data, json.loads)
    except BadPair:
        return None


def tables(document: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the list of tables that a key names."""
    values = document.get(key)
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise BadPair(f"has no list of objects {key!r}")
    return values


def size_of(document: dict[str, Any], height: str, width: str) -> tuple[int, int]:
    """Return the size of the picture that two keys name."""
    size = document.get(height), document.get(width)
    if not all(type(side) is int and side > 0 for side in size):
        raise BadPair(f"has no {height} and {width} that are positive whole numbers")
    return size  # type: ignore[return-value]


def text_of(table: dict[str, Any], key: str) -> str:
    """Return a text that is not empty."""
    text = table.get(key)
    if not isinstance(text, str) or not text:
        raise BadPair(f"has an object without a {key}")
    return text


def points_of(values: Any) -> NDArray[np.float64]:
    """Return the points [[x, y], ...] as an array (N, 2)."""
    if not isinstance(values, list):
        raise BadPair("has an object without a list of points")
    if len(values) > MOST_POINTS:
        raise BadPair(f"has an object of {len(values)} points; {MOST_POINTS} is the most")
    try:
        numbers = list(chain.from_iterable(values))
        if set(map(len, values)) - {2} or not {int, float}.issuperset(map(type, numbers)):
            raise TypeError
        points = np.array(numbers, np.float64).reshape(-1, 2)
    except (TypeError, ValueError, OverflowError):
        raise BadPair("has a point that is not two numbers") from None
    return checked_points(points)


def checked_points(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the points if all are finite and near enough to the picture."""
    if np.abs(points).max(initial=0) <= MOST_DISTANCE:  # not if one is not a number
        return points
    if not np.isfinite(points).all():
        raise BadPair("has a point that is not finite")
    raise BadPair(f"has a point that is more than {MOST_DISTANCE:.0e} pixels away")
