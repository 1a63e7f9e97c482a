"""The process that workers are forked from. Light: a command starts it before anything else is imported."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import warnings
from multiprocessing import forkserver, resource_tracker
from multiprocessing.util import get_temp_dir

from packer.errors import EngineError
from packer.runtime import no_blas_threads
from packer.signals import blocked_signals

PRELOAD = "packer.workers.preload"
"""The module that the server imports: everything that a worker needs."""
MOST_FOLDER = 103 - len("/pymp-12345678/listener-12345678")
"""The longest name of a folder, in bytes, in which `multiprocessing` can make its socket."""
SHORT_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")

_fork_server = {"started here": False}


def start_fork_server() -> None:
    """Start the process that workers are forked from, so that it imports while this one does something else.

    It has no threads, but this process may have some of OpenCV or pyarrow: a fork of this one could hang. A server that
    the program has already started is used unchanged.
    """
    is_first = forkserver._forkserver._forkserver_pid is None  # type: ignore[attr-defined]
    _fork_server["started here"] |= is_first
    multiprocessing.set_forkserver_preload([PRELOAD])
    resource_tracker.ensure_running()  # its start unblocks signals, and the server would receive them
    if is_first:
        _choose_short_folder()
    with blocked_signals(), no_blas_threads():
        forkserver.ensure_running()


def warn_of_preload() -> None:
    """Warn that each worker imports everything itself, which takes 0.45 s of CPU, if the server is ours."""
    if _fork_server["started here"]:
        warnings.warn(
            f"worker processes start slowly: the fork server could not import {PRELOAD}",
            RuntimeWarning,
            stacklevel=2,
        )


def _choose_short_folder() -> None:
    """Have the server's socket in a folder with a short name if the name in TMPDIR is too long."""
    if len(os.fsencode(tempfile.gettempdir())) <= MOST_FOLDER:
        return
    before = tempfile.tempdir
    try:
        tempfile.tempdir = next((folder for folder in SHORT_FOLDERS if os.access(folder, os.W_OK | os.X_OK)), before)
        chosen = get_temp_dir()  # multiprocessing stays with it
    finally:
        tempfile.tempdir = before
    if len(os.fsencode(chosen)) > MOST_FOLDER + len("/pymp-12345678"):
        raise EngineError(f"TMPDIR {before} is too long for the socket of the workers; set it to a shorter folder")
