"""Everything that can go wrong while reading a packed data set.

ReadError
├── NoPackError     there is no packed data set at that place
├── RequestError    the pack is fine, but does not have what was asked for
└── DamagedError    a file of the pack is not what the pack says of itself
    └── ManifestError   the manifest itself; carries every problem found
"""

from __future__ import annotations

from collections.abc import Sequence

from readers.contract.json_entry import Problem


class ReadError(Exception):
    """The root: catch this to catch everything that `readers` raises on purpose."""


class NoPackError(ReadError, FileNotFoundError):
    """There is no packed data set at that place."""


class RequestError(ReadError, ValueError):
    """The pack is fine, but does not have what was asked for."""


class DamagedError(ReadError):
    """A file of the pack is not what the pack says of itself."""


class ManifestError(DamagedError):
    """A manifest breaks the contract; `problems` lists every place where it does."""

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)
