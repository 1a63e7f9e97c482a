"""A short run of the drill of places; it finds labels at wrong points if places are ignored."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("nibabel")
pytest.importorskip("rasterio")

from drills.places import judge

pytestmark = [
    pytest.mark.usefixtures("in_process"),
    pytest.mark.filterwarnings("ignore:Dataset has no geotransform"),
]


def test_no_label_is_packed_at_a_wrong_point(tmp_path: Path) -> None:
    outcomes = [judge(number, tmp_path / str(number), {}) for number in range(40)]
    assert {outcome for _, outcome in outcomes} == {"packed right", "refused"}


def test_the_drill_finds_them_if_places_are_ignored(tmp_path: Path) -> None:
    outcomes = [judge(number, tmp_path / str(number), {"place": "ignore"}) for number in range(20)]
    assert any("at another place" in outcome for _, outcome in outcomes)
