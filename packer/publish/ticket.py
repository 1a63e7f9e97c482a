"""Tickets: which shard of which plan became which receipt. A ticket is an empty file, whose name says it.

    OUT/tickets/<16 digits of the plan>/<number>-<fingerprint>-<SHA-256 of the receipt>
    OUT/tickets/<16 digits of the plan>/of-16          the plan was divided into 16 parts

A receipt alone does not say which shard of a plan it is: that of a picture before it changed has the same keys. One
listing shows everything, whoever built it and however often.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from packer.publish.atomic import target_errors
from readers.contract.atomic import make_folder, sync_folder
from readers.contract.errors import DamagedError

TICKETS = "tickets"
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


class Tickets:
    """The tickets of a plan, in its folder below OUT."""

    def __init__(self, out: Path, plan: str) -> None:
        """Take the SHA-256 of the plan."""
        self.folder = out / TICKETS / plan[:PLAN_DIGITS]

    def note_parts(self, count: int) -> None:
        """Note that the plan is divided into so many parts."""
        self._touch(f"of-{count}")

    def write(self, ticket: Ticket) -> None:
        """Write a ticket. The shard and its receipt must be on the disk."""
        self._touch(ticket.name)

    def remove(self, tickets: Iterable[Ticket]) -> None:
        """Remove tickets, so that their shards are built again."""
        with target_errors(self.folder):
            for ticket in tickets:
                (self.folder / ticket.name).unlink(missing_ok=True)

    def read(self, shards: int) -> tuple[dict[int, list[Ticket]], int]:
        """Return the tickets of each shard, and the number of parts; the largest, if there were several."""
        found: dict[int, list[Ticket]] = {}
        parts = 0
        for name in sorted(path.name for path in self.folder.iterdir()) if self.folder.is_dir() else ():
            if match := _PARTS.fullmatch(name):
                parts = max(parts, int(match[1]))
            elif match := _NAME.fullmatch(name):
                ticket = Ticket(int(match[1]), match[2], match[3])
                if ticket.number >= shards:
                    raise DamagedError(f"{self.folder / name}: the plan has only {shards} shards")
                found.setdefault(ticket.number, []).append(ticket)
        return found, parts

    def _touch(self, name: str) -> None:
        with target_errors(self.folder / name):
            make_folder(self.folder)
            if not (self.folder / name).exists():
                (self.folder / name).touch()
                sync_folder(self.folder)
