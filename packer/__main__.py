"""The command `packer`, and `python -m packer`."""

from __future__ import annotations

import sys


def main() -> None:
    """Import the commands here, so that a decoder that does not load is a word of advice and not a traceback."""
    try:
        from packer.cli import main as command
    except ImportError as error:
        if ".so" not in str(error):
            raise
        sys.exit(
            f"packer: OpenCV does not load here ({error}); without a screen take the build that needs none:\n"
            "  pip uninstall opencv-python && pip install opencv-python-headless"
        )
    command()


if __name__ == "__main__":
    main()
