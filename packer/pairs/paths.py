"""Find the files that lists and tables mean, although their paths were written on another machine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

from packer.pairs.template import OTHER_PICTURES, PICTURES, composed
from readers.contract.regular_files import open_raw

MOST_BYTES = 256 << 20
"""The largest list or table of pairs that is read."""


class PathIndex:
    """The files of a raw folder, found by the full path or by its last folders."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files: dict[str, list[str]] = {}
        for name, path in files.items():
            self._files.setdefault(composed(name), []).append(path)

    def exact(self, path: str) -> str | None:
        """Return the file of exactly this path, or else the only one that differs in the form of its accents."""
        files = self._files.get(composed(path), [])
        if path in files:
            return path
        return files[0] if len(files) == 1 else None

    def find(self, text: str) -> list[str]:
        """Return the files that share the longest tail with a path; several if the tail is ambiguous.

        `/data/CamVid/train/x.png` means `train/x.png`, but never `x.png` in another folder.
        """
        parts = [part for part in composed(text).replace("\\", "/").split("/") if part not in ("", ".")]
        for start in range(max(1, len(parts) - 1)):
            tail = "/".join(parts[start:])
            if tail in self._files:
                return self._files[tail]
            if tail in self._tails:
                return self._tails[tail]
        return []

    @cached_property
    def _tails(self) -> dict[str, list[str]]:
        """The paths that end with each tail."""
        tails: dict[str, list[str]] = {}
        for name, paths in self._files.items():
            while name:
                tails.setdefault(name, []).extend(paths)
                name = name.partition("/")[2]
        return tails


def stem(path: str) -> str:
    """Return a path without the suffix of a picture."""
    suffix = next((end for end in (*PICTURES, *OTHER_PICTURES) if path.lower().endswith(end)), "")
    return path[: len(path) - len(suffix)]


def is_picture(path: str) -> bool:
    return path.lower().endswith((*PICTURES, *OTHER_PICTURES))


@contextmanager
def open_list(path: Path, most_bytes: int = MOST_BYTES) -> Iterator[TextIO]:
    """Open a list or table as text with the ends of its lines. Raise ValueError if it is larger."""
    with open_raw(path) as file, TextIOWrapper(file, "utf-8-sig", newline="") as text:
        if os.fstat(file.fileno()).st_size > most_bytes:
            raise ValueError(f"it is larger than {most_bytes >> 20} MiB")
        yield text


def read_list_text(path: Path) -> str:
    """Read a list or table. Anything larger, such as a picture of many gigabytes, is not read into memory."""
    with open_raw(path) as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(MOST_BYTES + 1) if size <= MOST_BYTES else b""
    if max(size, len(data)) > MOST_BYTES:  # a file may grow
        raise ValueError(f"it is larger than {MOST_BYTES >> 20} MiB")
    return data.decode("utf-8-sig")
