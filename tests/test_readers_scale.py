"""Opening costs the same at any size, and reading holds no more than a bounded number of files and maps.

The large packs are real but for one trick: all entries of their shard table name the same shard.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from conftest import calls_of, make_raw, pack
from scenes.repeated import repeat_shard

from readers import open_dataset
from readers.pack import MOST_OPEN_SHARDS


@pytest.fixture(scope="module")
def thousand(tmp_path_factory: pytest.TempPathFactory, storage: str) -> Path:
    """1000 samples of 2x2 pixels."""
    raw = make_raw(tmp_path_factory.mktemp("thousand") / "raw", {"train": 1000}, height=2, width=2)
    return pack(raw.path, raw.path.parent / "out", "--format", storage)


@pytest.fixture(scope="module")
def million(tmp_path_factory: pytest.TempPathFactory, thousand: Path) -> Path:
    """10^6 samples in 1000 shards."""
    out = shutil.copytree(thousand, tmp_path_factory.mktemp("million") / "out")
    repeat_shard(out, 1000)
    return out


def opening(out: Path) -> tuple[int, int]:
    """The calls and the Python memory that opening takes."""
    open_dataset(out)
    calls = calls_of(lambda: open_dataset(out))
    tracemalloc.start()
    dataset = open_dataset(out)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(dataset) > 0
    return calls, peak


@pytest.mark.long(short=lambda case: case["storage"] == "npy")
def test_a_million_samples_open_like_a_thousand(thousand: Path, million: Path) -> None:
    assert (len(open_dataset(thousand)), len(open_dataset(million))) == (1000, 10**6)
    (few_calls, few_bytes), (many_calls, many_bytes) = opening(thousand), opening(million)
    assert many_bytes < few_bytes + 64_000
    assert many_calls <= few_calls + 100


@pytest.mark.long(short=lambda case: case["storage"] == "npy")
def test_a_million_samples_read_right_anywhere(thousand: Path, million: Path) -> None:
    few, many = open_dataset(thousand), open_dataset(million)
    for row in np.random.default_rng(0).integers(0, 10**6, 300).tolist():
        assert many[row][0].equal(few[row % 1000][0])
        assert many[row][1].equal(few[row % 1000][1])
    assert many.key(999_999) == few.key(999)


@pytest.mark.parametrize(
    "shards", [pytest.param(3_000, marks=pytest.mark.short), pytest.param(10_000, marks=pytest.mark.long)]
)
@pytest.mark.long(short=lambda case: case["storage"] in ("npy", "lmdb"))
def test_very_many_shards_are_read_within_the_default_limits(storage: str, shards: int, tmp_path: Path) -> None:
    """Without limits, 3,000 shards would open more files than the 1,024 that are allowed."""
    raw = make_raw(tmp_path / "raw", {"train": 1}, height=2, width=2)
    out = pack(raw.path, tmp_path / "out", "--format", storage)
    repeat_shard(out, shards)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = open_files() + 900
    resource.setrlimit(resource.RLIMIT_NOFILE, (few if hard == resource.RLIM_INFINITY else min(few, hard), hard))
    try:
        files, maps = most_open(out, shards)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert files <= 3 * MOST_OPEN_SHARDS + 40
    assert maps <= 3 * MOST_OPEN_SHARDS + 900


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def most_open(out: Path, shards: int) -> tuple[int, int]:
    """Read a row of each shard; return how many more files and maps this process had at most."""

    def opened() -> tuple[int, int]:
        return open_files(), Path("/proc/self/maps").read_bytes().count(b"\n")

    before, most = opened(), (0, 0)
    dataset = open_dataset(out)
    first = dataset[0][0]
    assert len(dataset) == shards
    for row in range(shards):
        assert dataset[row][0].equal(first)
        if row % 500 == 0:
            now = opened()
            most = max(most[0], now[0] - before[0]), max(most[1], now[1] - before[1])
    return most


BUILD = """
import resource, sys
from packer.cli import main
try:
    main(["build", "--quiet", "--workers", sys.argv[1], "--shard-size", "2MiB", sys.argv[2], sys.argv[3]])
except SystemExit as done:
    assert done.code == 0, done.code
kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
print(max(resource.getrusage(kind).ru_maxrss for kind in kinds))
"""


@pytest.mark.long(short=lambda case: case["workers"] == "2" and case["storage"] in ("npy", "lmdb"))
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_larger_data_set_takes_no_more_memory_to_build(storage: str, tmp_path: Path, workers: str) -> None:
    """40 and 240 pairs of 450 KB a row: what all rows take would show."""
    peaks = []
    for count in (40, 240):
        raw = make_raw(tmp_path / f"raw{count}", {"train": 1}, height=256, width=256)
        for kind in ("images", "masks"):
            first = raw.path / "train" / kind / "street_000.png"
            for number in range(1, count):
                (first.parent / f"street_{number:03d}.png").hardlink_to(first)
        command = [sys.executable, "-c", BUILD, workers, str(raw.path), str(tmp_path / f"out{count}")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        peaks.append(int(done.stdout.splitlines()[-1]) * 1024)
    assert peaks[1] < peaks[0] + 200 * 450_000 / 4
