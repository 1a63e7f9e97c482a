"""Headers of volumes that are lines of text: how long they may be, and the numbers in them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from packer.decoding.grid import MOST, GridTransform, usable
from packer.errors import BadPair, LostFile

MOST_HEADER = 1 << 20
"""The most bytes of a header. Programs write all that they know of a scan into it."""
_WHOLE = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,4})?", re.ASCII)


def wholes(name: str, text: str, count: int | None = None) -> tuple[int, ...]:
    """Return the whole numbers of a field. Raise BadPair if these are others, or not as many."""
    words = text.split()
    if not words or not all(map(_WHOLE.fullmatch, words)) or count not in (None, len(words)):
        raise BadPair(f"has the header {_line(name, text)}; expected {_counted(count, 'whole number')}")
    return tuple(map(int, words))


def sides_of(name: str, text: str, count: int) -> tuple[int, ...]:
    """Return the sides of a field: whole numbers above 0."""
    sides = wholes(name, text, count)
    if min(sides) < 1:
        raise BadPair(f"has the header {_line(name, text)}; every side has at least one voxel")
    return sides


def numbers(name: str, text: str, count: int) -> tuple[float, ...]:
    """Return the finite numbers of a field. Raise BadPair if these are others, or not as many."""
    words = text.split()
    if len(words) == count and all(map(_NUMBER.fullmatch, words)):
        values = tuple(map(float, words))
        if all(abs(number) < MOST for number in values):
            return values
    raise BadPair(f"has the header {_line(name, text)}; expected {_counted(count, 'finite number')}")


def choice(name: str, text: str, words: Sequence[str]) -> str:
    """Return the word of a field. Raise BadPair if it is none of these."""
    if text not in words:
        raise BadPair(f"has the header {_line(name, text)}; read is {' or '.join(words)}")
    return text


def text_of(fields: Mapping[str, str], name: str) -> str:
    """Return the text of a field. Raise BadPair if the header lacks it."""
    if name not in fields:
        raise BadPair(f"lacks the header {name}")
    return fields[name]


def file_beside(header: Path, field: str, name: str, whole: str, detached: str) -> Path:
    """Return the path of the file that has the numbers of a header. It is in the header's folder, or below it.

    `whole` and `detached` are the suffixes of files with numbers of their own, and of headers without numbers.
    """
    if name.split()[:1] == ["LIST"] or "%" in name:
        raise BadPair(f"has its numbers in many files, by {field}: {name[:80]}; write it as one {whole}")
    if header.suffix.lower() != detached:
        raise BadPair(f"has its numbers in the file {name[:80]!r}; a header without numbers is named {detached}")
    path = PurePosixPath(name)
    if not name or path.is_absolute() or ".." in path.parts or not name.isprintable():
        raise BadPair(f"has its numbers in {name[:80]!r}, which is not in the folder of the header")
    if not (header.parent / path).is_file():
        raise LostFile(f"has its numbers in {name[:80]!r}, which is not there")
    return header.parent / path


def from_left(columns: Sequence[Sequence[float]], origin: Sequence[float]) -> GridTransform:
    """Return the transform of a scan whose x goes to the left and y to the back, as in DICOM: three columns, a step
    along each axis, and the centre of the first voxel."""
    rows = []
    for world, sign in enumerate((-1, -1, 1)):
        rows += [sign * column[world] + 0.0 for column in (*columns, origin)]
    if not usable(tuple(rows), 3) or not math.isfinite(sum(rows)):
        raise BadPair(f"has axes in its header along which all voxels are at one point: {list(map(list, columns))}")
    return tuple(rows)


def _line(name: str, text: str) -> str:
    return repr(f"{name}: {text}"[:120])


def _counted(count: int | None, noun: str) -> str:
    return f"{noun}s" if count is None else f"{count} {noun}{'s' * (count != 1)}"
