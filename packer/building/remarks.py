"""The remarks of a build: what reports show of it later."""

from __future__ import annotations

from pathlib import Path

from packer.building.summary import Summary
from packer.publish.remarks import MOST_LISTED, Remarks, keep_remarks

MOST_PAIRS = 20
"""The number of pairs that a finding names in words."""


def keep_remarks_of(out: Path, summary: Summary) -> None:
    """Write what a build noticed next to the generation that it published."""
    findings = summary.findings.open
    remarks = Remarks(
        identity=summary.manifest.identity,
        seconds=round(summary.seconds, 3),
        rows=summary.rows,
        reused=summary.reused,
        rejects=summary.rejects[:MOST_LISTED],
        all_rejects=len(summary.rejects),
        findings=tuple((item.kind, item.pairs[:MOST_LISTED], item.text(MOST_PAIRS)) for item in findings[:MOST_LISTED]),
        all_findings=len(findings),
        notes=summary.notes.first,
        all_notes=summary.notes.rows,
        totals=summary.notes.sums,
    )
    keep_remarks(out, summary.manifest.generation, remarks)
