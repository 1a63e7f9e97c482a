"""The text of a large JSON document without indentation, made in parts that take little memory each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from json.encoder import encode_basestring
from typing import Any

ROWS_OF_A_PART = 1000
"""The rows of texts that become text together."""


def json_lines(value: Any) -> Iterator[str]:
    """Yield `json.dumps(value, indent=0, ensure_ascii=False)` of a document whose rows of texts are tuples.

    Python's fast encoder cannot indent.
    """
    if isinstance(value, dict) and value:
        yield from _indented("{", ((f"{_scalars(name)}: ", member) for name, member in value.items()), "}")
    elif not isinstance(value, (dict, list, tuple)):
        yield _scalars(value)
    elif value and isinstance(value[0], (dict, list)):
        yield from _indented("[", (("", member) for member in value), "]")
    elif value and isinstance(value[0], tuple):
        rows = ("[\n" + ",\n".join(map(encode_basestring, texts)) + "\n]" for texts in value)
        parts = iter(lambda: ",\n".join(islice(rows, ROWS_OF_A_PART)), "")
        yield from ("[\n", next(parts), *(f",\n{part}" for part in parts), "\n]")
    elif value:
        yield f"[\n{_scalars(value)[1:-1]}\n]"
    else:
        yield "{}" if isinstance(value, dict) else "[]"


def _indented(start: str, members: Iterable[tuple[str, Any]], end: str) -> Iterator[str]:
    """Yield a list or a dictionary: what stands before each member, and the member."""
    separator = start + "\n"
    for before, member in members:
        yield separator + before
        yield from json_lines(member)
        separator = ",\n"
    yield "\n" + end


_scalars = json.JSONEncoder(ensure_ascii=False, separators=(",\n", ": ")).encode
