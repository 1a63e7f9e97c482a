"""Metrics of builds for Prometheus' textfile collector. A rename replaces the file: no program reads half of it."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from packer.cli.exit_code import exit_code
from packer.cli.log import LOG
from packer.errors import RejectedError, TargetError, TooManyRejectsError, UsageError
from packer.publish.atomic import target_errors, write_atomic
from readers.contract.atomic import partial

if TYPE_CHECKING:
    from packer.building import Summary

LAST_SUCCESS = "packer_last_success_timestamp_seconds"
HELP = {
    "packer_last_run_timestamp_seconds": "Time when the last build ended.",
    LAST_SUCCESS: "Time when the last successful build ended.",
    "packer_exit_code": "Exit code of the last build.",
    "packer_duration_seconds": "Duration of the last build.",
    "packer_generation": "Generation of the last successful build.",
    "packer_pairs": "Pairs in the raw folder. Absent after a failure.",
    "packer_rows": "Rows in the pack. Absent after a failure.",
    "packer_reused_rows": "Rows in shards that were reused. Absent after a failure.",
    "packer_rejects": "Pairs that the last build could not pack. Absent after a failure that did not count them.",
    "packer_bytes": "Bytes of the shards of the generation.",
}
LASTING = (LAST_SUCCESS, "packer_generation", "packer_bytes")
"""Values of the last successful build that stay after a failed one."""


@dataclass(frozen=True)
class Metrics:
    """The file of metrics at `path`, for a build that began at `started`."""

    path: Path
    started: float

    def check(self) -> None:
        """Refuse a file that cannot be written, before a night is spent on a build."""
        if self.path.exists() and not self.path.is_file():
            raise UsageError(f"--metrics-file {self.path}: cannot be written (is not a plain file)")
        if not self.path.absolute().parent.is_dir():
            raise UsageError(f"--metrics-file {self.path}: cannot be written (there is no folder {self.path.parent})")
        with target_errors(self.path), partial(self.path.parent):
            pass

    def write(self, summary: Summary | None, error: BaseException | None) -> None:
        """Replace the file. After a failed build, only what is still true stays of the last successful one."""
        now = time.time()
        values = {} if summary is None else _values(summary, now)
        if error is not None:
            values = {**self._lasting(), **values}
            values[LAST_SUCCESS] = self._lasting().get(LAST_SUCCESS, math.nan)
        if isinstance(error, (RejectedError, TooManyRejectsError)):
            values["packer_rejects"] = len(error.problems)
        values["packer_last_run_timestamp_seconds"] = now
        values["packer_exit_code"] = 0 if error is None else exit_code(error)
        values["packer_duration_seconds"] = now - self.started
        lines = [
            f"# HELP {name} {help_text}\n# TYPE {name} gauge\n{name} {values[name]:.15g}\n"
            for name, help_text in HELP.items()
            if math.isfinite(values.get(name, math.nan))
        ]
        write_atomic(self.path, "".join(lines))

    def _lasting(self) -> dict[str, float]:
        """Read the values that stay. A broken line counts as missing."""
        try:
            text = self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return {}
        values: dict[str, float] = {}
        for name, number in re.findall(r"^(packer_[a-z_]+) (\S{1,30})$", text, re.MULTILINE):
            with suppress(ValueError):
                values[name] = float(number)
        return {name: value for name, value in values.items() if name in LASTING}


@contextmanager
def measured(path: Path | None) -> Iterator[Callable[[Summary], None]]:
    """Write the metrics of the build in the body to `path`. The body passes its summary to the yielded function."""
    if path is None:
        yield lambda summary: None
        return
    summaries: list[Summary] = []
    metrics = Metrics(path, time.time())
    metrics.check()
    try:
        yield summaries.append
    except BaseException as error:
        try:
            metrics.write(summaries[0] if summaries else None, error)
        except TargetError as unwritten:  # the error of the build matters more
            LOG.say("metrics", f"packer: {unwritten}")
        raise
    metrics.write(summaries[0] if summaries else None, None)


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
