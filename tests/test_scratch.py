"""Memory of columns that is used again, and what numpy's libraries are told before they load."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import make_raw, run
from hypothesis import given
from hypothesis import strategies as st

from packer.blas import THREADS, no_blas_threads
from packer.columns import Columns
from packer.geometry import Geometry
from packer.labels import LabelRules
from packer.pictures.rules import ImageRules
from packer.piece import Piece
from packer.recipe import Recipe
from packer.scratch import Scratch
from readers.contract.classes import ClassTable, SegClass
from readers.contract.files import sha256


@given(st.lists(st.integers(0, 5 << 20), max_size=6))
def test_what_was_asked_for_is_there_and_of_the_same_memory_as_long_as_it_suffices(sizes: list[int]) -> None:
    memory = Scratch()
    largest = 0
    before = memory(0)
    for size in sizes:
        given_out = memory(size)
        assert len(given_out) == size
        assert given_out.flags.writeable
        given_out[:] = 7
        if 0 < size <= largest:
            assert np.shares_memory(given_out, before)
        largest = max(largest, size)
        before = memory(largest)


def test_where_memory_is_short_no_more_is_taken_than_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(number: int, size: int, flags: int) -> mmap.mmap:
        raise OSError(12, "no memory")

    monkeypatch.setattr(mmap, "mmap", refused)
    assert len(Scratch()(1000)) == 1000


def test_columns_lie_apart_in_one_piece_of_memory() -> None:
    classes = ClassTable((SegClass("a", values=(0,)), SegClass("b", values=(1,))))
    recipe = Recipe(
        "npy", classes, Geometry((4, 6)), "uint8", "index", ImageRules(), LabelRules(), 1 << 20, "", "", ("tool",)
    )
    pieces = [Piece(str(number), "", "") for number in range(3)]
    memory = Scratch()
    for number in range(2):
        columns = Columns(recipe, pieces, memory)
        for place in range(3):
            for field, row in enumerate(columns.rows(place)):
                row[:] = 10 * number + 3 * field + place
        kept = columns.kept([0, 2])
        assert [int(one) for one in kept["image"][:, 0, 0, 0]] == [10 * number, 10 * number + 2]
        assert [int(one) for one in kept["label"][:, 0, 0]] == [10 * number + 3, 10 * number + 5]


def test_shards_of_all_sizes_one_after_the_other_are_those_of_a_worker_each(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 40, "val": 1, "test": 9})
    built = []
    for workers, out in ((1, tmp_path / "one"), (5, tmp_path / "five")):
        command = ("build", "--quiet", "--format", "npy", "--shard-size", "20KiB", "--workers", workers, raw.path, out)
        assert run(*command).exit_code == 0
        built.append({path.name: sha256(path) for path in sorted((out / "shards").iterdir())})
    assert len(built[0]) > 12
    assert built[0] == built[1]


def test_only_those_who_load_meanwhile_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(THREADS, raising=False)
    with no_blas_threads():
        assert os.environ[THREADS] == "1"
    assert THREADS not in os.environ
    monkeypatch.setenv(THREADS, "3")
    with no_blas_threads():
        assert os.environ[THREADS] == "3"
    assert os.environ[THREADS] == "3"


def test_a_script_under_diagnosis_is_told_nothing() -> None:
    script = f"import os; print(os.environ.get({THREADS!r}))"
    environment = {name: value for name, value in os.environ.items() if name != THREADS}
    told = subprocess.run(
        [sys.executable, "-m", "packer", "diagnose", "--", sys.executable, "-c", script],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert "None" in told.stdout + told.stderr
