"""Short runs of the benches. All candidates do the same work; a candidate that does not is found."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from bench.building import Workload, check
from bench.copy_loops import copy_loops, fastest
from bench.user_scripts import COLOURS, SCRIPTS, classes_of
from bench.window_loops import window_loops
from program import command
from scenes.camera import image_path, label_path, make_linked_streets

from packer.publish.free_space import in_memory
from readers.contract.manifest import STORAGES

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are read from /proc")
PAIRS = 2


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs of street scenes. Drawing one takes about two seconds."""
    raw = tmp_path_factory.mktemp("streets") / "raw"
    make_linked_streets(raw, PAIRS)
    return raw


def link_pairs(drawn: Path, raw: Path, pairs: int = PAIRS) -> None:
    """Make a raw folder of `pairs` pairs by linking the drawn ones repeatedly."""
    for kind in (image_path, label_path):
        kind(raw, 0).parent.mkdir(parents=True)
        for number in range(pairs):
            os.link(kind(drawn, number % PAIRS), kind(raw, number))


def bench(name: str, *options: object) -> str:
    """Run a benchmark in a process of its own; return what it prints."""
    argv = command(f"bench.{name}", *options)
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def figures(printed: str, name: str) -> list[float]:
    """Return the numbers of the line that begins with `name`."""
    (line,) = (line for line in printed.splitlines() if line.startswith(name + "  "))
    return [float(word) for word in line.removeprefix(name).split()]


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "formats"),
    [
        ((), STORAGES),
        (("--colours",), ("npy",)),
    ],
    ids=["all", "colours"],
)
def test_the_decode_loop_makes_what_a_build_packs(
    options: tuple[str, ...], formats: tuple[str, ...], drawn: Path, tmp_path: Path
) -> None:
    link_pairs(drawn, tmp_path / "numbers")
    printed = bench("building", "--pairs", PAIRS, "--rounds", 1, "--keep", tmp_path, "--formats", *formats, *options)
    assert {"decode", *formats} <= {line.split()[0] for line in printed.splitlines() if line}


@pytest.mark.long
def test_the_first_loop_and_the_pack_deliver_the_same(tmp_path: Path) -> None:
    options = ("--pairs", 4, "--side", 64, "--workers", 0, "--rounds", 1, "--keep", tmp_path)
    printed = bench("first_loop", *options)
    assert [line for line in printed.splitlines() if line.startswith(("loop, 0 workers", "loader, onehot"))]


@pytest.mark.long
def test_a_build_into_a_bucket_is_compared_with_one_into_a_folder(tmp_path: Path) -> None:
    pytest.importorskip("ministack")
    printed = bench("bucket_builds", "--pairs", 4, "--rounds", 1, "--keep", tmp_path)
    folder, bucket, plain = (figures(printed, name) for name in ("folder", "bucket", "plain PUTs"))
    assert folder[3] == folder[5] == 1
    assert min(*bucket, *plain[:4]) > 0


@pytest.mark.long
def test_one_worker_is_compared_with_all_cores(drawn: Path, tmp_path: Path) -> None:
    link_pairs(drawn, tmp_path / "numbers")
    options = ("--pairs", PAIRS, "--rounds", 1, "--keep", tmp_path, "--formats", "npy", "hdf5")
    printed = bench("building", "--scaling", *options)
    for name in ("decode loop", "npy", "hdf5"):
        single, all_cores, times = figures(printed, name)
        assert single > 0
        assert times == pytest.approx(all_cores / single, abs=0.02 + 0.1 / single)


@pytest.mark.long
def test_memory_is_of_all_processes(drawn: Path, tmp_path: Path) -> None:
    for pairs in (PAIRS, 10 * PAIRS):
        link_pairs(drawn, tmp_path / f"96x128-{pairs}", pairs)
    printed = bench("building", "--memory", "--pairs", PAIRS, "--keep", tmp_path, "--formats", "npy")
    few, many, times = figures(printed, "npy")
    assert few > 50, "several processes with Python, numpy and OpenCV"
    assert times == pytest.approx(many / few, abs=0.02)


@pytest.mark.long
def test_a_pack_that_is_not_in_memory_is_read_in_every_way(tmp_path: Path) -> None:
    if in_memory(tmp_path):
        pytest.skip("files of this file system are always in memory")
    printed = bench("cold", "--gib", 0.02, "--rounds", 1, "--keep", tmp_path)
    rates = [
        figures(printed[printed.rindex("MB/s") :], name)[0]
        for name in ("direct, in order, 4 under way", "loader, random", 'loader, "window"', "dataset[i], random")
    ]
    assert min(rates) > 0


@pytest.mark.long
def test_a_pack_of_other_pixels_is_found(drawn: Path, tmp_path: Path) -> None:
    work = Workload(tmp_path / "raw", tmp_path / "out", PAIRS, colours=False)
    link_pairs(drawn, work.raw)
    work.build("npy", "--workers", 1)
    check(work, "npy")
    other_label = label_path(work.raw, 1).read_bytes()
    label_path(work.raw, 0).unlink()  # a link to the file that other tests use
    label_path(work.raw, 0).write_bytes(other_label)
    other = Workload(work.raw, work.out, PAIRS, colours=False)
    with pytest.raises(RuntimeError, match="npy: the pack differs"):
        check(other, "npy")


def test_every_copy_loop_delivers_every_row_once() -> None:
    images, labels = np.arange(40 * 6, dtype=np.uint8).reshape(40, 6), np.arange(40, dtype=np.uint8)[:, None]
    loops = copy_loops((images, labels))
    assert len(loops) >= 3
    for loop in loops:
        found = [
            (label.item(), image.tolist()) for batch in loop.batches() for image, label in zip(*batch, strict=True)
        ]
        assert sorted(found) == [(row, images[row].tolist()) for row in range(40)], loop.name


def test_every_window_loop_copies_a_window_of_every_picture() -> None:
    images = [np.full((3, 4, 6), number, np.uint8) for number in range(20)]
    labels = [image[0] for image in images]
    loops = window_loops((images, labels), 2, passes=2)
    assert len(loops) >= 2
    for loop in loops:
        batches = list(loop.batches())
        assert [tuple(image.shape) for image, _ in batches] == 2 * [(16, 3, 2, 2), (4, 3, 2, 2)]


def test_the_fastest_copy_loop_is_named() -> None:
    reported: list[str] = []
    columns = np.zeros((16, 8), np.uint8), np.zeros((16, 1), np.uint8)
    loop = fastest(copy_loops(columns), reported.append)
    assert reported[-1] == f"  the limit: {loop.name}"
    assert len(reported) == len(copy_loops(columns)) + 1


@pytest.mark.long
def test_scripts_of_users_take_turns_with_the_packer(drawn: Path, tmp_path: Path) -> None:
    link_pairs(drawn, tmp_path / "numbers")
    printed = bench("building_users", "--pairs", PAIRS, "--rounds", 1, "--formats", "npy", "--keep", tmp_path)
    assert figures(printed, "packer build, npy")[3] == 1
    assert sum(line.startswith(tuple(SCRIPTS)) for line in printed.splitlines()) >= len(SCRIPTS)


@pytest.mark.long
def test_ranks_are_compared_with_one_process(tmp_path: Path) -> None:
    printed = bench("ranks", "--ranks", 2, "--pairs", 32, "--rounds", 1, "--keep", tmp_path)
    assert figures(printed, "2 ranks")[0] > 0


def test_scripts_of_users_keep_classes() -> None:
    colours = COLOURS[None]
    assert classes_of(colours).tolist() == [list(range(len(COLOURS)))]
