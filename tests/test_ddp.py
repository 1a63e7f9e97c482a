"""Ranks as processes: DDP with gloo reads one pack, each row once in an epoch."""

from __future__ import annotations

import json
import subprocess
import sys
import zlib
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from conftest import HANG, REPO, make_raw, pack

from readers import open_dataset

RANKS, ROWS, BATCH = 4, 96, 4
WINDOW = 6, 4
"""Four windows of 24 rows: one for each rank."""
ABORTED_AT_EXIT = "terminate called without an active exception"
"""Said by gloo in a process that ends while one of its threads still runs; the work is done by then."""


@pytest.fixture(scope="module")
def many_shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ddp")
    raw = make_raw(folder / "raw", {"train": ROWS}, 16, 16)
    return pack(raw.path, folder / "out", "--labels", "index", "--shard-size", "6KB")


def train(root: str, folder: Path, **opening: Any) -> list[dict[str, Any]]:
    """Train with four ranks; return what each received."""
    options = {"root": root, "open": opening, "ranks": RANKS, "batch": BATCH, "window": WINDOW}
    given, result = folder / "options.json", folder / "result.json"
    given.write_text(json.dumps({**options, "meet": str(folder / "meet"), "result": str(result)}))
    command = [sys.executable, str(REPO / "tests" / "ddp_ranks.py"), str(given)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=HANG, check=False)
    assert done.returncode == 0 or ABORTED_AT_EXIT in done.stderr, done.stderr[-3000:]
    found: list[dict[str, Any]] = json.loads(result.read_text())
    return found


def check(root: Path, ranks: list[dict[str, Any]]) -> None:
    dataset = open_dataset(root, "train")
    expected = sorted(zlib.crc32(dataset[row][0].numpy()) for row in range(ROWS))
    for epoch in range(2):
        received = [rank["epochs"][epoch] for rank in ranks]
        assert {len(mine) for mine in received} == {ROWS // RANKS}
        assert sorted(chain(*received)) == expected, "each row once"
    assert ranks[0]["epochs"][0] != ranks[0]["epochs"][1]
    assert all(rank["weights"] == ranks[0]["weights"] for rank in ranks), "gloo added the gradients of all"


def test_four_ranks_receive_each_row_once(many_shards: Path, tmp_path: Path) -> None:
    ranks = train(str(many_shards), tmp_path)
    check(many_shards, ranks)
