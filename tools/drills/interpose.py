"""Run the packer and count, record or break its changes to a folder, or kill it at one of them.

A drill calls `interposed()` first, which restarts the drill with interpose.c loaded. Builds are then forks of the
drill, which has imported everything, and take a tenth of a second.
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

from drills.sources import run_command
from packer.workers.fork_server import start_fork_server

SOURCE = Path(__file__).with_name("interpose.c")
STATE, PRELOAD = "DRILL_STATE", "LD_PRELOAD"
SECONDS = 60.0
KILLED = -signal.SIGKILL
Action = IntEnum("Action", "COUNT RECORD KILL TEAR FAIL FAIL_FROM SHORT", start=0)
Kind = IntEnum("Kind", "CREATE WRITE TRUNCATE RENAME UNLINK MKDIR RMDIR SYNC SYNC_FOLDER LINK")


class _State(ctypes.Structure):
    """The `struct shared` of interpose.c."""

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
    """The end of a run: the exit code, or minus the signal; the output; the number of changes; and the kind of the
    change at which the drill acted, if the run got there."""

    code: int
    output: str
    calls: int
    kind: Kind | None


def interposed() -> None:
    """Restart this program with interpose.c loaded, unless it is loaded."""
    if STATE in os.environ:
        start_fork_server()
        return
    with tempfile.TemporaryDirectory(prefix="drill-") as folder:
        library, state = f"{folder}/interpose.so", f"{folder}/state"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, str(SOURCE)], check=True)
        Path(state).write_bytes(bytes(ctypes.sizeof(_State)))
        single = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")  # threads do not survive a fork
        environment = {**os.environ, **single, PRELOAD: library, STATE: state}
        done = subprocess.run([sys.executable, *sys.orig_argv[1:]], env=environment, check=False)
    sys.exit(done.returncode)


def run(
    arguments: Sequence[str],
    folder: Path | None = None,
    action: Action = Action.COUNT,
    at: int = 0,
    error: int = 0,
    record: Path | None = None,
) -> Ended:
    """Run the packer, and act at its `at`-th change below `folder`. Return when its workers have ended, too."""
    start_fork_server()  # it ends if a build is killed between its call and the message to it
    state = _state()
    state.kind = state.calls = state.over = state.busy = state.parent = 0
    state.at, state.action, state.error = at, action, error
    state.record = os.fsencode(record) if record else b""
    state.folder = os.fsencode(folder) if folder else b""
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            state.parent = os.getpid()
            _run_packer(arguments, output.fileno())
        code = _wait(child)
        state.folder = b""
        output.seek(0)
        return Ended(code, output.read().decode(), state.calls, Kind(state.kind) if state.kind else None)


@functools.cache
def _state() -> _State:
    with Path(os.environ[STATE]).open("r+b") as file:
        return _State.from_buffer(mmap.mmap(file.fileno(), ctypes.sizeof(_State)))


def _run_packer(arguments: Sequence[str], output: int) -> NoReturn:
    """Run the command line in the fork, with the fork server of the drill."""
    code = 99
    try:
        os.dup2(output, 1)
        os.dup2(output, 2)
        for owner in (forkserver, forkserver._forkserver):
            vars(owner)["ensure_running"] = lambda: None
        main_module = sys.modules["__main__"]
        main_module.__spec__ = main_module.__file__ = None  # otherwise workers import it
        run_command(arguments)
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0
    except BaseException:  # noqa: BLE001 - the drill judges every error
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _wait(child: int) -> int:
    """Wait for the packer and its workers, and return its exit code."""
    deadline, status = time.monotonic() + SECONDS, None
    while status is None or _workers():
        if status is None:
            ended, code = os.waitpid(child, os.WNOHANG)
            status = code if ended else None
        if time.monotonic() > deadline:
            raise SystemExit(f"the packer, or a worker of it, still running after {SECONDS:.0f} s")
        time.sleep(0.002)
    return os.waitstatus_to_exitcode(status)


def _workers() -> str:
    server = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
    return Path(f"/proc/{server}/task/{server}/children").read_text()
