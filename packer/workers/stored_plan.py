"""A plan in a store: this machine has files as long as there, and only those bytes of them that it reads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from packer.publish.local_mirror import private_scratch
from packer.publish.target import PLANS
from packer.publish.upload import Outbox
from packer.recipe.plan_folder import PLAN, SHARDS, PlanFolder
from packer.workers.planned import PlannedShards, open_out
from packer.workers.pool import Pool
from readers.contract.receipt import Receipt
from readers.stores.open_store import is_url, open_store
from readers.stores.store import check_name


class StoredPlan:
    """The plan at a URL, in a folder of this machine. What is read there is checked as in any plan."""

    def __init__(self, url: str, folder: Path) -> None:
        self._store, self.folder = open_store(url), folder
        folder.mkdir()
        for entry in self._store.list(""):
            path = folder / check_name(entry.name)
            if path.parent == folder:
                path.touch()
                os.truncate(path, entry.size)
        for name in (PLAN, SHARDS):
            (folder / name).write_bytes(self._store.read(name)[0])

    def fetch(self, plan: PlanFolder, number: int) -> None:
        """Read the rows of a shard, for `plan.spec(number)`."""
        for path, start, count in plan.spans(number):
            data, _ = self._store.read(path.name, start, start + count)
            file = os.open(path, os.O_WRONLY)
            try:
                os.pwrite(file, data, start)
            finally:
                os.close(file)


@dataclass(frozen=True)
class OpenBuild:
    """A plan and OUT, as a machine of a cluster sees them."""

    planned: PlannedShards
    stored: StoredPlan | None
    """The plan in a store; None if it is a folder that this machine sees."""
    out: Path | Outbox

    def build(self, number: int, pool: Pool) -> Receipt:
        """Build a shard, and send it if OUT is a store."""
        if self.stored is not None:
            self.stored.fetch(self.planned.plan, number)
        return self.planned.build(number, self.out, pool)


@contextmanager
def open_build(plan: str, sha256: str, raw: str | None, out: str) -> Iterator[OpenBuild]:
    """Open a plan and OUT, which are folders or URLs."""
    with ExitStack() as stack:
        folder, stored = Path(plan), None
        if is_url(plan):
            folder = stack.enter_context(private_scratch(None)) / PLANS
            stored = StoredPlan(plan, folder)
        planned = PlannedShards.open(folder, sha256, None if raw is None else Path(raw))
        stack.callback(planned.close)
        yield OpenBuild(planned, stored, stack.enter_context(open_out(out, None, 1)))
