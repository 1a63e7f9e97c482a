"""Progress: a bar with rate and time left on a terminal, a plain line every so often in a log, nothing when quiet."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm

from packer.cli.log import JSON, LOG

LOG_SECONDS = 30.0


@contextmanager
def progress(what: str, total: int, unit: str, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A function to call with what was just done."""
    if quiet:
        yield lambda done: None
    elif sys.stderr.isatty() and LOG.form != JSON:
        width = shutil.get_terminal_size().columns  # never 0, which some terminals say and tqdm takes at its word
        with tqdm(total=total, desc=what, unit=f" {unit}", unit_scale=unit == "B", ncols=width, smoothing=0.1) as bar:
            yield bar.update
    else:
        yield _lines(what, total, unit)


def _lines(what: str, total: int, unit: str) -> Callable[[int], None]:
    started = told = time.monotonic()
    done = 0

    def advance(step: int) -> None:
        nonlocal told, done
        done += step
        now = time.monotonic()
        if now - told >= LOG_SECONDS:
            told = now
            rate = done / (now - started)
            left = (total - done) / rate if rate else 0
            words = f"{what}: {done} of {total} {unit}, {rate:.1f} {unit}/s, {left:.0f} s left"
            LOG.say("progress", words, done=done, total=total, seconds_left=round(left))

    return advance
