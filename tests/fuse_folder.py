"""Show a folder once more, read-only, by Fuse with `direct_io`: shared memory maps of its files are refused.

`python tests/fuse_folder.py FOLDER MOUNT` writes a line when it is mounted, and serves until it gets SIGTERM.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import mfusepy

PLAIN, TIMES = ("st_mode", "st_nlink", "st_size", "st_uid", "st_gid"), ("st_mtime", "st_ctime", "st_atime")


class SameFolder(mfusepy.Operations):  # type: ignore[misc]
    """The operations of a file system that shows the files of a folder."""

    use_ns = True

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def init(self, path: str) -> None:
        print("mounted", flush=True)

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        status = os.lstat(self._folder + path)
        times = {name: getattr(status, f"{name}_ns") for name in TIMES}
        return {name: getattr(status, name) for name in PLAIN} | times

    def readdir(self, path: str, fh: int) -> list[str]:
        return [".", "..", *(path.name for path in Path(self._folder + path).iterdir())]

    def open(self, path: str, flags: int) -> int:
        return os.open(self._folder + path, flags)

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        return os.pread(fh, size, offset)

    def release(self, path: str, fh: int) -> int:
        os.close(fh)
        return 0


if __name__ == "__main__":
    mfusepy.FUSE(SameFolder(sys.argv[1]), sys.argv[2], foreground=True, nothreads=True, ro=True, direct_io=True)
