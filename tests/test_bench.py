"""The benchmarks in short: what is held against each other did the same work, and what did not is found out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench.building import Job, check
from bench.streets import image_path, label_path, make_streets
from conftest import REPO

from packer.publish.free_space import in_memory
from readers.contract.manifest import STORAGES

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are watched in /proc")
PAIRS = 5


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs of streets; to draw one takes seconds."""
    raw = tmp_path_factory.mktemp("streets") / "raw"
    make_streets(raw, PAIRS)
    return raw


def laid(drawn: Path, raw: Path, pairs: int = PAIRS) -> None:
    """A raw folder of so many of them, again and again."""
    for kind in (image_path, label_path):
        kind(raw, 0).parent.mkdir(parents=True)
        for number in range(pairs):
            os.link(kind(drawn, number % PAIRS), kind(raw, number))


def bench(name: str, *options: object) -> str:
    """Run one as a user would; what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", f"bench.{name}", *map(str, options)],
        cwd=REPO,
        env={**os.environ, "PYTHONPATH": str(REPO / "tools")},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def figures(told: str, name: str) -> list[float]:
    """The numbers in the line that begins so."""
    (line,) = (line for line in told.splitlines() if line.startswith(name + "  "))
    return [float(word) for word in line.removeprefix(name).split()]


@pytest.mark.parametrize(
    ("options", "formats"), [((), STORAGES), (("--colours",), ("npy",))], ids=["numbers", "colours"]
)
def test_the_bare_loop_makes_what_a_build_packs(
    options: tuple[str, ...], formats: tuple[str, ...], drawn: Path, tmp_path: Path
) -> None:
    laid(drawn, tmp_path / "numbers")
    told = bench("building", "--pairs", PAIRS, "--rounds", 1, "--keep", tmp_path, "--formats", *formats, *options)
    assert {"bare", *formats} <= {line.split()[0] for line in told.splitlines() if line}


def test_one_worker_is_held_against_all_cores(drawn: Path, tmp_path: Path) -> None:
    laid(drawn, tmp_path / "numbers")
    told = bench(
        "building", "--scaling", "--pairs", PAIRS, "--rounds", 1, "--keep", tmp_path, "--formats", "npy", "hdf5"
    )
    for name in ("bare loop", "npy", "hdf5"):
        one, all_cores, times = figures(told, name)
        assert one > 0
        assert times == pytest.approx(all_cores / one, abs=0.02 + 0.1 / one)


def test_memory_is_of_all_processes(drawn: Path, tmp_path: Path) -> None:
    for pairs in (PAIRS, 10 * PAIRS):
        laid(drawn, tmp_path / f"96x128-{pairs}", pairs)
    told = bench("building", "--memory", "--pairs", PAIRS, "--keep", tmp_path, "--formats", "npy")
    few, many, times = figures(told, "npy")
    assert few > 100, "Python, numpy and OpenCV, some times over"
    assert times == pytest.approx(many / few, abs=0.02)


def test_a_pack_that_is_not_in_memory_is_read_in_every_way(tmp_path: Path) -> None:
    if in_memory(tmp_path):
        pytest.skip("what is a file there cannot be taken out of memory")
    told = bench("cold", "--gib", 0.02, "--rounds", 1, "--keep", tmp_path)
    rates = [
        figures(told[told.rindex("MB/s") :], name)[0]
        for name in ("direct, in order, 4 under way", "loader, random", 'loader, "window"', "dataset[i], random")
    ]
    assert min(rates) > 0


def test_a_pack_of_other_pixels_is_found_out(drawn: Path, tmp_path: Path) -> None:
    job = Job(tmp_path / "raw", tmp_path / "out", PAIRS, colours=False)
    laid(drawn, job.raw)
    job.build("npy", "--workers", 1)
    check(job, "npy")
    other_label = label_path(job.raw, 1).read_bytes()
    label_path(job.raw, 0).unlink()  # it is a link to what others use
    label_path(job.raw, 0).write_bytes(other_label)
    other = Job(job.raw, job.out, PAIRS, colours=False)
    with pytest.raises(RuntimeError, match="npy: the pack does not hold"):
        check(other, "npy")
