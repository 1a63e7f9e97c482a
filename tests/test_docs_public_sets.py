"""Every public set of shared data is packed as docs/measured/public_sets.md shows. Pillow counts the same pixels."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import REPO, run
from public_sets import SETS, Set, build, compare

pytestmark = [pytest.mark.shared, pytest.mark.usefixtures("in_process")]


@pytest.mark.long(every=3)
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


@pytest.mark.long(every=4)
@pytest.mark.parametrize("entry", {entry.folder: entry for entry in SETS}.values(), ids=lambda entry: entry.folder)
def test_the_proposal_of_a_probe_builds_right_or_asks(shared_data: Path, tmp_path: Path, entry: Set) -> None:
    raw, out, config = shared_data / entry.folder, tmp_path / "out", tmp_path / "packer.toml"
    probe = run("probe", "--json", raw)
    found = json.loads(probe.stdout)
    if found["error"]:
        assert probe.exit_code == 1
        return
    config.write_text(found["config"])
    built = run("build", "--quiet", "--config", config, raw, out)
    assert built.exit_code == 0 or found["to_decide"], built.stderr
    if built.exit_code:
        assert built.stderr.startswith("packer: ")
    else:
        assert "differ" not in compare(raw, out, replace(entry, expect=()), {})


def test_the_page_of_public_sets_names_them_all() -> None:
    page = (REPO / "docs" / "measured" / "public_sets.md").read_text()
    assert [data_set.name for data_set in SETS if f"| {data_set.name} |" not in page] == []
