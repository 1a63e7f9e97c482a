"""Limits of the shell and a long TMPDIR: the build works, or says what to do."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock

import pytest
from conftest import HANG, make_raw

import packer.__main__
import packer.cli
from packer.errors import EngineError
from packer.workers import fork_server

NOT_MAPPED = "libopenblas.so: failed to map segment from shared object"


def test_a_long_tmpdir_does_not_stop_the_workers(tmp_path: Path) -> None:
    raw, long = make_raw(tmp_path / "raw", {"train": 3}).path, tmp_path / ("x" * 120)
    long.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "packer", "build", "--quiet", str(raw), str(tmp_path / "out")],
        env={**os.environ, "TMPDIR": str(long)},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert (done.returncode, "AF_UNIX" in done.stderr) == (0, False), done.stderr
    assert not list(long.iterdir())


def test_without_any_short_folder_the_advice_is_to_set_tmpdir(tmp_path: Path) -> None:
    long = str(tmp_path / ("x" * 120))
    with (
        mock.patch.object(tempfile, "tempdir", long),
        mock.patch.object(fork_server, "SHORT_FOLDERS", ()),
        mock.patch.object(fork_server, "get_temp_dir", return_value=f"{long}/pymp-12345678"),
        pytest.raises(EngineError, match="is too long for the socket of the workers; set it to a shorter folder"),
    ):
        fork_server._choose_short_folder()


@pytest.mark.parametrize(
    ("limit", "advice"),
    [(200 << 20, "ulimit -v.* is 200 MiB: raise it"), (resource.RLIM_INFINITY, "raise the limit of memory")],
)
def test_a_limit_of_memory_is_not_blamed_on_opencv(limit: int, advice: str) -> None:
    with (
        mock.patch.object(resource, "getrlimit", return_value=(limit, limit)),
        mock.patch("builtins.__import__", side_effect=_failing(__import__, NOT_MAPPED)),
        pytest.raises(SystemExit, match=f"too little memory to load the libraries .*{advice}"),
    ):
        packer.__main__._command()


def test_an_opencv_without_a_screen_still_gets_its_advice() -> None:
    with (
        mock.patch("builtins.__import__", side_effect=_failing(__import__, "libGL.so.1: cannot open")),
        pytest.raises(SystemExit, match="opencv-python-headless"),
    ):
        packer.__main__._command()


def test_threads_that_cannot_be_started_name_the_limit() -> None:
    with (
        mock.patch.object(packer.cli, "main", side_effect=RuntimeError("can't start new thread")),
        mock.patch.object(resource, "getrlimit", return_value=(350 << 20, 350 << 20)),
        pytest.raises(SystemExit, match=r"no more threads can be started here; .*ulimit -v.* is 350 MiB"),
    ):
        packer.__main__._command()


def _failing(real: object, words: str) -> object:
    """Return an import that fails for the commands."""

    def imported(name: str, *arguments: object, **options: object) -> object:
        if name == "packer.cli":
            raise ImportError(words)
        return real(name, *arguments, **options)  # type: ignore[operator]

    return imported
