"""A file server is asked as often as docs/guide/cluster.md says: each call more is a round trip for every shard."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.metadata import FEW, Bench, of_a_shard
from program import REPO

REST = 150
"""The calls of a commit that do not depend on the number of shards."""


@pytest.mark.long
@pytest.mark.parametrize(("storage", "calls", "looks"), [("npy", 28, 4), ("arrow", 20, 2)])
def test_the_calls_of_a_shard(storage: str, calls: int, looks: int, tmp_path: Path) -> None:
    """A shard that is built, and one that a commit looks at."""
    bench = Bench.make(tmp_path)
    plan, out = bench.plan(storage, FEW, storage), tmp_path / "out"
    assert float(next(iter(of_a_shard(bench, REPO, plan)))) <= calls
    bench.part(REPO, plan, "1/1", out)
    for arguments in (("--missing",), ("--quiet",)):
        run = bench.run(REPO, out, 0, "commit", "--plan", plan, *arguments, out)
        assert looks * FEW <= sum(run.calls) <= looks * FEW + REST
    again = bench.part(REPO, plan, f"1/{FEW}", out)
    assert sum(again.calls) <= REST, "it lists the tickets, and looks at its own shard only"
