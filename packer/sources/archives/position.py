"""`Position`: the place of a picture in a file of an archive, as a part of a reference names it."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import NamedTuple

from packer.errors import BadPair

_POSITION = re.compile(r"@(\d{1,19})(?:\+(\d{1,19}))?/")


class Position(NamedTuple):
    """The place of a picture: `size` bytes from `start` of a file on; or row `start`, and then `size` is 0."""

    file: str
    start: int
    size: int
    name: str

    def __str__(self) -> str:
        return f"{self.file}@{self.start}{f'+{self.size}' if self.size else ''}/{self.name}"


def position_in(part: str, files: Container[str]) -> Position:
    """Return the place that a part of a reference names. Raise BadPair if it is in none of these files."""
    for match in _POSITION.finditer(part):
        if part[: match.start()] in files:
            return Position(part[: match.start()], int(match[1]), int(match[2] or 0), part[match.end() :])
    raise BadPair("is not a place in the files of this source")
