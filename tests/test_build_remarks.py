"""Remarks: what a build noticed is kept with the generation that it published, and goes with it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from conftest import RawFolder

from packer import build_pack, build_part, commit_pack, plan_pack
from packer.packs.garbage import delete_garbage
from packer.publish.remarks import load_remarks
from packer.publish.target import REMARKS
from readers.contract.manifest import Manifest

pytestmark = pytest.mark.usefixtures("in_process")


@pytest.fixture
def raw(raw_folder: RawFolder, tmp_path: Path) -> Path:
    """A folder with a bad pair, and a picture that is in both splits."""
    raw = tmp_path / "raw"
    shutil.copytree(raw_folder.path, raw)
    images = sorted(path for path in raw.rglob("*.png") if "image" in str(path.parent))
    train = [path for path in images if "train" in path.parts]
    val = [path for path in images if "val" in path.parts]
    val[0].write_bytes(train[0].read_bytes())
    train[3].write_bytes(train[3].read_bytes()[:-60])
    return raw


def test_a_build_keeps_its_remarks(raw: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    summary = build_pack(raw, out, on_bad="skip")
    remarks = load_remarks(out, summary.manifest)
    assert remarks is not None
    assert remarks.rejects == summary.rejects
    assert (remarks.all_rejects, remarks.rows, remarks.reused) == (1, summary.rows, 0)
    assert remarks.seconds == pytest.approx(summary.seconds, abs=1e-3)
    (kind, pairs, words), *rest = remarks.findings
    assert (kind, len(pairs), words) == ("leakage", 2, " = ".join(pairs))
    assert remarks.all_findings == 1 + len(rest) == len(summary.findings.open)


def test_parts_leave_the_same_remarks(raw: Path, tmp_path: Path) -> None:
    whole, parts, plan = tmp_path / "whole", tmp_path / "parts", tmp_path / "plan"
    build_pack(raw, whole, on_bad="skip")
    plan_pack(raw, plan, on_bad="skip")
    for number in (2, 1):
        build_part(plan, f"{number}/2", parts)
    commit_pack(plan, parts)
    ours, theirs = (json.loads((out / REMARKS / "000001.json").read_text()) for out in (whole, parts))
    changing = ("seconds", "identity", "reused")
    assert {key: ours[key] for key in ours.keys() - changing} == {key: theirs[key] for key in ours.keys() - changing}


def test_a_night_in_which_nothing_changes_leaves_them_alone(raw: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    build_pack(raw, out, on_bad="skip")
    before = (out / REMARKS / "000001.json").read_bytes()
    build_pack(raw, out, on_bad="skip")
    assert [path.read_bytes() for path in (out / REMARKS).iterdir()] == [before]


@pytest.mark.parametrize("harm", ["gone", "cut", "of another", "a list", "a long list", "a link"])
def test_damaged_remarks_are_none(raw: Path, tmp_path: Path, harm: str) -> None:
    out = tmp_path / "out"
    manifest = build_pack(raw, out, on_bad="skip").manifest
    path = out / REMARKS / "000001.json"
    text = path.read_text()
    document = json.loads(text)
    path.unlink()
    if harm == "cut":
        path.write_text(text[:-9])
    elif harm == "of another":
        path.write_text(json.dumps({**document, "identity": "0" * 64}))
    elif harm == "a list":
        path.write_text(json.dumps({**document, "findings": [["leakage", "train/a", "x"]]}))
    elif harm == "a long list":
        path.write_text(json.dumps({**document, "rejects": [["a", "b", "c"]] * 2000}))
    elif harm == "a link":
        (tmp_path / "elsewhere.json").write_text(text)
        path.symlink_to(tmp_path / "elsewhere.json")
    assert load_remarks(out, manifest) is None


def test_gc_deletes_those_of_generations_that_are_gone(raw: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    build_pack(raw, out, on_bad="skip")
    build_pack(raw, out, on_bad="skip", size=(8, 8))
    assert Manifest.load(out).generation == 2
    delete_garbage(out, keep=1, grace=0)
    assert [path.name for path in (out / REMARKS).iterdir()] == ["000002.json"]
