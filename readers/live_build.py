"""`LiveBuild`: a build that a data set starts, and reads while it goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from readers.contract.errors import DamagedError, ReadError, RequestError
from readers.contract.live import ASKED
from readers.contract.manifest import LIVE, LOCK, Manifest
from readers.live_pack import LivePack, LiveShards, builds
from readers.pack import Pack
from readers.stores.locks import is_locked
from readers.stores.open_store import url_of

BUSY = 75
"""The exit code of a builder that finds OUT locked by another one, or no reader."""
MOST_KILLS = 3
"""The builders that are started in the place of killed ones."""
LOOK = 0.05
"""Seconds from one look at the builder to the next."""
MOST_WORDS = 1 << 16


@dataclass(frozen=True)
class LiveBuild:
    """The raw folder and the options of `packer build` by their names in Python, as JSON."""

    asked: str

    @classmethod
    def of(cls, raw: str | os.PathLike[str], options: Mapping[str, object]) -> LiveBuild:
        """Check that another process can have the options."""
        try:
            wish = {"raw": url_of(raw) or os.fspath(Path(raw).absolute()), "options": options}
            return cls(json.dumps(wish, default=os.fspath, sort_keys=True))
        except TypeError as error:
            raise RequestError(f"an option of the build is not a text, a number or a list: {error}") from error

    def open(self, out: Path) -> Pack:
        """Start a builder, unless one works already, and return the pack: live, or published if nothing is to do."""
        return self.opened(out) if self._is_begun(out) else Pack.open(out)

    def _is_begun(self, out: Path) -> bool:
        """Start a builder as soon as no other process changes the pack. Return True when one shows its plan, False if
        nothing is to do."""
        builder, kills = None, 0
        while not builds(out / LIVE):
            code = None if builder is None else builder.exit_code()
            if builder is not None and code is not None:
                if code == 0:
                    return False
                kills += code < 0
                if code != BUSY and (code > 0 or kills > MOST_KILLS):
                    ended = builder.words or f"its process ended with exit code {code}"
                    if code < 0:
                        ended = f"its process was killed by signal {-code}, {kills} times"
                    raise ReadError(f"{out}: cannot be built: {ended}")
                builder = None
            if builder is None and not is_locked(out / LOCK):
                builder = _Builder(self, out)
            time.sleep(LOOK)
        return True

    def opened(self, out: Path) -> LivePack:
        """Open a pack that is being built, by a builder that was asked for the same."""
        if (out / LIVE / ASKED).read_text() != self.asked:
            raise ReadError(
                f"{out}: is being built from another folder or with other options; see {out / LIVE / ASKED}"
            )
        return LivePack(out, LiveShards(out, partial(self._start_again, out)))

    def open_again(self, out: Path, identity: str) -> Pack:
        """Open it in another process, perhaps when it is finished."""
        if Manifest.load(out / LIVE).identity != identity:
            raise DamagedError(f"{out}: another build has begun there; open the data set again")
        return self.opened(out)

    def _start_again(self, out: Path, waits: bool) -> bool:
        """Start a builder in the place of one that was killed. It refuses another plan as long as this one is read."""
        if not waits:
            with suppress(RuntimeError):  # at its end Python starts no thread that would wait for the process
                _Builder(self, out)
            return True
        return self._is_begun(out)


class _Builder:
    """A process that builds. It goes on without its parent as long as a reader has the pack open."""

    def __init__(self, build: LiveBuild, out: Path) -> None:
        self._code: int | None = None
        self.words = ""
        """The last words of a process that has ended."""
        output = tempfile.TemporaryFile()  # noqa: SIM115 - a pipe would break if this process ends first
        command = [sys.executable, "-m", "packer.cli.live", str(out)]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        assert process.stdin is not None
        with process.stdin as stdin:
            stdin.write(build.asked.encode())
        threading.Thread(target=self._wait, args=(process, output), name="segpack-builder", daemon=True).start()

    def _wait(self, process: subprocess.Popen[bytes], output: IO[bytes]) -> None:
        """Wait for the end of the process: else it would stay as a zombie."""
        code = process.wait()
        with output:
            output.seek(0)
            self.words = output.read(MOST_WORDS).decode(errors="replace").strip()
        self._code = code

    def exit_code(self) -> int | None:
        """Return the exit code; None as long as the process works."""
        return self._code
