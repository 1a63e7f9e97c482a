"""Files of a pack: plain files inside its folder, and their checksums."""

from __future__ import annotations

import functools
import hashlib
import os
import stat
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from readers.contract.errors import DamagedError
from readers.contract.library import library

BUFFER = 1 << 18


class Hash(Protocol):
    """A digest that is computed piece by piece, such as `hashlib.sha256()` or `blake3()`."""

    def update(self, data: Any, /) -> object: ...

    def hexdigest(self) -> str: ...


def plain_file(root: Path, path: Path) -> Path:
    """Return the path if it is a plain file and no link leads out of `root`. Raise FileNotFoundError if it is missing.

    A pack may come from a stranger: a link must not lead us to other files of this machine, and a pipe must not block.
    """
    try:
        if stat.S_ISREG(os.lstat(path).st_mode):
            _check_folder(root, path.parent)
            return path
        real = os.path.realpath(path, strict=True)
        status = os.stat(real)  # noqa: PTH116 - pathlib has no realpath with an error
    except (FileNotFoundError, NotADirectoryError):
        raise
    except (OSError, ValueError) as error:
        raise DamagedError(f"{path}: cannot be read ({error})") from error
    _check_within(root, path, real)
    if not stat.S_ISREG(status.st_mode):
        raise DamagedError(f"{path}: is not a plain file")
    return path


@functools.lru_cache(maxsize=64)
def _check_folder(root: Path, folder: Path) -> None:
    """Check a folder once for all of its shards: resolving a path takes a system call for each folder in it."""
    _check_within(root, folder, os.path.realpath(folder, strict=True))


def _check_within(root: Path, path: Path, real: str) -> None:
    if not Path(real).is_relative_to(os.path.realpath(root)):
        raise DamagedError(f"{path}: is a link that leads out of {root}; replace it with a copy of its target")


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, as `sha256sum` prints it: the digest of the shard table is in the manifest."""
    with path.open("rb", buffering=0) as file:
        return digest_of(file, hashlib.sha256())


def blake3(content: Any = b"") -> Any:
    """Begin a BLAKE3. Training from a folder needs none, so its library is imported here."""
    return library("blake3", "the checksums of files").blake3(content)


def blake3_of(path: Path) -> str:
    """Return the BLAKE3 of a file, as `b3sum` prints it: the digests of the files of a shard are in its receipt."""
    with path.open("rb", buffering=0) as file:
        return digest_of(file, blake3())


def digest_of(file: BinaryIO | FileIO, digest: Hash) -> str:
    """Add all that can be read from a file to a digest, and return it as hex digits."""
    buffer = memoryview(bytearray(BUFFER))
    while count := file.readinto(buffer):  # type: ignore[union-attr]  # BinaryIO lacks it
        digest.update(buffer[:count])
    return digest.hexdigest()
