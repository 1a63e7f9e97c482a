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
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from readers.contract.errors import DamagedError, ReadError, RequestError
from readers.contract.live import ASKED
from readers.contract.manifest import LIVE, MANIFEST, Manifest
from readers.live_pack import LivePack, LiveShards, builds
from readers.pack import Pack

BUSY = 75
"""The exit code of a builder that finds OUT locked by another one."""
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
            wish = {"raw": os.fspath(Path(raw).absolute()), "options": options}
            return cls(json.dumps(wish, default=os.fspath, sort_keys=True))
        except TypeError as error:
            raise RequestError(f"an option of the build is not a text, a number or a list: {error}") from error

    def open(self, out: Path) -> Pack:
        """Start a builder, unless one works already, and return the pack: live, or published if nothing is to do."""
        return self.opened(out) if self._is_begun(out) else Pack.open(out)

    def _is_begun(self, out: Path) -> bool:
        """Start a builder. Return True when one shows its plan, False if nothing is to do."""
        if builds(out / LIVE):
            return True
        builder, kills = _Builder(self, out), 0
        while not builds(out / LIVE):
            code = builder.exit_code()
            if code == 0:
                return False
            if code is not None:
                kills += code < 0
                if code != BUSY and (code > 0 or kills > MOST_KILLS):
                    ended = f"its process was killed by signal {-code}, {kills} times" if code < 0 else builder.words
                    raise ReadError(f"{out}: cannot be built: {ended}")
                builder = _Builder(self, out)
            time.sleep(LOOK)
        return True

    def opened(self, out: Path) -> LivePack:
        """Open a pack that is being built, by a builder that was asked for the same."""
        if (out / LIVE / ASKED).read_text() != self.asked:
            raise ReadError(
                f"{out}: is being built from another folder or with other options; see {out / LIVE / ASKED}"
            )
        return LivePack(out, LiveShards(out, lambda: self._start_again(out)))

    def open_again(self, out: Path, identity: str) -> Pack:
        """Open it in another process, perhaps when it is finished."""
        if Manifest.load(out / LIVE).identity != identity:
            raise DamagedError(f"{out}: another build has begun there; open the data set again")
        return self.opened(out)

    def _start_again(self, out: Path) -> None:
        """Start a builder in the place of one that was killed. It must find the same plan."""
        before = (out / LIVE / MANIFEST).read_bytes()
        self._is_begun(out)
        if (out / LIVE / MANIFEST).read_bytes() != before:
            raise DamagedError(f"{out}: the raw files changed while the pack was built; open the data set again")


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
