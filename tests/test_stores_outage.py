"""A server that fails for a second in the middle of an epoch: the epoch has the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from drills.store_outage import KINDS, Server, epoch, make_pack, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(make_pack(tmp_path_factory.mktemp("outage"))) as server:
        yield server


@pytest.mark.long(short=lambda case: case["kind"] == "reset")
@pytest.mark.parametrize("kind", KINDS)
def test_an_epoch_outlasts_an_outage(kind: str, server: Server, tmp_path: Path) -> None:
    whole = epoch(server, tmp_path / "whole", "", 0)
    read = epoch(server, tmp_path / "cache", kind, 1.0)
    assert read["error"] == whole["error"] == ""
    assert read["digest"] == whole["digest"] != ""
    assert server.shards > 40
