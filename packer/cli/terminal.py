"""The abilities of the terminal that a command prints to."""

from __future__ import annotations

import os
import sys

MANY, SOME, NONE = COLOURS = ("24bit", "256", "none")
AUTO = "auto"


def colours_of_terminal() -> str:
    """Return how many colours stdout shows: none if it is a file or a pipe, or the user does not want any."""
    kind = os.environ.get("TERM", "")
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or kind in ("", "dumb", "linux"):
        return NONE
    if "utf" not in (sys.stdout.encoding or "").lower():
        return NONE
    return MANY if os.environ.get("COLORTERM", "").lower() in ("truecolor", "24bit") else SOME
