"""Every public set of shared data is packed as docs/measured/public_sets.md shows. Pillow counts the same pixels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import REPO
from public_sets import SETS, Set, build, compare

pytestmark = pytest.mark.shared


@pytest.mark.parametrize("entry", SETS, ids=lambda entry: entry.name)
def test_a_public_set_packs_right_or_is_refused_with_a_reason(shared_data: Path, tmp_path: Path, entry: Set) -> None:
    raw, out = shared_data / entry.folder, tmp_path / "out"
    answer = build(raw, entry.options, out)
    if not entry.pairs:
        assert isinstance(answer, str)
        assert answer.startswith("packer: ")
        assert not out.exists()
        return
    assert not isinstance(answer, str), answer
    assert (answer["pairs"], answer["rejects"]) == (entry.pairs, [])
    verdict = compare(raw, out, entry, json.loads((shared_data / "EXPECT.json").read_text()))
    assert "differ" not in verdict
    assert verdict.count("=") == 1 + bool(entry.expect)


def test_the_page_of_public_sets_names_them_all() -> None:
    page = (REPO / "docs" / "measured" / "public_sets.md").read_text()
    assert [data_set.name for data_set in SETS if f"| {data_set.name} |" not in page] == []
