"""`packer card`: the description is valid, the files that it names load, and no name is a tag or a link."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from any_pack import write_any_pack
from conftest import RawFolder, errors_of, good, run, without_workers

from packer import Rows, build_pack
from packer.report.croissant import About, croissant
from readers.contract.manifest import Manifest

pytestmark = pytest.mark.usefixtures("in_process")


@pytest.fixture(scope="module")
def out(raw_folder: RawFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("card") / "out"
    with without_workers():
        build_pack(raw_folder.path, out, labels="index", shard_size="30KB")
    return out


def written(out: Path, folder: Path, *options: str) -> tuple[str, dict[str, Any]]:
    folder.mkdir(exist_ok=True)
    good("card", out, "-o", folder / "README.md", *options)
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "croissant.json", "sheet.jpg"]
    return (folder / "README.md").read_text(encoding="utf-8"), json.loads((folder / "croissant.json").read_text())


def test_every_file_is_described_with_its_digest(out: Path, tmp_path: Path) -> None:
    _, described = written(out, tmp_path / "card", "--files")
    files = {item["contentUrl"]: item for item in described["distribution"]}
    shards = {path.relative_to(out).as_posix() for path in (out / "shards").iterdir()}
    assert shards | {"manifest.json"} <= files.keys()
    for name, item in files.items():
        data = (out / name).read_bytes()
        assert item["sha256"] == hashlib.sha256(data).hexdigest()
        assert item["contentSize"] == f"{len(data)} B"
    _, few = written(out, tmp_path / "card", "--seed", "3")
    assert "url" not in few
    names = {item["contentUrl"] for item in few["distribution"]}
    assert names == {"manifest.json", *(name for name in files if name.startswith("generations/shards-"))}


def test_the_numbers_of_the_card(out: Path, tmp_path: Path) -> None:
    card, described = written(
        out, tmp_path / "card", "--licence", "cc-by-4.0", "--name", "city", "--url", "https://a.org"
    )
    manifest = Manifest.load(out)
    for split in manifest.splits:
        assert f"| {split.name} | {split.rows} |" in card
    for number, seg_class in enumerate(manifest.classes.classes):
        assert f"| {number} | {seg_class.name} | `{manifest.classes.palette.hex[number]}` |" in card
    assert 'license: "cc-by-4.0"' in card
    assert 'size_categories: ["n<1K"]' in card
    assert (described["license"], described["name"], described["url"]) == ("cc-by-4.0", "city", "https://a.org")
    assert (tmp_path / "card" / "sheet.jpg").read_bytes().startswith(b"\xff\xd8")


def test_hostile_names_are_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("packer.classes.load.odd_character", lambda name: None)  # as in packs of older versions
    names = [
        "<img src=x onerror=alert(1)>",
        "a|b",
        "[x](http://e.org)",
        "`c`",
        "---\nlicense: mit",
        "x\u202ey",
        "@me $x$",
    ]
    rows = Rows(["a"], lambda key: {"image": np.zeros((4, 4, 3), np.uint8), "label": np.zeros((4, 4), np.uint8)})
    build_pack(rows, tmp_path / "out", classes=names, labels="index", workers=1)
    card, described = written(
        tmp_path / "out", tmp_path / "card", "--name", "<b>\n---\nx: y", "--description", "<script>"
    )
    body = card.split("\n---\n", 1)[1].partition("## Recipe")[0]
    assert "<" not in body.replace("n<1K", "")
    assert "](http" not in body
    assert "http://" not in body
    assert "\u202e" not in card
    table = [line for line in body.splitlines() if re.match(r"\| \d+ \|", line)]
    assert [line.count("|") for line in table] == [5] * len(names)
    assert card.count("\n---\n") == 1
    assert card.rstrip().endswith("```")
    assert described["name"] == "<b>\n---\nx: y"


def test_every_kind_of_field_has_a_card(tmp_path: Path) -> None:
    write_any_pack(tmp_path / "out", "npy", varied=True)
    card, _ = written(tmp_path / "out", tmp_path / "card")
    assert "## Classes of parts" in card
    assert "any×any" in card


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of libraries below mlcroissant
def test_croissants_own_tool_finds_it_valid_and_loads_it(out: Path) -> None:
    mlcroissant = pytest.importorskip("mlcroissant")
    manifest = Manifest.load(out)
    about = About("city", "Streets.", "https://creativecommons.org/licenses/by/4.0/", "https://a.org")
    path = out / "croissant.json"
    path.write_text(json.dumps(croissant(out, manifest, about)))
    found = mlcroissant.Dataset(str(path))
    assert not found.metadata.issues.errors
    splits = [(row["splits/name"].decode(), row["splits/rows"]) for row in found.records("splits")]
    assert splits == [(split.name, split.rows) for split in manifest.splits]
    names = [row["label_classes/name"].decode() for row in found.records("label_classes")]
    assert names == list(manifest.classes.names)


def test_a_card_replaces_only_what_a_card_wrote(out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    readme = tmp_path / "README.md"
    readme.write_text("# My project\n")
    good("card", out)
    near = out.with_name(f"{out.name}-card")
    assert sorted(path.name for path in near.iterdir()) == ["README.md", "croissant.json", "sheet.jpg"]
    assert run("card", out).exit_code == 0, "its own files are replaced"
    for present in (("README.md",), ("sheet.jpg",), ("README.md", "croissant.json")):
        folder = tmp_path / f"folder of {len(present)}, {present[0]}"
        folder.mkdir()
        for name in present:
            (folder / name).write_text("mine")
        errors = errors_of(1, "card", out, "-o", folder / "README.md")
        assert f"{folder / present[0]}" in errors
        assert "not written by packer card, so not replaced; write elsewhere" in errors
        assert {path.name: path.read_text() for path in folder.iterdir()} == dict.fromkeys(present, "mine")
    assert (readme.read_text(), [path.name for path in tmp_path.iterdir() if path.is_file()]) == (
        "# My project\n",
        ["README.md"],
    )
