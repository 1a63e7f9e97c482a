"""The log on stderr: text for people, or one JSON object per line with the id of the run."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from packer.cli.output import show
from readers.contract.plain_text import one_line

TEXT, JSON = "text", "json"


@dataclass
class Log:
    """The log of one run of a command."""

    form: str = TEXT
    published: bool = False
    """The command has published its result. A signal that comes later changes nothing on disk."""
    run: str = field(default_factory=lambda: secrets.token_hex(4))

    def say(self, event: str, text: str, **facts: object) -> None:
        """Write a line. People see `text`; JSON also has `event`, the kind of line, and `facts`."""
        self._write(event, one_line(text) if self.form == TEXT else text, facts)

    def fail(self, event: str, error: str, exit_code: int) -> None:
        """Write why the run ends. An error may have many lines."""
        self._write(event, f"packer: {error}", {"exit_code": exit_code})

    def _write(self, event: str, text: str, facts: dict[str, object]) -> None:
        if self.form == TEXT:
            show(text, err=True)
            return
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {"time": now, "run": self.run, "event": event, "message": text.strip(), **facts}
        show(json.dumps(line, ensure_ascii=False), err=True)


LOG = Log()
"""The log of this process: a process runs one command."""


def log_wait(why: str, seconds: float) -> None:
    """Log that the command waits for a store, also with --quiet."""
    until = datetime.now() + timedelta(seconds=seconds)
    words = f"waiting   {why}; it is tried again until {until:%H:%M:%S}"
    LOG.say("waiting", words, reason=why, seconds=round(seconds))
