"""Metrics of a build for Prometheus' textfile collector, which never reads half a file: it is renamed into place."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from packer.build import Summary
from packer.errors import PackError
from packer.publish.atomic import put_text

LAST_SUCCESS = "packer_last_success_timestamp_seconds"
HELP = {
    "packer_last_run_timestamp_seconds": "When the last build ended.",
    LAST_SUCCESS: "When the last build ended that went well.",
    "packer_exit_code": "What the last build exited with.",
    "packer_duration_seconds": "How long the last build took.",
    "packer_generation": "Of the last build that went well.",
    "packer_pairs": "Found in the raw folder.",
    "packer_rows": "Packed.",
    "packer_reused_rows": "Of these, in shards that were there already.",
    "packer_rejects": "Pairs that are left out.",
    "packer_bytes": "Of the shards of this generation.",
}


@dataclass(frozen=True)
class Metrics:
    """What a build was, for the file at `path`."""

    path: Path
    started: float

    def write(self, exit_code: int, summary: Summary | None) -> None:
        """Replace the file. Where a build failed, what the last good one left stays."""
        now = time.time()
        values = self._before() if summary is None else _of(summary, now)
        values["packer_last_run_timestamp_seconds"] = now
        values["packer_exit_code"] = exit_code
        values["packer_duration_seconds"] = now - self.started
        lines = [
            f"# HELP {name} {words}\n# TYPE {name} gauge\n{name} {values[name]:.15g}\n"
            for name, words in HELP.items()
            if name in values
        ]
        put_text("".join(lines), self.path)

    def _before(self) -> dict[str, float]:
        try:
            text = self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return {}
        found = re.findall(r"^(packer_[a-z_]+) ([0-9.e+-]{1,30})$", text, re.MULTILINE)
        return {name: float(value) for name, value in found if name in HELP}


@contextmanager
def measured(path: Path | None) -> Iterator[Callable[[Summary], None]]:
    """Write the metrics of what happens inside; it hands over the summary if it comes so far."""
    summaries: list[Summary] = []
    metrics = Metrics(path, time.time()) if path is not None else None
    exit_code = 1
    try:
        yield summaries.append
        exit_code = 0
    except PackError as error:
        exit_code = error.exit_code
        raise
    finally:
        if metrics is not None:
            metrics.write(exit_code, summaries[0] if summaries else None)


def _of(summary: Summary, now: float) -> dict[str, float]:
    return {
        LAST_SUCCESS: now,
        "packer_generation": summary.manifest.generation,
        "packer_pairs": summary.pairs,
        "packer_rows": summary.rows,
        "packer_reused_rows": summary.reused,
        "packer_rejects": len(summary.rejects),
        "packer_bytes": summary.manifest.bytes,
    }
