"""Open files that another user may have put there. The packer opens raw files, lists and tables in no other way.

Since a folder was listed, a file may have become a pipe, which blocks its reader, or a link to a device without an end.
So the file is opened without blocking, and then the open file itself must be a regular one.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from readers.contract.files import blake3, digest_of
from readers.contract.system import open_to_read

NOT_REGULAR = "is not a regular file"


class NotRegularError(OSError):
    """The path names a folder, a pipe, a socket or a device."""


def open_raw(path: Path | str, buffer: int = -1) -> BinaryIO:
    """Open a regular file for reading, by default as many bytes at a time as its disk likes. Never wait for another
    process."""
    try:
        descriptor = open_to_read(path, "O_NONBLOCK", "O_NOCTTY")
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENODEV):  # a socket, or a device without a driver
            raise NotRegularError(error.errno, NOT_REGULAR, str(path)) from None
        raise
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotRegularError(errno.EINVAL, NOT_REGULAR, str(path))
        return os.fdopen(descriptor, "rb", buffer)
    except BaseException:
        os.close(descriptor)
        raise


def read_raw(path: Path | str) -> bytes:
    """Return the bytes of a regular file."""
    with open_raw(path) as file:
        return file.read()


def digest_raw(path: Path | str) -> str:
    """Return the BLAKE3 of a regular file."""
    with open_raw(path) as file:
        return digest_of(file, blake3())
