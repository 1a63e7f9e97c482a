"""The drills in short: kills, power cuts and disks in the way of the packer; and that each drill can fail."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from conftest import REPO

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or (shutil.which("cc") is None and "CI" not in os.environ),
    reason="the drills load a C library into the packer, which takes Linux and a C compiler",
)

KILLS = ("kills", "--random", "5", "--every", "19")
POWER_LOSS = ("powerloss", "--states", "25")
FULL_DISK = ("fulldisk", "--every", "29", "--step", "65536")


def drill(name: str, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{REPO / 'tools'}{os.pathsep}{REPO}"}
    command = [sys.executable, "-m", f"drills.{name}", *options]
    return subprocess.run(command, cwd=REPO, env=environment, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.parametrize(
    ("options", "struck"),
    [
        ((*KILLS, "--format", "npy"), -4),  # killed
        ((*POWER_LOSS, "--format", "lmdb"), -4),  # states
        ((*FULL_DISK, "--format", "hdf5"), -3),  # exit 1
    ],
    ids=["kills", "powerloss", "fulldisk"],
)
def test_a_pack_is_as_before_or_as_after(options: tuple[str, ...], struck: int) -> None:
    done = drill(*options)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    assert len(rows) >= 5, done.stdout
    assert {row[-1] for row in rows} == {"0"}, done.stdout
    assert sum(int(row[struck]) for row in rows) > 10, done.stdout


@pytest.mark.parametrize(
    "options",
    [
        ("kills", "--random", "0", "--every", "3", "--sabotage", "in-place"),
        ("powerloss", "--states", "500", "--sabotage", "files"),
    ],
    ids=lambda options: options[-1],
)
def test_the_drills_find_what_is_wrong(options: tuple[str, ...]) -> None:
    done = drill(*options, "--format", "npy", "--scene", "rollback")
    assert done.returncode == 1, done.stdout
    assert "rollback" in done.stderr
    assert "manifest.json" in done.stderr, done.stderr
