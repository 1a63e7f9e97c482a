"""Ranks as processes: DDP with gloo reads one pack, each row once in an epoch."""

from __future__ import annotations

import json
import subprocess
import sys
import zlib
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from conftest import HANG, REPO, make_raw, pack
from store_servers import proxy, upload, use_server

from readers import Window, open_dataset

ROWS, BATCH = 96, 4
WINDOW = 6, 4
"""Four windows of 24 rows: one for each of four ranks."""
ABORTED_AT_EXIT = "terminate called without an active exception"
"""Said by gloo in a process that ends while one of its threads still runs; the work is done by then."""


@pytest.fixture(scope="module")
def many_shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ddp")
    raw = make_raw(folder / "raw", {"train": ROWS}, 16, 16)
    return pack(raw.path, folder / "out", "--labels", "index", "--shard-size", "6KB")


def train(root: str, folder: Path, ranks: int, **opening: Any) -> list[dict[str, Any]]:
    """Train with these ranks; return what each received."""
    options = {"root": root, "open": opening, "ranks": ranks, "batch": BATCH, "window": WINDOW}
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
        assert {len(mine) for mine in received} == {ROWS // len(ranks)}
        assert sorted(chain(*received)) == expected, "each row once"
    assert ranks[0]["epochs"][0] != ranks[0]["epochs"][1]
    assert all(rank["weights"] == ranks[0]["weights"] for rank in ranks), "gloo added the gradients of all"


@pytest.mark.long
def test_four_ranks_receive_each_row_once(many_shards: Path, tmp_path: Path) -> None:
    ranks = train(str(many_shards), tmp_path, 4)
    check(many_shards, ranks)


@pytest.mark.parametrize("count", [pytest.param(2, marks=pytest.mark.short), pytest.param(4, marks=pytest.mark.long)])
def test_ranks_of_a_machine_fetch_each_shard_once(
    many_shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """All ranks share one cache of a pack in a bucket; the proxy sees what they ask for in both epochs."""
    bucket = proxy("moto")
    upload(many_shards, url := use_server(bucket.url, monkeypatch))
    before = len(bucket.requests)
    ranks = train(url, tmp_path, count, cache=str(tmp_path / "cache"))
    check(many_shards, ranks)
    asked = Counter(Path(request.name).name for request in bucket.requests[before:])
    shards = {path.name: 1 for path in (many_shards / "shards").iterdir() if read_by_ranks(path)}
    assert len(shards) > 3 * count
    assert {name: count for name, count in asked.items() if name in shards} == shards
    assert not any(request.is_listing for request in bucket.requests[before:])


def test_a_window_of_a_cached_pack_is_eight_shards_apart(many_shards: Path, tmp_path: Path) -> None:
    local, cached = open_dataset(many_shards), open_dataset(many_shards, cache=tmp_path)
    shards = local.manifest.shards
    assert cached.loader(4, shuffle="window").order.shuffle == Window(-(-ROWS // shards), 8, apart=True)
    assert "apart" not in repr(local.loader(4, shuffle="window").order.shuffle)


def read_by_ranks(path: Path) -> bool:
    return ".image." in path.name or ".label." in path.name
