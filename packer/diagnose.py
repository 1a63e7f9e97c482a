"""A training script that is watched from outside: started with our hook, ended after a while if wanted, read out."""

from __future__ import annotations

import json
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
from readers.diagnosis.record import Record
from readers.diagnosis.session import FOLDER

HOOK = Path(readers.diagnosis.__file__).parent / "hook"
PATIENCE = 10.0
"""Seconds a script has to end itself, before it is ended less gently."""


@dataclass
class Watched:
    """A command under watch; what its processes saw is in `folder`."""

    process: subprocess.Popen[bytes]
    folder: Path

    @classmethod
    def start(cls, command: Sequence[str], folder: Path, stdout: int | None) -> Watched:
        """Begin it, with `stdout` in the place of its own."""
        path = os.pathsep.join(filter(None, [str(HOOK), os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "PYTHONPATH": path, FOLDER: str(folder)}
        try:
            process = subprocess.Popen(command, env=environment, stdout=stdout)
        except OSError as error:
            raise UsageError(f"{command[0]}: {error.strerror}: expected a command, as in: python train.py") from error
        return cls(process, folder)

    def wait(self, seconds: float | None) -> int:
        """Its exit code when it ends; 0 when it is ended because it had its `seconds`."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.end()
            return 0
        return 128 - code if code < 0 else code

    def end(self) -> None:
        """As Ctrl-C does, then harder."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            self.process.send_signal(number)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(PATIENCE)
                return

    def records(self) -> list[Record]:
        """All that was seen, by whatever took most of the time first."""
        found = [record for path in sorted(self.folder.glob("*.json")) for record in _records(path)]
        return sorted((record for record in found if record.totals.steps), key=lambda record: -record.seconds)


def _records(path: Path) -> list[Record]:
    try:
        texts = json.loads(path.read_text())
    except ValueError as error:
        raise DamagedError(f"{path}: is not a diagnosis ({error})") from error
    return [Record.from_json(one, path) for one in texts]
