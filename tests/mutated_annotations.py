"""Broken files of annotations, made by chance: each is painted or refused by name, within limits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from random import Random
from typing import Any

from packer.annotations.annotation import AnnotatedPicture
from packer.annotations.paint import Brush, Canvas
from packer.errors import BadPair

HOSTILE: tuple[Any, ...] = (None, True, 10**400, 1e308, float("nan"), -float("inf"), 2**31, "", "x", "1", [], {}, [[]])
"""Values that take the place of others."""
NUMBERS = (-1, 0, 1, 2, 2.5, -7.25, 13, 1e-9, 255, 4_000, 1e6)


def mutated_json(document: Any, random: Random) -> bytes:
    """Return a document with hostile values, or the bytes of one that is broken."""
    made = deepcopy(document)
    for _ in range(random.randint(1, 2)):
        holder, key = random.choice(list(_values(made)))
        holder[key] = random.choice(random.choice([HOSTILE, NUMBERS, NUMBERS, ([holder[key]], deepcopy(document))]))
    return mutated_bytes(json.dumps(made).encode(), random) if random.random() < 0.3 else json.dumps(made).encode()


def _values(document: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each table or list with each of its keys."""
    for key, value in document.items() if isinstance(document, dict) else enumerate(document):
        yield document, key
        if isinstance(value, (dict, list)):
            yield from _values(value)


def mutated_bytes(data: bytes, random: Random) -> bytes:
    """Return a text with a part cut out, doubled, or changed."""
    first, last = sorted(random.randrange(len(data) + 1) for _ in range(2))
    part = random.choice([b"", data[first:last] * 2, random.randbytes(3), b"[" * 99_999, b"9" * 5_000, b"-", b"\xff"])
    return data[:first] + part + data[min(first + random.randint(0, 9), last) :]


def painted_or_refused(read: Callable[[bytes], AnnotatedPicture], data: bytes) -> bool:
    """Read a file, and paint it at a size that is not its own. Return True if it is refused by name."""
    try:
        picture = read(data)
        numbers = {each.category: 1 + index for index, each in enumerate(picture.annotations)}
        canvas = Canvas(picture, (20, 30), Brush(numbers))
        canvas.label(), canvas.ids(), canvas.notes()
    except BadPair as error:
        return bool(str(error).strip())
    return False
