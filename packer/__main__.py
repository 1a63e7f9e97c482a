"""The command `packer`, and `python -m packer`."""

from __future__ import annotations

import signal
import sys

from packer.runtime import no_blas_threads
from packer.signals import exit_at_once, handle_signals


def main() -> None:
    """Run the command line. Before it is loaded and after it is done, a signal prints no traceback."""
    handle_signals(exit_at_once)
    try:
        _command()
    finally:
        handle_signals(signal.SIG_IGN)


def _command() -> None:
    """Import the commands here, to give advice instead of a traceback where OpenCV cannot be loaded."""
    try:
        with no_blas_threads():
            from packer.cli import main as command
    except ImportError as error:
        if ".so" not in str(error):
            raise
        sys.exit(
            f"packer: OpenCV does not load here ({error}); on a machine without a screen install the headless build:\n"
            "  pip uninstall opencv-python && pip install opencv-python-headless"
        )
    command()


if __name__ == "__main__":
    main()
