"""Builds, parts and readers over links that are cut, slow and lossy: the short form of drills.network."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from drills.network import CASES, drill
from drills.wire import missing

REQUIRE = "SEGPACK_REQUIRE_NETWORK"


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_a_network_that_fails_leaves_the_right_pack_or_none(name: str, tmp_path: Path) -> None:
    if lacking := missing():
        if os.environ.get(REQUIRE):
            pytest.fail(f"{lacking} is missing, but {REQUIRE} is set")
        pytest.skip(f"network namespaces need {lacking}")
    pytest.importorskip("ministack")
    assert drill([name], tmp_path, short=True) == {}
