"""Progress of long work: a bar on stderr, or nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

Advance = Callable[[int], None]
"""Called with the amount that was just done."""
Progress = Callable[[str, int, str], AbstractContextManager[Advance]]
"""Called with a task, its total and the unit; returns a context that gives an `Advance`."""


@contextmanager
def no_progress(task: str, total: int, unit: str) -> Iterator[Advance]:
    """Show nothing."""
    yield lambda done: None


@contextmanager
def progress_bar(task: str, total: int, unit: str) -> Iterator[Advance]:
    """Show a bar with rate and time left on stderr."""
    from tqdm import tqdm  # a tenth of the time that `packer --version` may take

    width = shutil.get_terminal_size().columns  # never 0, which some terminals report and tqdm believes
    with tqdm(total=total, desc=task, unit=f" {unit}", unit_scale=unit == "B", ncols=width, smoothing=0.1) as bar:
        yield bar.update
