"""Paths as others wrote them down: found below the raw folder by their longest tail, whatever they once began with."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from packer.pairs.template import OTHER_PICTURES, PICTURES, composed

MOST_BYTES = 256 << 20
"""No list or table of pairs is larger."""


class WrittenPaths:
    """The files of a raw folder, each by its full name, and by what lists and tables may call it."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files: dict[str, list[str]] = {}
        for name, path in files.items():
            self._files.setdefault(composed(name), []).append(path)

    def exact(self, path: str) -> str | None:
        """The file of exactly this path below the raw folder, or else the one whose accents are written otherwise."""
        found = self._files.get(composed(path), [])
        return path if path in found else found[0] if len(found) == 1 else None

    def find(self, text: str) -> list[str]:
        """The files that share the longest tail with a path; several where it does not tell which.

        `/data/CamVid/train/x.png` is `train/x.png`, but never another folder's `x.png`.
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
        """Every path under each of its tails."""
        tails: dict[str, list[str]] = {}
        for name, paths in self._files.items():
            while name:
                tails.setdefault(name, []).extend(paths)
                name = name.partition("/")[2]
        return tails


def stem(path: str) -> str:
    """A path without a picture's suffix."""
    suffix = next((one for one in (*PICTURES, *OTHER_PICTURES) if path.lower().endswith(one)), "")
    return path[: len(path) - len(suffix)]


def is_picture(path: str) -> bool:
    return path.lower().endswith((*PICTURES, *OTHER_PICTURES))


def read_names(path: Path) -> str:
    """The text of a list or table; what is none, such as a picture of many gigabytes, is not read into memory."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(MOST_BYTES + 1) if size <= MOST_BYTES else b""
    if max(size, len(data)) > MOST_BYTES:  # a pipe tells no size before it is read
        raise ValueError(f"it is larger than {MOST_BYTES >> 20} MiB")
    return data.decode("utf-8-sig")
