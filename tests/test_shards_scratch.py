"""Memory of columns that is used again, and the setting of OpenBLAS before it loads."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import make_raw
from hypothesis import given
from hypothesis import strategies as st
from recipes import plain_recipe

from packer.pixels.resize import Geometry
from packer.plan.make_plan import make_plan
from packer.plan.request import request_of
from packer.recipe.piece import Piece
from packer.recipe.row_ref import RowRef
from packer.recipe.shard_spec import ShardSpec
from packer.runtime import THREADS, no_blas_threads
from packer.shards.build_shard import build_shard
from packer.shards.columns import Columns
from packer.shards.scratch import Scratch
from packer.sources.files.folder import FolderSource
from packer.workers.memory import SHRINK_FACTOR, ColumnMemory
from readers.contract.files import sha256
from readers.huge_pages import HUGE


@given(st.lists(st.integers(0, 5 << 20), max_size=6))
def test_the_memory_has_the_requested_size_and_is_writable(sizes: list[int]) -> None:
    memory = ColumnMemory()
    for size in sizes:
        given_out = memory(size)
        assert len(given_out) == size
        given_out[:] = 7


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems cannot move maps")
def test_pages_that_are_there_are_used_again() -> None:
    memory = ColumnMemory()
    memory(3 * HUGE)[:] = 7
    assert (memory(HUGE + 1) == 7).all()
    more = memory(40 * HUGE)
    assert (more[: 3 * HUGE] == 7).all()
    assert not more[3 * HUGE :].any()


def test_memory_that_is_still_in_use_is_not_written() -> None:
    memory = ColumnMemory()
    held = memory(HUGE)
    held[:] = 7
    memory(2 * HUGE)[:] = 8
    assert (held == 7).all()


def test_the_memory_of_a_single_huge_picture_is_freed() -> None:
    memory = ColumnMemory()
    memory(3 * SHRINK_FACTOR * HUGE)[:] = 7
    assert (memory(4 * HUGE) == 7).all()
    assert not memory(HUGE).any()
    assert len(memory._block) == HUGE


def test_too_little_memory_is_an_error_with_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*arguments: object, **options: object) -> mmap.mmap:
        raise OSError(12, "no memory")

    memory = ColumnMemory()
    held = memory(1)
    monkeypatch.setattr(mmap, "mmap", refused)
    with pytest.raises(MemoryError, match="10,000,000 bytes at once"):
        memory(10_000_000)
    assert len(held) == 1


def test_columns_do_not_overlap_in_one_piece_of_memory(tmp_path: Path) -> None:
    recipe = plain_recipe(Geometry((4, 6)), 1 << 20)
    pieces = [Piece(RowRef("all", str(number), ("a", "b"))) for number in range(3)]
    memory = ColumnMemory()
    for number in range(2):
        columns = Columns(ShardSpec("all", pieces, recipe), memory, Scratch(tmp_path))
        for index in range(3):
            for field, row in enumerate(columns.rows(index)):
                row[:] = 10 * number + 3 * field + index
        kept = columns.kept([0, 2])
        assert [int(value) for value in kept["image"][:, 0, 0, 0]] == [10 * number, 10 * number + 2]
        assert [int(value) for value in kept["label"][:, 0, 0]] == [10 * number + 3, 10 * number + 5]


@pytest.mark.parametrize("storage", ["npy", "lmdb", "hdf5", "arrow"])
def test_shards_in_used_memory_equal_shards_in_new_memory(storage: str, tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 40, "val": 1, "test": 9})
    specs = make_plan(request_of(raw.path, tmp_path / "plan", format=storage, shard_size=20 << 10)).specs
    assert len(specs) > 12
    again, fresh, memory = tmp_path / "again", tmp_path / "fresh", ColumnMemory()
    for out in (again, fresh):
        (out / "shards").mkdir(parents=True)
    for spec in specs:
        build_shard(spec, FolderSource(raw.path), again, memory=memory)
        build_shard(spec, FolderSource(raw.path), fresh)
    digests = [{path.name: sha256(path) for path in (out / "shards").iterdir()} for out in (again, fresh)]
    assert len(digests[0]) >= 2 * len(specs)
    assert digests[0] == digests[1]


def test_the_number_of_threads_is_set_only_inside_and_only_if_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(THREADS, raising=False)
    with no_blas_threads():
        assert os.environ[THREADS] == "1"
    assert THREADS not in os.environ
    monkeypatch.setenv(THREADS, "3")
    with no_blas_threads():
        assert os.environ[THREADS] == "3"
    assert os.environ[THREADS] == "3"


def python(*arguments: str) -> str:
    """Return the output of a new process in which the threads of OpenBLAS are not set."""
    environment = {name: value for name, value in os.environ.items() if name != THREADS}
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked at in /proc")
def test_the_packer_and_the_server_of_its_workers_have_no_threads_of_openblas() -> None:
    output = python(
        "-c",
        """
import os, sys
from pathlib import Path
from multiprocessing import forkserver
import packer.__main__ as packer
sys.argv[1:] = ["--version"]
try:
    packer._command()
except SystemExit:
    pass
print("threads", len(os.listdir("/proc/self/task")))
from packer.workers.fork_server import start_fork_server
start_fork_server()
environment = Path(f"/proc/{forkserver._forkserver._forkserver_pid}/environ")
while not environment.read_text():  # empty while the new process starts
    pass
print(environment.read_text().replace("\\0", "\\n"))
print("here", os.environ.get("OPENBLAS_NUM_THREADS"))
""",
    )
    assert "threads 1\n" in output
    assert f"{THREADS}=1\n" in output
    assert "here None\n" in output


def test_a_script_under_diagnosis_gets_no_setting_of_threads() -> None:
    script = f"import os; print(os.environ.get({THREADS!r}))"
    assert "None" in python("-m", "packer", "diagnose", "--", sys.executable, "-c", script)
