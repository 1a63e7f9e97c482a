"""Mounts that refuse memory maps: a pack reads the same through private maps, and without any."""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import HANG, REPO

from readers import DamagedError, SegDataset, open_dataset
from readers.contract.mapped import WARNED, map_file
from readers.formats.shard import SMALL

REQUIRE = "SEGPACK_REQUIRE_FUSE"


def missing() -> str | None:
    """Return what a mount needs and this machine lacks; None if nothing."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse"
    try:
        import mfusepy  # noqa: F401 - it looks for libfuse when it is imported
    except (ImportError, OSError, AttributeError) as error:
        return f"mfusepy with libfuse ({error})"
    return None


@pytest.fixture(scope="module")
def mount(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Path], Path]]:
    """A function that returns the path in the mount of a path in the folder of all packs."""
    if what := missing():
        if os.environ.get(REQUIRE):
            pytest.fail(f"{what} is missing, but {REQUIRE} is set")
        pytest.skip(f"a Fuse mount needs {what}")
    folder, at = tmp_path_factory.getbasetemp(), tmp_path_factory.mktemp("mount")
    server = REPO / "tests" / "fuse_folder.py"
    with subprocess.Popen([sys.executable, server, folder, at], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "mounted\n"
        yield lambda path: at / path.relative_to(folder)
        process.terminate()
        process.communicate(timeout=HANG)


@pytest.fixture
def unmapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every map of a file, as a file system without maps does."""
    map_memory = mmap.mmap

    def refuse(file: int, *arguments: Any, **options: Any) -> mmap.mmap:
        if file != -1:
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        return map_memory(file, *arguments, **options)

    monkeypatch.setattr(mmap, "mmap", refuse)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Forget what was warned of, and let tests that do not look at warnings pass."""
    WARNED.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield
    WARNED.clear()


def everything(dataset: SegDataset, **options: Any) -> list[Any]:
    """Return what a data set gives in every way of reading it."""
    loader = dataset.loader(4, shuffle=True, seed=1, output="numpy", drop_behind=True, **options)
    rows = range(len(dataset))
    dataset._reader.prefetch(rows)
    batches = [part for batch in loader for part in batch]
    return [*batches, *(part.numpy() for row in rows for part in dataset[row]), *map(dataset.key, rows)]


def check_same(local: Path, other: Path, **options: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mmap, "mmap", MAP)
        expected = everything(open_dataset(local, "train"), **options)
    found = everything(open_dataset(other, "train", verify="digest"), **options)
    assert len(found) == len(expected)
    assert all(map(np.array_equal, found, expected))


MAP = mmap.mmap


def test_a_fuse_mount_that_refuses_shared_maps_reads_as_the_pack_does(
    packed: Path, mount: Callable[[Path], Path]
) -> None:
    with pytest.warns(
        RuntimeWarning, match=r"refuses shared memory maps.*No such device.*cache=FOLDER.*packer stage"
    ) as seen:
        check_same(packed, mount(packed))
    assert len(seen) == 1
    mapped = map_file(mount(packed) / "manifest.json")
    assert mapped is not None
    assert mapped.tobytes() == (packed / "manifest.json").read_bytes()


def test_rows_of_any_size_read_the_same_from_a_fuse_mount(native: Path, mount: Callable[[Path], Path]) -> None:
    check_same(native, mount(native), crop=(8, 8))


@pytest.mark.usefixtures("unmapped")
def test_without_any_map_a_pack_reads_the_same(packed: Path) -> None:
    with pytest.warns(RuntimeWarning, match="refuses") as seen:
        check_same(packed, packed)
    assert [str(warning.message).split("refuses ")[1].split(" memory")[0] for warning in seen] == ["shared", "all"]


@pytest.mark.usefixtures("unmapped")
def test_without_any_map_rows_of_any_size_and_crops_read_the_same(native: Path) -> None:
    check_same(native, native, crop=(8, 8), flip=True)


@pytest.mark.usefixtures("unmapped")
def test_the_same_rows_from_a_fuse_mount_without_any_map(packed_index: Path, mount: Callable[[Path], Path]) -> None:
    check_same(packed_index, mount(packed_index), labels="onehot")


@pytest.mark.usefixtures("unmapped")
def test_small_rows_that_follow_each_other_are_read_without_the_kernel(
    packed_index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """numpy takes such rows out of the whole mapped run."""
    monkeypatch.setattr("readers.formats.shard.KERNEL", None)
    dataset = open_dataset(packed_index, "train", fields=["label"])
    assert dataset._reader.row_bytes(0) < SMALL
    check_same(packed_index, packed_index)


@pytest.mark.usefixtures("unmapped")
def test_a_file_that_was_cut_short_is_an_error_and_not_the_end_of_the_process(packed: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(packed, tmp_path / "copy")
    dataset = open_dataset(copied, "train")
    dataset[0]
    for file in (copied / "shards").glob("train-*"):
        os.truncate(file, file.stat().st_size // 2)
    with pytest.raises(DamagedError, match="cut short"):
        list(dataset)


def test_other_errors_of_a_map_are_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"x")

    def full(*arguments: Any, **options: Any) -> mmap.mmap:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr(mmap, "mmap", full)
    with pytest.raises(OSError, match="memory"):
        map_file(tmp_path / "file")
