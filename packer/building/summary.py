"""`Summary`: the result of a build."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from packer.data_checks.findings import Findings
from readers.contract.manifest import Manifest
from readers.contract.receipt_facts import Notes


@dataclass(frozen=True, repr=False)
class Summary:
    """The result of a build. Every pair, or tile of a pair, is a row or a reject."""

    manifest: Manifest
    pairs: int
    pieces: int
    """Pairs, or their tiles."""
    rows: int
    reused: int
    """Rows in shards that existed before."""
    missing: tuple[str, ...]
    """Files without a partner that were skipped."""
    rejects: tuple[tuple[str, str, str], ...]
    """Split, key and reason of each rejected pair."""
    notes: Notes
    findings: Findings
    losses: Mapping[str, str]
    """The loss of each field that is stored as JPEG, in words."""
    stages: Mapping[str, float]
    """Seconds of each step, planning included."""

    def __repr__(self) -> str:
        """Return one line: a manifest alone has thousands of characters."""
        left = len(self.rejects) + len(self.missing)
        rows = f"{self.rows} rows of {self.pairs} pairs, {left} left out"
        return f"<Summary: generation {self.manifest.generation}, {rows}>"

    @property
    def seconds(self) -> float:
        return sum(self.stages.values())
