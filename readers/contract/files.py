"""Files of a pack: plain ones that lie within its folder, and their checksums."""

from __future__ import annotations

import functools
import hashlib
import os
import stat
from pathlib import Path

from readers.contract.errors import DamagedError


def plain_file(root: Path, path: Path) -> Path:
    """Return the path if it is a plain file and no link leads out of `root`. Raise FileNotFoundError if it is missing.

    A pack may come from anyone: a link must not make us read other files of this machine, and a pipe must not block.
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
    """Return the SHA-256 of a file, as `sha256sum` prints it."""
    with path.open("rb", buffering=0) as file:
        digest, buffer = hashlib.sha256(), memoryview(bytearray(1 << 18))
        while count := file.readinto(buffer):
            digest.update(buffer[:count])
    return digest.hexdigest()
