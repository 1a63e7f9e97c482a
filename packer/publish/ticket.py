"""Tickets: which shard of a plan became which receipt. A ticket is an empty object, and its name has these facts.

    OUT/tickets/<16 digits of the plan>/<number>-<fingerprint>-<SHA-256 of the receipt>
    OUT/tickets/<16 digits of the plan>/of-16          the plan was divided into 16 parts

A receipt alone does not say which shard of a plan it is: the receipt of a picture before it changed has the same keys.
One listing shows everything, however often and by which machine it was built. In a folder a ticket is made by one call:
an empty file is never half there. A power cut may take the last tickets, or a shard that has one: its part runs again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from packer.publish.atomic import store_errors, target_errors
from packer.publish.target import TICKETS
from readers.contract.atomic import in_folder, sync_folder
from readers.contract.errors import DamagedError
from readers.stores.folder_store import FolderStore, store_of
from readers.stores.store import Store
from readers.stores.waiting import answered

PLAN_DIGITS = 16
_NAME = re.compile(r"([0-9]{1,12})-([0-9a-f]{32})-([0-9a-f]{64})")
_PARTS = re.compile(r"of-([0-9]{1,9})")


class Ticket(NamedTuple):
    """Shard `number` of a plan is the one with this fingerprint, and its receipt has this SHA-256."""

    number: int
    fingerprint: str
    receipt: str

    @property
    def name(self) -> str:
        return f"{self.number}-{self.fingerprint}-{self.receipt}"


def folder_of(plan: str) -> str:
    """Return the folder of the tickets of a plan with this SHA-256."""
    return f"{TICKETS}/{plan[:PLAN_DIGITS]}"


def is_ticket(name: str) -> bool:
    """Return whether a file has the name of a ticket, or notes the number of parts."""
    return bool(_NAME.fullmatch(name) or _PARTS.fullmatch(name))


class Tickets:
    """The tickets of a plan, in its folder below OUT, which is a folder or a bucket."""

    def __init__(self, out: Path | Store, plan: str) -> None:
        """Take the SHA-256 of the plan."""
        self._store, self.folder = store_of(out), folder_of(plan)

    def sync(self) -> None:
        """Bring all tickets to the disk. Their shards must be there."""
        if isinstance(self._store, FolderStore):
            path = self._store.path(self.folder)
            with target_errors(path):
                sync_folder(path)

    def note_parts(self, count: int) -> None:
        """Note into how many parts the plan is divided."""
        self._touch(f"of-{count}")

    def write(self, ticket: Ticket) -> None:
        """Write a ticket. The shard and its receipt must be in OUT."""
        self._touch(ticket.name)

    @store_errors()
    def remove(self, tickets: Iterable[Ticket]) -> None:
        """Remove tickets, so that their shards are built again."""
        names = [f"{self.folder}/{ticket.name}" for ticket in tickets]
        answered(lambda: self._store.delete(names))

    @store_errors()
    def read(self, shards: int) -> tuple[dict[int, list[Ticket]], int]:
        """Return the tickets of each shard, and the number of parts; the largest, if there were several."""
        if isinstance(self._store, FolderStore):
            return tickets_among(self._store.names(self.folder), shards)
        return tickets_among((entry.name for entry in self._store.list(self.folder)), shards)

    @store_errors()
    def _touch(self, name: str) -> None:
        if not isinstance(self._store, FolderStore):
            answered(lambda: self._store.put(f"{self.folder}/{name}", b""))
            return
        path = self._store.path(f"{self.folder}/{name}")
        with target_errors(path):
            try:
                in_folder(path.parent, partial(path.touch, exist_ok=False))
            except FileExistsError:
                path.touch()  # `packer gc` looks at its time


def tickets_among(names: Iterable[str], shards: int) -> tuple[dict[int, list[Ticket]], int]:
    """Return the tickets among the names in the folder of a plan with this number of shards. See `Tickets.read`."""
    tickets: dict[int, list[Ticket]] = {}
    parts = 0
    for name in sorted(name.rpartition("/")[2] for name in names):
        if match := _PARTS.fullmatch(name):
            parts = max(parts, int(match[1]))
        elif match := _NAME.fullmatch(name):
            ticket = Ticket(int(match[1]), match[2], match[3])
            if ticket.number >= shards:
                raise DamagedError(f"{TICKETS}/…/{name}: the plan has only {shards} shards")
            tickets.setdefault(ticket.number, []).append(ticket)
    return tickets, parts
