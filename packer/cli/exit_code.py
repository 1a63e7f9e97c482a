"""The exit code of an error: the one place that decides it, for the process and for its metrics."""

from __future__ import annotations

import signal

from packer.errors import PackError
from packer.signals import StoppedError
from readers.contract.errors import DamagedError, RequestError, StoreBusyError

FAILED, USAGE, DAMAGED, TRY_AGAIN = 1, 2, 4, 75


def exit_code(error: BaseException) -> int:
    """Return the code that the process ends with if this error ends it."""
    if isinstance(error, PackError):
        return error.exit_code
    if isinstance(error, KeyboardInterrupt):
        return 128 + (error.number if isinstance(error, StoppedError) else signal.SIGINT)
    if isinstance(error, RequestError):
        return USAGE
    if isinstance(error, StoreBusyError):
        return TRY_AGAIN
    return DAMAGED if isinstance(error, DamagedError) else FAILED
