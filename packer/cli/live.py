"""The process that builds a live pack for the programs that read it: `python -m packer.cli.live OUT`."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from packer.cli.exit_code import TRY_AGAIN, exit_code
from packer.cli.loading import loading
from packer.cli.output import show
from packer.errors import PackError
from packer.publish.target import locked_target
from readers.contract.errors import ReadError

LOWER = 15
"""The priority that a builder takes off its own: the training gets its cores first."""
GROUP = Path("/proc/self/autogroup")
"""Linux shares the cores among sessions first; the priority of a process counts within its session alone."""


def main() -> None:
    """Build what a reader asks for on stdin: RAW and the options by their names in Python, as JSON."""
    lower_priority()
    out = Path(sys.argv[1])
    try:
        with locked_target(out):  # before the imports: a second builder ends at once
            is_built = build(sys.stdin.read(), out)
    except (PackError, ReadError) as error:
        show(str(error), err=True)
        sys.exit(exit_code(error))
    sys.exit(0 if is_built else TRY_AGAIN)  # a program may have asked that comes to read only now


def lower_priority() -> None:
    """Leave the cores to others. This process and those that it starts have a session of their own."""
    nice = os.nice(LOWER)
    with suppress(OSError):  # another system, or sessions do not share there
        if os.getsid(0) == os.getpid():
            GROUP.write_text(str(nice))


def build(asked: str, out: Path) -> bool:
    """Build, and return whether the build came to its end before its readers."""
    with loading(workers=True):
        from packer.building.live import build_for_readers
    return build_for_readers(asked, out) is not None


if __name__ == "__main__":
    main()
