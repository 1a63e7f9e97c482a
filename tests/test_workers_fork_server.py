"""The fork server: if its preload fails, each worker imports everything itself, and the build warns."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import HANG, make_raw, python

PACKER = """
import multiprocessing
from multiprocessing import forkserver
from packer.workers import fork_server
{change}
from packer.__main__ import main
main()
"""
IMPORT_ERROR = """
import os, sys
from importlib.abc import MetaPathFinder

class Failing(MetaPathFinder):
    server = os.getpid()

    def find_spec(self, name, path=None, target=None):
        if name == "packer.workers.worker" and os.getpid() == self.server:
            raise ImportError("a library is missing")

if "multiprocessing.forkserver" in sys.orig_argv[-1]:
    sys.meta_path.insert(0, Failing())
"""
"""A `sitecustomize` with which the server cannot import the module, but its children can."""
CHANGES = {
    "none": ("", False),
    "wrong name": ("fork_server.PRELOAD = 'packer.engines.worker'", True),
    "import error": ("", True),
    "another server": ("multiprocessing.set_forkserver_preload(['json']); forkserver.ensure_running()", False),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_preload_that_fails_is_reported_once(tmp_path: Path, change: str) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 20})
    if change == "import error":
        (tmp_path / "sitecustomize.py").write_text(IMPORT_ERROR)
    code, warns = CHANGES[change]
    done = python(
        "-c",
        PACKER.format(change=code),
        "build",
        "--quiet",
        "--workers",
        "2",
        raw.path,
        tmp_path / "out",
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])},
        timeout=HANG,
    )
    assert (
        done.stderr.count("could not import packer.workers.preload" if change == "import error" else "could not import")
        == warns
    ), done.stderr
