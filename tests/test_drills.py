"""Short runs of the drills: kills, power cuts and full disks leave a whole pack. Each drill can also fail."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from program import command

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or (shutil.which("cc") is None and "CI" not in os.environ),
    reason="the drills load a C library into the packer, which needs Linux and a C compiler",
)

KILLS = ("kills", "--random", "5", "--format", "npy")
POWER_LOSS = ("powerloss", "--states", "25", "--format", "lmdb")
FULL_DISK = ("fulldisk", "--step", "65536", "--format", "hdf5")
NEXT_BUILD = ("--case", "next build")


def drill(name: str, *options: str) -> subprocess.CompletedProcess[str]:
    argv = command(f"drills.{name}", *options)
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.parametrize(
    ("options", "struck", "commands"),
    [  # -4 is the column "killed" or "states", -3 "exit 1"
        pytest.param((*KILLS, "--every", "101", *NEXT_BUILD), -4, 1, marks=pytest.mark.short),
        pytest.param((*POWER_LOSS, *NEXT_BUILD), -4, 1, marks=pytest.mark.short),
        pytest.param((*KILLS, "--every", "41"), -4, 5, marks=pytest.mark.long),
        pytest.param((*KILLS, "--every", "83", "--source", "pack"), -4, 3, marks=pytest.mark.long),
        pytest.param((*KILLS, "--every", "83", "--source", "rows"), -4, 3, marks=pytest.mark.long),
        pytest.param((*KILLS, "--every", "83", "--source", "labelme"), -4, 3, marks=pytest.mark.long),
        pytest.param((*KILLS, "--every", "83", "--source", "coco"), -4, 3, marks=pytest.mark.long),
        pytest.param(POWER_LOSS, -4, 5, marks=pytest.mark.long),
        pytest.param((*FULL_DISK, "--every", "59"), -3, 5, marks=pytest.mark.long),
    ],
    ids=[
        "kills",
        "powerloss",
        "long-kills",
        "long-kills-pack",
        "long-kills-rows",
        "long-kills-labelme",
        "long-kills-coco",
        "long-powerloss",
        "long-fulldisk",
    ],
)
def test_a_pack_is_in_the_state_before_or_after(options: tuple[str, ...], struck: int, commands: int) -> None:
    done = drill(*options)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    assert len(rows) >= commands, done.stdout
    assert {row[-1] for row in rows} == {"0"}, done.stdout
    assert sum(int(row[struck]) for row in rows) > 2 * commands, done.stdout


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [
        ("kills", "--random", "0", "--every", "1", "--sabotage", "in-place"),
        ("powerloss", "--states", "500", "--sabotage", "files"),
    ],
    ids=["in-place", "files"],
)
def test_a_drill_finds_a_missing_safeguard(options: tuple[str, ...]) -> None:
    done = drill(*options, "--format", "npy", "--case", "rollback")
    assert done.returncode == 1, done.stdout
    assert "rollback" in done.stderr
    assert "manifest.json" in done.stderr, done.stderr
