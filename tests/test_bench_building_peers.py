"""The bench of building next to other writers: all get the same input, its short form runs, wrong output is found."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from bench.building_peers import WRITERS, WriteResult, lines, row, turn
from bench.decode_loop import decode_loop
from bench.decoded_pairs import DecodedPairs
from bench.write_job import WriteJob, Written
from program import command
from scenes.camera import STREET, make_linked_streets
from zlib_ng.zlib_ng import crc32

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are read from /proc")
PAIRS, SIDE = 2, 64
PACKAGES = dict(zip(WRITERS, ("ffcv", "litdata", "streaming", "webdataset", "datasets"), strict=True))
LOOP = Written(seconds=1, durable=1, cpu=1, bytes=0)


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    raw = tmp_path_factory.mktemp("streets") / "raw"
    make_linked_streets(raw, PAIRS)
    return raw


def bench(*options: str) -> subprocess.CompletedProcess[str]:
    """Run it as a user would."""
    argv = command("bench.building_peers", *options)
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=600)


def test_all_writers_get_what_the_decode_loop_makes(raw: Path) -> None:
    pairs = DecodedPairs(raw, PAIRS, SIDE)
    given = [pairs[number] for number in range(len(pairs))]
    sums = tuple((crc32(image.transpose(2, 0, 1).tobytes()), crc32(label.tobytes())) for image, label in given)
    assert sums == decode_loop(raw, PAIRS, 1, checked=True, shape=replace(STREET, stored=(SIDE, SIDE))).checksums


@pytest.mark.long
def test_it_runs_with_the_installed_writers(raw: Path, tmp_path: Path) -> None:
    installed = [module for module, package in PACKAGES.items() if find_spec(package)]
    missing = [module for module in WRITERS if module not in installed][:1]
    names = ["npy", *(module for module in WRITERS if module in (*installed, *missing))]
    work = ("--pairs", str(PAIRS), "--size", str(SIDE), "--rounds", "1", "--raw", str(raw))
    done = bench(*work, "--only", ",".join(names), "--json", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads(done.stdout)["rows"]}
    assert list(rows) == ["bare", *names]
    for name in ("npy", *installed):
        assert rows[name]["trouble"] == ""
        [written] = rows[name]["written"]
        assert written["bytes"] > PAIRS * 4 * SIDE**2
        assert 0 < written["seconds"] <= written["durable"]
    for name in missing:
        assert rows[name]["trouble"].startswith("ModuleNotFoundError: No module named")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_it_runs_with_npy_alone(raw: Path, tmp_path: Path) -> None:
    work = ("--pairs", str(PAIRS), "--size", str(SIDE), "--rounds", "1", "--raw", str(raw))
    done = bench(*work, "--only", "npy", "--json", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    bare, npy = json.loads(done.stdout)["rows"]
    assert (bare["name"], npy["name"], npy["trouble"]) == ("bare", "npy", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_a_writer_of_wrong_pixels_is_not_measured(raw: Path, tmp_path: Path) -> None:
    result, job = WriteResult("npy"), WriteJob("npy", raw, tmp_path / "out", PAIRS, SIDE, 1)
    truth = sorted(decode_loop(raw, PAIRS, 1, checked=True, shape=replace(STREET, stored=(SIDE, SIDE))).checksums)
    (image, label), *others = map(list, truth)
    turn(result, job, LOOP, [[image, label ^ 1], *others])
    assert (result.trouble, result.written) == ("what is read back is not what was decoded", [])
    assert not job.out.exists()


def test_a_writer_that_fails_is_reported(tmp_path: Path) -> None:
    result = WriteResult("npy")
    turn(result, WriteJob("npy", tmp_path / "nothing", tmp_path / "out", PAIRS, SIDE, 1), LOOP, None)
    assert result.trouble
    assert result.written == []


def test_a_writer_that_was_not_measured_is_named_below_the_table() -> None:
    results = [WriteResult("npy", written=[LOOP], bare=[LOOP]), WriteResult("ffcv", trouble="no\nsuch module")]
    printed = list(lines(results, 8))
    assert printed[0].startswith("packer build, npy")
    assert printed[1:] == ["\nFFCV: not measured: no such module"]


def test_ratios_are_of_the_same_round() -> None:
    written = [Written(2, 4, 1, 1 << 20), Written(4, 4, 3, 1 << 20)]
    cells = row(WriteResult("npy", written=written, bare=[LOOP, Written(4, 4, 1, 0)]), 8).split(maxsplit=3)[3]
    assert " ".join(cells.split()) == "3 (2 to 4) 0.75 (0.50 to 1.00) 2 (2 to 2) 0.62 (0.25 to 1.00) 250.0 1"


def test_an_unknown_writer_is_refused() -> None:
    done = bench("--only", "npy,tape")
    assert done.returncode == 1
    assert "--only tape: expected some of arrow, hdf5, lmdb, npy, ffcv" in done.stderr
