"""The short form of the fuzz drill: every parser takes whole files, and refuses changed ones with errors of ours."""

from __future__ import annotations

import random
import resource
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import examples
from drills.damaged_packs import Worker
from drills.fuzz_target import HEADROOM, Target
from drills.fuzz_targets import make_targets, mutated
from drills.hdf5_structure import structure
from drills.structures import CHANGES as KNOWING
from drills.structures import changed

from readers.contract.errors import ReadError
from readers.formats.hdf5_checksum import lookup3

CHANGES = 150
TARGETS = (
    *("arrow", "hdf5", "lmdb", "npy"),
    *("zstd-row", "jpeg-row", "jpeg-part", "tiles-row", "tiles-zstd-row", "tiles-jpeg-row"),
    *("manifest", "fields", "table", "receipt"),
    *("png", "jpeg", "tiff", "bmp", "webp", "array"),
    *("ids", "values", "multilabel"),
    *("stamps", "classes", "config"),
    *("webdataset", "example", "recordio", "volume", "volume-mha", "volume-nrrd", "plans"),
)


def fuzzed(path: Path) -> str:
    """Return what is wrong when a target reads changed files with little memory. The path ends with its name."""
    target = make_targets(path.parent)[path.name]
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + HEADROOM, resource.RLIM_INFINITY))
    try:
        changes = min(examples(CHANGES), 500)
        found = {wrong for data in mutated(target, changes) if (wrong := target.judge(data)) is not None}
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return "; ".join(sorted(found))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("targets")


@pytest.fixture(scope="module")
def targets(folder: Path) -> dict[str, Target]:
    return make_targets(folder)


@pytest.fixture(scope="module")
def child(targets: dict[str, Target]) -> Iterator[Worker]:
    worker = Worker(fuzzed)
    yield worker
    worker.close()


def test_every_target_is_fuzzed(targets: dict[str, Target]) -> None:
    assert sorted(TARGETS) == sorted(targets)


@pytest.mark.parametrize("name", TARGETS)
def test_whole_files_are_taken(name: str, targets: dict[str, Target]) -> None:
    for seed in targets[name].seeds:
        targets[name].parse(seed)


@pytest.mark.parametrize("name", TARGETS)
def test_changed_files_are_refused_in_our_words_or_harmless(name: str, folder: Path, child: Worker) -> None:
    child.ask(folder / name)
    assert child.answer() == ""


def test_some_changes_know_the_format(targets: dict[str, Target]) -> None:
    assert set(KNOWING) == {"arrow", "hdf5", "lmdb"}
    for name in KNOWING:
        seed, dice = targets[name].seeds[0], random.Random(0)
        found = [changed(name, seed, dice) for _ in range(100)]
        assert sum(data != seed for data in found) > 80
        assert {len(data) for data in found} == {len(seed)}


@pytest.mark.parametrize(("native", "blocks"), [(False, 5), (True, 8)])
def test_checksums_of_changed_hdf5_fit(targets: dict[str, Target], native: bool, blocks: int) -> None:
    """The superblock, the root group and each data set."""
    seed = targets["hdf5"].seeds[native]
    found = structure(seed[1:]).blocks
    assert len(found) == blocks
    intact = [
        struct.unpack_from("<I", seed, 1 + end)[0] == lookup3(seed[1 + start : 1 + end]) for start, _, end in found
    ]
    assert all(intact)
    dice, wrong = random.Random(0), 0
    for _ in range(200):
        try:
            targets["hdf5"].parse(changed("hdf5", seed, dice))
        except ReadError as error:
            wrong += "checksum" in str(error)
    assert wrong < 50
