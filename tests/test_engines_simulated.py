"""The real scheduler of Dask and simulated workers, of which some die: each shard is once in the manifest."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("distributed")

from bench.engines_simulated import Simulation


@pytest.mark.usefixtures("in_process")
def test_workers_that_die_cost_no_shard(tmp_path: Path) -> None:
    """`tools/run bench.engines_simulated` does this with a thousand workers."""
    found = Simulation(tmp_path, 60, least=0.1, most=0.2).build(workers=20, deaths=3)
    assert found.died == 3
    assert found.left == 17
    assert found.runs >= found.shards == 60
