"""Refuse paths, which are from the files of a pack, that must not be read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from packer.errors import InputError

MOST_BYTES = 1 << 30
"""A larger file is not read: a page is not a build, which may take all memory."""


def check_below(root: Path, paths: Iterable[str]) -> None:
    """Refuse files that are not below a folder, that are gone, or that are too large."""
    root = root.resolve()
    for path in paths:
        if path.startswith("/") or ".." in path.split("/") or "\0" in path:
            raise InputError(f"{path}: is not a path below the raw folder, so it is not read")
        try:
            target = (root / path).resolve(strict=True)
            size = target.stat().st_size
        except FileNotFoundError as error:
            raise InputError(f"{path}: is not there any more: it was deleted or moved") from error
        except (OSError, RuntimeError) as error:
            why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "a circle of links"
            raise InputError(f"{path}: cannot be read ({why})") from error
        if not target.is_relative_to(root):
            raise InputError(f"{path}: is a link that leads out of the raw folder, so it is not read")
        if size > MOST_BYTES:
            raise InputError(f"{path}: has {size:,} bytes, more than are read here")
