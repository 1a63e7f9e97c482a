"""The packer run with every change it makes to a folder counted, recorded, made to fail, or made its last.

A drill calls `interposed()` first: it starts itself anew with interpose.c loaded. Builds are then forks of the drill,
which has imported everything, and take a tenth of a second.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from multiprocessing import forkserver
from pathlib import Path
from typing import NoReturn

from packer.cli import main as packer
from packer.workers.process import start_fork_server

SOURCE = Path(__file__).with_name("interpose.c")
STATE, PRELOAD = "DRILL_STATE", "LD_PRELOAD"
SECONDS = 60.0
KILLED = -signal.SIGKILL
Action = IntEnum("Action", "COUNT RECORD KILL TEAR FAIL FAIL_FROM SHORT", start=0)
Kind = IntEnum("Kind", "CREATE WRITE TRUNCATE RENAME UNLINK MKDIR RMDIR SYNC SYNC_FOLDER")


class _State(ctypes.Structure):
    """What interpose.c calls `struct shared`."""

    _fields_ = (
        ("calls", ctypes.c_uint64),
        ("at", ctypes.c_uint64),
        ("action", ctypes.c_int32),
        ("error", ctypes.c_int32),
        ("kind", ctypes.c_int32),
        ("over", ctypes.c_int32),
        ("busy", ctypes.c_int32),
        ("parent", ctypes.c_int32),
        ("folder", ctypes.c_char * 2048),
        ("record", ctypes.c_char * 2048),
    )


@dataclass(frozen=True)
class Ended:
    """How a run of the packer ended: its exit code, or minus the signal; what it said; how many changes it made; and of
    which kind the change was that something was done at, if it came to it."""

    code: int
    words: str
    calls: int
    kind: Kind | None


def interposed() -> None:
    """Start this script anew with interpose.c loaded, unless that is done."""
    if STATE in os.environ:
        start_fork_server()
        return
    with tempfile.TemporaryDirectory(prefix="drill-") as folder:
        library, state = f"{folder}/interpose.so", f"{folder}/state"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, str(SOURCE)], check=True)
        Path(state).write_bytes(bytes(ctypes.sizeof(_State)))
        one = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")  # threads do not survive a fork
        environment = {**os.environ, **one, PRELOAD: library, STATE: state}
        done = subprocess.run([sys.executable, *sys.argv], env=environment, check=False)
    sys.exit(done.returncode)


def run(
    arguments: Sequence[str],
    folder: Path | None = None,
    action: Action = Action.COUNT,
    at: int = 0,
    error: int = 0,
    record: Path | None = None,
) -> Ended:
    """Run the packer, and do something at its `at`-th change below `folder`. Returns when its workers are gone, too."""
    state = _state()
    state.kind = state.calls = state.over = state.busy = state.parent = 0
    state.at, state.action, state.error = at, action, error
    state.record = os.fsencode(record) if record else b""
    state.folder = os.fsencode(folder) if folder else b""
    with tempfile.TemporaryFile() as words:
        child = os.fork()
        if child == 0:
            state.parent = os.getpid()
            _be_packer(arguments, words.fileno())
        code = _wait(child)
        state.folder = b""
        words.seek(0)
        return Ended(code, words.read().decode(), state.calls, Kind(state.kind) if state.kind else None)


@functools.cache
def _state() -> _State:
    with Path(os.environ[STATE]).open("r+b") as file:
        return _State.from_buffer(mmap.mmap(file.fileno(), ctypes.sizeof(_State)))


def _be_packer(arguments: Sequence[str], words: int) -> NoReturn:
    """In the fork: the command line, with the drill's fork server as its own."""
    code = 99
    try:
        os.dup2(words, 1)
        os.dup2(words, 2)
        for owner in (forkserver, forkserver._forkserver):
            vars(owner)["ensure_running"] = lambda: None
        here = sys.modules["__main__"]
        here.__spec__ = here.__file__ = None  # workers would import the drill again
        packer.main(list(arguments), prog_name="packer")
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0
    except BaseException:  # noqa: BLE001 - the drill must hear of it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _wait(child: int) -> int:
    """The exit code of the packer, once its workers are gone, too."""
    deadline, status = time.monotonic() + SECONDS, None
    while status is None or _workers():
        if status is None:
            ended, code = os.waitpid(child, os.WNOHANG)
            status = code if ended else None
        if time.monotonic() > deadline:
            raise SystemExit(f"the packer, or a worker of it, still runs after {SECONDS:.0f} s")
        time.sleep(0.002)
    return os.waitstatus_to_exitcode(status)


def _workers() -> str:
    server = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
    return Path(f"/proc/{server}/task/{server}/children").read_text()
