"""`Target`: a parser of ours with valid files as seeds, and the errors that it may raise for changed files."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SECONDS = 5.0
HEADROOM = 512 << 20


@dataclass(frozen=True)
class Target:
    """A parser, valid files as seeds, and the errors that it may raise for changed files."""

    name: str
    seeds: tuple[bytes, ...]
    parse: Callable[[bytes], object]
    refusals: tuple[type[Exception], ...] = ()

    def judge(self, data: bytes) -> str | None:
        """Run the parser and return what is wrong, if anything: an error that is not ours, or too long a time."""
        started = time.monotonic()
        try:
            self.parse(data)
        except self.refusals:
            pass
        except Exception as error:  # noqa: BLE001 - any error is a finding
            last = traceback.extract_tb(error.__traceback__)[-1]
            return f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}: {str(error)[:200]}"
        seconds = time.monotonic() - started
        return f"takes {seconds:.1f} s" if seconds > SECONDS else None
