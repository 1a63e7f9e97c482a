"""Builds, parts and commits into a bucket, pushes and pulls that are killed: the short form of drills.store_kills."""

from __future__ import annotations

import subprocess

import pytest
from conftest import HANG
from program import command


@pytest.mark.long
@pytest.mark.parametrize(("case", "kills"), [("build", 3), ("push", 2), ("pull", 2), ("part", 2), ("commit", 2)])
def test_a_command_that_was_killed_leaves_a_whole_generation_and_is_run_again(case: str, kills: int) -> None:
    pytest.importorskip("ministack")
    argv = command("drills.store_kills", "--case", case, "--kills", kills)
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=5 * HANG)
    assert done.returncode == 0, done.stdout + done.stderr
    name, _, _, _, count, *_ = done.stdout.splitlines()[1].split()
    assert (name, int(count) >= kills // 2) == (case, True)
