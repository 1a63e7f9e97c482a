"""The command `packer`, and `python -m packer`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

from packer.runtime import no_blas_threads

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> None:
    """Run the command line; before it is there and after it is done, a signal makes no traceback."""
    _on_signals(_leave)
    try:
        _command()
    finally:
        _on_signals(signal.SIG_IGN)


def _command() -> None:
    """Import the commands here, so that a decoder that does not load is a word of advice and not a traceback."""
    try:
        with no_blas_threads():
            from packer.cli import main as command
    except ImportError as error:
        if ".so" not in str(error):
            raise
        sys.exit(
            f"packer: OpenCV does not load here ({error}); without a screen take the build that needs none:\n"
            "  pip uninstall opencv-python && pip install opencv-python-headless"
        )
    command()


def _on_signals(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    """Handle the signals so, but for those that are ignored (nohup)."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _leave(number: int, frame: FrameType | None) -> None:
    os._exit(128 + number)


if __name__ == "__main__":
    main()
