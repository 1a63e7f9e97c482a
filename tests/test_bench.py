"""The benchmarks in short: what is held against each other did the same work, and what did not is found out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench.building import Job, check
from bench.streets import label_path, make_streets
from conftest import REPO

from readers.contract.manifest import STORAGES

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are watched in /proc")
PAIRS = 5


@pytest.mark.parametrize(
    ("options", "formats"), [((), STORAGES), (("--colours",), ("npy",))], ids=["numbers", "colours"]
)
def test_the_bare_loop_makes_what_a_build_packs(
    options: tuple[str, ...], formats: tuple[str, ...], tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "bench.building", "--pairs", str(PAIRS), "--rounds", "1", "--keep", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(REPO / "tools")}
    done = subprocess.run(
        [*command, "--formats", *formats, *options],
        cwd=REPO,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    told = {line.split()[0] for line in done.stdout.splitlines() if line}
    assert {"bare", *formats} <= told, done.stdout


def test_a_pack_of_other_pixels_is_found_out(tmp_path: Path) -> None:
    job = Job(tmp_path / "raw", tmp_path / "out", PAIRS, colours=False)
    make_streets(job.raw, PAIRS)
    job.build("npy", "--workers", 1)
    check(job, "npy")
    label_path(job.raw, 0).write_bytes(label_path(job.raw, 1).read_bytes())
    other = Job(job.raw, job.out, PAIRS, colours=False)
    with pytest.raises(RuntimeError, match="npy: the pack does not hold"):
        check(other, "npy")
