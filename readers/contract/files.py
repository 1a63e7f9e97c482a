"""Files of a pack: plain ones that lie within its folder, and their checksums."""

from __future__ import annotations

import functools
import hashlib
import os
import stat
from pathlib import Path

from readers.contract.errors import DamagedError


def plain_file(root: Path, path: Path) -> Path:
    """The path, if a plain file lies there and no link leads out of `root`. FileNotFoundError where there is none.

    A pack may come from anybody: a link must not make us read other files of the reader's machine, nor a pipe hold us
    up.
    """
    try:
        if stat.S_ISREG(os.lstat(path).st_mode):
            _check_folder(root, path.parent)
            return path
        real = os.path.realpath(path, strict=True)
        status = os.stat(real)  # noqa: PTH116 - realpath has no twin in pathlib that says what went wrong
    except (FileNotFoundError, NotADirectoryError):
        raise
    except (OSError, ValueError) as error:
        raise DamagedError(f"{path}: cannot be read ({error})") from error
    _check_within(root, path, real)
    if not stat.S_ISREG(status.st_mode):
        raise DamagedError(f"{path}: is no plain file")
    return path


@functools.lru_cache(maxsize=64)
def _check_folder(root: Path, folder: Path) -> None:
    """One look at a folder is enough: its shards are many, and each step of a path takes the kernel's time."""
    _check_within(root, folder, os.path.realpath(folder, strict=True))


def _check_within(root: Path, path: Path, real: str) -> None:
    if not Path(real).is_relative_to(os.path.realpath(root)):
        raise DamagedError(f"{path}: is a link that leads out of {root}, which no pack has; copy what it leads to")


def sha256(path: Path) -> str:
    """The SHA-256 of a file, as `sha256sum` prints it."""
    with path.open("rb", buffering=0) as file:
        digest, buffer = hashlib.sha256(), memoryview(bytearray(1 << 18))
        while count := file.readinto(buffer):
            digest.update(buffer[:count])
    return digest.hexdigest()
