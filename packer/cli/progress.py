"""Progress of a command: a bar on a terminal, a line every half minute in a log, nothing when quiet."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from packer.cli.log import JSON, LOG
from packer.progress import Advance, Progress, no_progress, progress_bar

LOG_SECONDS = 30.0


def shown(quiet: bool) -> Progress:
    """The way to show progress where stderr goes."""
    if quiet:
        return no_progress
    return progress_bar if sys.stderr.isatty() and LOG.form != JSON else _lines


@contextmanager
def _lines(task: str, total: int, unit: str) -> Iterator[Advance]:
    started = last = time.monotonic()
    done = 0

    def advance(step: int) -> None:
        nonlocal last, done
        done += step
        now = time.monotonic()
        if now - last >= LOG_SECONDS:
            last = now
            rate = done / (now - started)
            left = (total - done) / rate if rate else 0
            words = f"{task}: {done} of {total} {unit}, {rate:.1f} {unit}/s, {left:.0f} s left"
            LOG.say("progress", words, done=done, total=total, seconds_left=round(left))

    yield advance
