"""Run a training script with the hook that records its steps, end it after some time, and read the records."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import readers.diagnosis
from packer.errors import UsageError
from readers.contract.errors import DamagedError
from readers.contract.json_entry import loads
from readers.diagnosis.record import Record
from readers.diagnosis.session import FOLDER

HOOK = Path(readers.diagnosis.__file__).parent / "hook"
PATIENCE = 10.0
"""Seconds that a script has to end after each signal, before the next, stronger one."""


@dataclass
class Watched:
    """A command that was started with the hook. Its processes write their records to `folder`."""

    process: subprocess.Popen[bytes]
    folder: Path

    @classmethod
    def start(cls, command: Sequence[str], folder: Path, stdout: int | None) -> Watched:
        """Start the command, with its output sent to `stdout`."""
        path = os.pathsep.join(filter(None, [str(HOOK), os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "PYTHONPATH": path, FOLDER: str(folder)}
        try:
            process = subprocess.Popen(command, env=environment, stdout=stdout)
        except OSError as error:
            raise UsageError(f"{command[0]}: {error.strerror}: expected a command, as in: python train.py") from error
        return cls(process, folder)

    def wait(self, seconds: float | None) -> int:
        """Wait for the end and return the exit code; after `seconds`, end the command and return 0."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.end()
            return 0
        return 128 - code if code < 0 else code

    def end(self) -> None:
        """End the command: SIGINT, as Ctrl-C sends it, then SIGTERM, then SIGKILL."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            self.process.send_signal(number)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(PATIENCE)
                return

    def records(self) -> list[Record]:
        """Return the records of all loaders, the slowest first."""
        records = [record for path in sorted(self.folder.glob("*.json")) for record in _records(path)]
        return sorted((record for record in records if record.totals.steps), key=lambda record: -record.seconds)


def _records(path: Path) -> list[Record]:
    try:
        entries = loads(path.read_text())
    except ValueError as error:
        raise DamagedError(f"{path}: is not a diagnosis ({error})") from error
    return [Record.from_json(entry, path) for entry in entries]
