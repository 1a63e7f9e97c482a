"""`Follow`: builds of a folder that still grows, one after the other.

A round that is due publishes. Before it, a round only builds shards, if as many files have changed as a shard has rows.
A shard of such a round is deleted by the next one if other rows belong into it.
"""

from __future__ import annotations

import math
import time
from pathlib import Path

from packer.building.run_build import Shards, built_here
from packer.building.summary import Summary
from packer.config.config import Settings
from packer.errors import InputError, LostFileError, PackError, UsageError, counted
from packer.plan.folder_state import FolderState, changed_files, state_of_folder
from packer.plan.plan import Plan
from packer.publish.target import STAMP_SUFFIX, STAMPS
from packer.workers.pool import Pool
from readers.contract.manifest import CELLS, SHARDS
from readers.contract.receipt import SUFFIX
from readers.stores.open_store import is_url

LEAST_PAUSE = 1.0
"""Seconds from one look at the folder to the next, at least."""
LOOKING = 0.05
"""The share of the time that looks take, at most."""
LONGEST_CHANGE = 60.0
"""Seconds after which a round begins although files still change."""
BUSY_PAUSE = 2.0
"""Seconds from a round that found the pack locked to the next."""
PASSING = InputError, LostFileError
"""Errors that end when files are added or written again."""


class NotYetError(PackError):
    """The shards are built. They are published later."""


def follow_settings(settings: Settings) -> Settings:
    """Return the settings of each round. Files without a partner wait for it."""
    if "raw" not in settings or is_url(settings["raw"]) or is_url(settings["out"]):
        raise UsageError("--follow: needs folders of this machine for RAW and OUT")
    if "engine" in settings:
        raise UsageError("--follow: builds on this machine; leave out --engine")
    missing = "skip" if settings["missing"] == "error" else settings["missing"]
    return {**settings, "follow": False, "missing": missing}  # OUT keeps them for later builds


class EarlyShards:
    """The shards that are built before a generation is due."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._stems: set[str] = set()

    def build(self, plan: Plan, pool: Pool) -> Shards:
        """Build the shards of a plan. Delete those that it does not have any more."""
        needed = {facts.stem for facts in plan.reused.values()}
        for stem in self._stems - needed:
            _delete(self._out, stem)
        self._stems &= needed
        before = {path.name for path in (self._out / SHARDS).iterdir()}
        for number, receipt in built_here(plan, pool):
            if receipt.stem + SUFFIX not in before:
                self._stems.add(receipt.stem)
            yield number, receipt

    def build_only(self, plan: Plan, pool: Pool) -> Shards:
        """Do the same, and do not publish them."""
        shards = rows = 0
        for number, receipt in self.build(plan, pool):
            shards, rows = shards + 1, rows + receipt.rows
            yield number, receipt
        raise NotYetError(f"{counted(rows, 'row')} in {counted(shards, 'shard')}; the next generation has them")

    def published(self) -> None:
        """Note that a generation has them."""
        self._stems.clear()


def _delete(out: Path, stem: str) -> None:
    """Delete the files of a shard, its stamps and its receipt first: a kill leaves no receipt without its files."""
    receipt = out / SHARDS / (stem + SUFFIX)
    rest = (path for folder in (SHARDS, CELLS) for path in (out / folder).glob(f"{stem}.*") if path != receipt)
    for path in (out / STAMPS / (stem + STAMP_SUFFIX), receipt, *rest):
        path.unlink(missing_ok=True)


class Follow:
    """A raw folder that grows, and its pack."""

    def __init__(self, raw: Path, out: Path, every: float) -> None:
        """Take the seconds from one generation to the next."""
        self._raw, self._out, self._every = raw, out, every
        self.early = EarlyShards(out)
        self._built: FolderState | None = None
        """The files when the last round began."""
        self._published, self._rows_of_shard = -math.inf, math.inf

    def wait(self) -> bool:
        """Wait until a round is due. Return whether it publishes."""
        before, changing = self._look(), 0.0
        while True:
            started = time.monotonic()
            time.sleep(LEAST_PAUSE)
            now = self._look()
            changing = changing + time.monotonic() - started if changed_files(before, now) else 0.0
            changed = len(now) if self._built is None else changed_files(self._built, now)
            is_due = time.monotonic() > self._published + self._every
            if changed and (not changing or changing > LONGEST_CHANGE) and (is_due or changed >= self._rows_of_shard):
                self._built = now
                return is_due
            time.sleep(max(0.0, time.monotonic() - started - LEAST_PAUSE) / LOOKING)
            before = now

    def try_again(self) -> None:
        """Begin the next round in a while, although no file changes."""
        time.sleep(BUSY_PAUSE)
        self._built = None

    def published(self, summary: Summary) -> None:
        """Note that a generation has all rows."""
        self.early.published()
        self._published, self._rows_of_shard = time.monotonic(), summary.rows / summary.manifest.shards

    def _look(self) -> FolderState:
        return state_of_folder(self._raw, self._out)
