"""Open raw files, and name them in front of the reason why a pair is bad."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from packer.errors import BadPair


def load_picture(path: Path) -> bytes:
    """Return the bytes of a regular file."""
    with open_picture(path) as file:
        return file.read()


def open_picture(path: Path) -> BinaryIO:
    """Open a regular file. Opening a pipe would wait for ever."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise BadPair("is not a regular file")
    return path.open("rb")


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Put a file's name in front of the reason why it is bad."""
    try:
        yield
    except BadPair as bad:
        raise BadPair(f"{path}: {bad}") from None
    except OSError as error:
        raise BadPair(f"{path}: cannot be read ({error.strerror})") from error
