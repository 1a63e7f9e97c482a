"""The log: words on stderr, as lines for people, or as JSON lines for machines with the id of the run in each."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timezone

import click

TEXT, JSON = "text", "json"
FORMATS = (TEXT, JSON)


@dataclass
class Log:
    """Where a command says what happens."""

    form: str = TEXT
    published: bool = False
    """Whether the command has done what it is for, whatever comes then."""
    run: str = field(default_factory=lambda: secrets.token_hex(4))

    def say(self, event: str, text: str, **facts: object) -> None:
        """A line: `event` is what kind of line it is, `text` what people read, `facts` what machines also want."""
        if self.form == TEXT:
            click.echo(text, err=True)
            return
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {"time": now, "run": self.run, "event": event, "message": text.strip(), **facts}
        click.echo(json.dumps(line, ensure_ascii=False), err=True)


LOG = Log()
"""That of this process: a process is one run of one command."""
