"""The errors of reading a packed data set.

ReadError
├── NoPackError     there is no packed data set in that folder
├── VersionError    the pack has another version of the format, or an encoding, that this release cannot read
├── RequestError    the pack is fine, but the request does not fit it
│   └── UnknownKeyError     there is no row with that key
├── DamagedError    a file of the pack does not agree with the rest of the pack
│   └── ManifestError   the manifest itself; has a list of all problems
└── StoreError      a folder or a bucket cannot be read or written
    └── StoreBusyError  trying again later may help
"""

from __future__ import annotations

from collections.abc import Sequence

from readers.contract.json_entry import JsonProblem


class ReadError(Exception):
    """The root: catch this to catch all errors that `readers` raises on purpose."""


class NoPackError(ReadError, FileNotFoundError):
    """There is no packed data set in that folder."""


class VersionError(ReadError):
    """The pack has another version of the format, as its manifest proves, or an encoding that is not known yet."""


class RequestError(ReadError, ValueError):
    """The pack is fine, but the request does not fit it."""


class UnknownKeyError(RequestError, KeyError):
    """There is no row with that key, or one in each of several splits."""

    def __str__(self) -> str:
        return Exception.__str__(self)  # the text of a KeyError is quoted


class DamagedError(ReadError):
    """A file of the pack does not agree with the rest of the pack."""


class ManifestError(DamagedError):
    """A manifest breaks the format; `problems` lists every wrong value."""

    def __init__(self, message: str, problems: Sequence[JsonProblem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class StoreError(ReadError):
    """A folder or a bucket refuses: it does not exist, the credentials are wrong, or it lacks a function."""


class StoreBusyError(StoreError):
    """A bucket does not answer, or asks to wait, also after several tries. Trying again later may help."""
