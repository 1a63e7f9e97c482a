"""The process that builds a live pack for the programs that read it: `python -m packer.cli.live OUT`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from packer.building.live import build_for_readers
from packer.cli.exit_code import exit_code
from packer.cli.output import show
from packer.errors import PackError
from readers.contract.errors import ReadError

LOWER = 10
"""The priority that a builder takes off its own: the training gets its cores first."""


def main() -> None:
    """Build what a reader asks for on stdin: RAW and the options by their names in Python, as JSON."""
    os.nice(LOWER)
    try:
        build_for_readers(sys.stdin.read(), Path(sys.argv[1]))
    except (PackError, ReadError) as error:
        show(str(error), err=True)
        sys.exit(exit_code(error))


if __name__ == "__main__":
    main()
