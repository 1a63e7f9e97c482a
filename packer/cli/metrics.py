"""Metrics of builds for Prometheus' textfile collector. The file is replaced by a rename: nobody reads half of it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from packer.build import Summary
from packer.errors import PackError
from packer.publish.atomic import write_atomic

LAST_SUCCESS = "packer_last_success_timestamp_seconds"
HELP = {
    "packer_last_run_timestamp_seconds": "Time when the last build ended.",
    LAST_SUCCESS: "Time when the last successful build ended.",
    "packer_exit_code": "Exit code of the last build.",
    "packer_duration_seconds": "Duration of the last build.",
    "packer_generation": "Generation of the last successful build.",
    "packer_pairs": "Pairs in the raw folder.",
    "packer_rows": "Rows in the pack.",
    "packer_reused_rows": "Rows in shards that were reused.",
    "packer_rejects": "Pairs that could not be packed.",
    "packer_bytes": "Bytes of the shards of the generation.",
}


@dataclass(frozen=True)
class Metrics:
    """The file of metrics at `path`, for a build that began at `started`."""

    path: Path
    started: float

    def write(self, exit_code: int, summary: Summary | None) -> None:
        """Replace the file. After a failed build, the values of the last successful one stay."""
        now = time.time()
        values = self._old_values() if summary is None else _values(summary, now)
        values["packer_last_run_timestamp_seconds"] = now
        values["packer_exit_code"] = exit_code
        values["packer_duration_seconds"] = now - self.started
        lines = [
            f"# HELP {name} {help_text}\n# TYPE {name} gauge\n{name} {values[name]:.15g}\n"
            for name, help_text in HELP.items()
            if name in values
        ]
        write_atomic(self.path, "".join(lines))

    def _old_values(self) -> dict[str, float]:
        try:
            text = self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return {}
        values = re.findall(r"^(packer_[a-z_]+) ([0-9.e+-]{1,30})$", text, re.MULTILINE)
        return {name: float(value) for name, value in values if name in HELP}


@contextmanager
def measured(path: Path | None) -> Iterator[Callable[[Summary], None]]:
    """Write the metrics of the build in the body to `path`. The body passes its summary to the yielded function."""
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


def _values(summary: Summary, now: float) -> dict[str, float]:
    return {
        LAST_SUCCESS: now,
        "packer_generation": summary.manifest.generation,
        "packer_pairs": summary.pairs,
        "packer_rows": summary.rows,
        "packer_reused_rows": summary.reused,
        "packer_rejects": len(summary.rejects),
        "packer_bytes": summary.manifest.bytes,
    }
