"""The benchmark of writers: all write the same pairs, and a writer that changes pixels is found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from bench.bare import bare_loop
from bench.decoded import DecodedPairs
from bench.jobs import Job, Written
from bench.streets import make_streets
from bench.writers import WRITERS, Row, line, lines, turn
from conftest import REPO
from zlib_ng.zlib_ng import crc32

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are read from /proc")
PAIRS, SIDE = 2, 64
PACKAGES = dict(zip(WRITERS, ("ffcv", "litdata", "streaming", "webdataset", "datasets"), strict=True))
LOOP = Written(seconds=1, durable=1, cpu=1, bytes=0)


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    raw = tmp_path_factory.mktemp("streets") / "raw"
    make_streets(raw, PAIRS)
    return raw


def bench(*options: str) -> subprocess.CompletedProcess[str]:
    """Run the benchmark in a process of its own, with the code of this checkout."""
    command = [sys.executable, "-m", "bench.writers", *options]
    environment = {**os.environ, "PYTHONPATH": f"{REPO / 'tools'}:{REPO}"}
    return subprocess.run(command, cwd=REPO, env=environment, capture_output=True, text=True, check=False, timeout=600)


def test_all_writers_get_what_the_bare_loop_makes(raw: Path) -> None:
    pairs = DecodedPairs(raw, PAIRS, SIDE)
    fed = [pairs[number] for number in range(len(pairs))]
    sums = tuple(crc32(label.tobytes(), crc32(image.transpose(2, 0, 1).tobytes())) for image, label in fed)
    assert sums == bare_loop(raw, PAIRS, 1, checked=True, side=SIDE).checksums


@pytest.mark.long
def test_it_runs_with_the_installed_writers(raw: Path, tmp_path: Path) -> None:
    there = [module for module, package in PACKAGES.items() if find_spec(package)]
    missing = [module for module in WRITERS if module not in there][:1]
    names = ["npy", *(module for module in WRITERS if module in (*there, *missing))]
    work = ("--pairs", str(PAIRS), "--size", str(SIDE), "--rounds", "1", "--raw", str(raw))
    done = bench(*work, "--only", ",".join(names), "--json", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads(done.stdout)["rows"]}
    assert list(rows) == ["bare", *names]
    for name in ("npy", *there):
        assert rows[name]["trouble"] == ""
        [written] = rows[name]["written"]
        assert written["bytes"] > PAIRS * 4 * SIDE**2
        assert 0 < written["seconds"] <= written["durable"]
    for name in missing:
        assert rows[name]["trouble"].startswith("ModuleNotFoundError: No module named")
    assert list(tmp_path.iterdir()) == []


def test_it_runs_with_npy_alone(raw: Path, tmp_path: Path) -> None:
    work = ("--pairs", str(PAIRS), "--size", str(SIDE), "--rounds", "1", "--raw", str(raw))
    done = bench(*work, "--only", "npy", "--json", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    bare, npy = json.loads(done.stdout)["rows"]
    assert (bare["name"], npy["name"], npy["trouble"]) == ("bare", "npy", "")
    assert list(tmp_path.iterdir()) == []


def test_changed_pixels_are_reported_instead_of_figures(raw: Path, tmp_path: Path) -> None:
    row, job = Row("npy"), Job("npy", raw, tmp_path / "out", PAIRS, SIDE, 1)
    truth = sorted(bare_loop(raw, PAIRS, 1, checked=True, side=SIDE).checksums)
    turn(row, job, LOOP, [*truth[1:], truth[0] ^ 1])
    assert (row.trouble, row.written) == ("what is read back is not what was decoded", [])
    assert not job.out.exists()


def test_a_writer_that_fails_gives_its_reason(tmp_path: Path) -> None:
    row = Row("npy")
    turn(row, Job("npy", tmp_path / "nothing", tmp_path / "out", PAIRS, SIDE, 1), LOOP, None)
    assert row.trouble
    assert row.written == []


def test_writers_that_were_not_measured_are_named_below_the_table() -> None:
    printed = list(lines([Row("npy", written=[LOOP], bare=[LOOP]), Row("ffcv", trouble="no\nsuch module")], 8))
    assert printed[0].startswith("packer build, npy")
    assert printed[1:] == ["\nFFCV: not measured: no such module"]


def test_ratios_are_of_the_same_round() -> None:
    row = Row("npy", written=[Written(2, 4, 1, 1 << 20), Written(4, 4, 3, 1 << 20)], bare=[LOOP, Written(4, 4, 1, 0)])
    cells = line(row, 8).split()
    assert cells[3:] == ["3", "(2-4)", "0.75", "(0.50-1.00)", "2", "(2-2)", "0.62", "(0.25-1.00)", "250.0", "1"]


def test_an_unknown_writer_is_refused() -> None:
    done = bench("--only", "npy,tape")
    assert done.returncode == 1
    assert "--only tape: expected some of arrow, hdf5, lmdb, npy, ffcv" in done.stderr
