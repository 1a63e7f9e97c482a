"""Headers of many rows are read by workers: sizes and reasons are those of one process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import RawFolder, make_raw
from hypothesis import given
from hypothesis import strategies as st
from stored_scenes import png

from packer.decoding.grid import Grid
from packer.decoding.header import Header
from packer.errors import EngineError
from packer.plan import check_heads as check_heads_module
from packer.plan.make_plan import make_plan
from packer.plan.plan import Plan
from packer.plan.request import request_of
from packer.recipe.row_ref import RowRef
from packer.recipe.source import Heads
from packer.shards.alike_heads import AlikeHeads, alike_heads
from packer.sources.files.folder import FolderSource
from packer.workers import run as run_module
from packer.workers.in_process import InProcess
from packer.workers.messages import read_heads
from packer.workers.supervisor import Supervisor
from readers.contract.place import GEO, System

GRID = Grid((4, 6), (("affine", (0.5, 0.0, 10.0, 0.0, -0.5, 20.0)),), System(GEO, "EPSG:32633", (1, 2), (0.5,), "m"))
HEADERS = (
    Header("PNG", 6, 4, 8, 3),
    Header("TIFF", 6, 4, 8, 3, grid=GRID),
    Header("TIFF", 6, 4, 8, 3, no_data="0", band_names=("red", "green", "blue")),
    Header("PNG", 6, 4, 8, 3, elsewhere="a.png: is elsewhere"),
)
heads = st.one_of(st.sampled_from(("a.png: is empty", "b.png: is empty")), st.tuples(*[st.sampled_from(HEADERS)] * 2))


@given(st.lists(heads, max_size=12))
def test_each_row_has_its_headers_after_a_message(every: Sequence[Heads]) -> None:
    refs = [RowRef("train", str(row), ("image", "label")) for row in range(len(every))]
    text = json.dumps({"heads": [group.to_json() for group in alike_heads(refs, every)]})
    read = {row: group.heads for group in read_heads(text, len(every)) for row in group.rows}
    assert [facts(read[row]) for row in range(len(every))] == list(map(facts, every))


def facts(heads: Heads) -> str:
    """Show headers with their places, which are not compared."""
    return repr(heads)


def test_rows_with_other_fields_are_not_alike() -> None:
    refs = [RowRef("", "a", ("image", "", "mask")), RowRef("", "b", ("image", "label", ""))]
    assert len(alike_heads(refs, [HEADERS[:2]] * 2)) == 2


@pytest.mark.parametrize("rows", [[0], [0, 0], [0, 2], [0, 1, 2]])
def test_an_answer_without_each_row_once_is_refused(rows: list[int]) -> None:
    answer = json.dumps({"heads": [AlikeHeads(HEADERS[:1], rows).to_json()]})
    with pytest.raises(EngineError, match="each row once"):
        read_heads(answer, 2)


@pytest.fixture
def raw(tmp_path: Path) -> RawFolder:
    """30 pairs: some without a header, one with another size, two images that a build of 8 bits refuses."""
    raw = make_raw(tmp_path / "raw", {"train": 20, "val": 10})
    (raw.path / "val/images/street_003.png").write_bytes(b"")
    (raw.path / "train/masks/street_007.png").write_bytes(png(np.zeros((5, 5), np.uint8)))
    for name in ("train/images/street_001.png", "train/images/street_012.png"):
        (raw.path / name).write_bytes(png(np.zeros((24, 32, 3), np.uint16)))
    return raw


def planned(raw: Path, out: Path, monkeypatch: pytest.MonkeyPatch, many: int, pool: Any = Supervisor) -> Plan:
    """Plan with workers that read the headers of `many` rows, seven at a time."""
    monkeypatch.setattr(check_heads_module, "MANY", many)
    monkeypatch.setattr(run_module, "HEADS_AT_ONCE", 7)
    monkeypatch.setattr(run_module, "POOL", pool)
    return make_plan(request_of(raw, out, workers=2, on_bad="skip", size="native"))


def test_workers_find_what_one_process_finds(raw: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = planned(raw.path, tmp_path / "out", monkeypatch, 1000)
    assert len(alone.bad) >= 4
    asked: list[int] = []
    heads_here = FolderSource.heads

    def heads(self: FolderSource, refs: Sequence[RowRef]) -> Iterator[Heads]:
        asked.append(len(refs))
        return heads_here(self, refs)

    monkeypatch.setattr(FolderSource, "heads", heads)
    for pool in (Supervisor, InProcess):
        plan = planned(raw.path, tmp_path / "out", monkeypatch, 1, pool)
        assert list(plan.bad.items()) == list(alone.bad.items())
        assert plan.sizes == alone.sizes
        assert [list(spec.pieces) for spec in plan.specs] == [list(spec.pieces) for spec in alone.specs]
    assert asked == [7, 7, 7, 7, 2]  # by the pool in this process only


def test_a_worker_that_is_killed_once_is_replaced(
    raw: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = planned(raw.path, tmp_path / "out", monkeypatch, 1000)
    killed: list[object] = []

    class Killing(Supervisor):
        def _with_news(self) -> Any:
            for worker in self._processes:
                if worker.job is not None and not killed:
                    worker.kill()
                    killed.append(worker)
            return super()._with_news()

    plan = planned(raw.path, tmp_path / "out", monkeypatch, 1, Killing)
    assert killed
    assert plan.bad == alone.bad
    assert plan.sizes == alone.sizes


def test_workers_that_always_end_stop_the_plan(raw: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killing(Supervisor):
        def _with_news(self) -> Any:
            for worker in self._processes:
                if worker.job is not None:
                    worker.kill()
            return super()._with_news()

    with pytest.raises(EngineError, match=r"4 times at the headers of train/images/street_0\d\d\.png to "):
        planned(raw.path, tmp_path / "out", monkeypatch, 1, Killing)
