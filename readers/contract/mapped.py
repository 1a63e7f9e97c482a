"""Map a file read-only: shared with other processes, or else privately, or not at all where its file system refuses."""

from __future__ import annotations

import errno
import mmap
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.system import open_to_read

REFUSALS = {errno.ENODEV, errno.EACCES, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP}
"""The errors of file systems that have no maps of this kind, such as Fuse with `direct_io`."""
SHARED = "refuses shared memory maps, so files are mapped privately"
PRIVATE = "refuses all memory maps, so rows are read by system calls, which takes longer"
WARNED: set[str] = set()
"""The warnings of this process: each comes once."""
_TRACKED: dict[str, Any] = {"trackfd": False} if sys.version_info >= (3, 13) and sys.platform != "win32" else {}


def _ways() -> list[tuple[dict[str, Any], str]]:
    """Return how a file is mapped, in the order of trying, and what it means that a way is refused."""
    if not hasattr(mmap, "MAP_SHARED"):  # Windows
        return [({"access": mmap.ACCESS_READ}, PRIVATE)]
    flags = ((mmap.MAP_SHARED, SHARED), (mmap.MAP_PRIVATE, PRIVATE))
    return [({"flags": flag, "prot": mmap.PROT_READ, **_TRACKED}, refused) for flag, refused in flags]


_WAYS = _ways()


def map_file(path: Path) -> NDArray[np.uint8] | None:
    """Map the bytes of a file; the map exists as long as the array. Return None if no map is possible."""
    file = open_to_read(path)
    try:
        size = os.fstat(file).st_size
        if size == 0:
            return np.empty(0, np.uint8)
        for options, refused in _WAYS:
            try:
                return np.frombuffer(mmap.mmap(file, size, **options), np.uint8)
            except OSError as error:
                if error.errno not in REFUSALS:
                    raise
                _warn(path, refused, error)
    finally:
        os.close(file)
    return None


def _warn(path: Path, refused: str, error: OSError) -> None:
    if refused not in WARNED:
        WARNED.add(refused)
        advice = "open_dataset(…, cache=FOLDER) and packer stage copy to a local disk"
        text = f"{path}: its file system {refused} ({error.strerror}); {advice}"
        warnings.warn(text, RuntimeWarning, stacklevel=3)
