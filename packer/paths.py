"""Paths as others wrote them down: found below the raw folder by their longest tail, whatever they once began with."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from packer.template import OTHER_PICTURES, PICTURES, composed


class WrittenPaths:
    """The files of a raw folder, each by its full name, and by what lists and tables may call it."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = {composed(name): path for name, path in files.items()}

    def exact(self, path: str) -> str | None:
        """The file of exactly this path below the raw folder."""
        return self._files.get(composed(path))

    def find(self, text: str) -> list[str]:
        """The files that share the longest tail with a path; several where it does not tell which.

        `/data/CamVid/train/x.png` is `train/x.png`, but never another folder's `x.png`.
        """
        parts = [part for part in composed(text).replace("\\", "/").split("/") if part not in ("", ".")]
        for start in range(max(1, len(parts) - 1)):
            tail = "/".join(parts[start:])
            if tail in self._files:
                return [self._files[tail]]
            if tail in self._tails:
                return self._tails[tail]
        return []

    @cached_property
    def _tails(self) -> dict[str, list[str]]:
        """Every path under each of its tails."""
        tails: dict[str, list[str]] = {}
        for name, path in self._files.items():
            while name:
                tails.setdefault(name, []).append(path)
                name = name.partition("/")[2]
        return tails


def stem(path: str) -> str:
    """A path without a picture's suffix."""
    suffix = next((one for one in (*PICTURES, *OTHER_PICTURES) if path.lower().endswith(one)), "")
    return path[: len(path) - len(suffix)]


def is_picture(path: str) -> bool:
    return path.lower().endswith((*PICTURES, *OTHER_PICTURES))
