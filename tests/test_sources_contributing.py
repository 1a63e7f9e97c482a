"""The source of CONTRIBUTING.md: what a new kind of source needs, added in one file and one line, and built."""

from __future__ import annotations

import re
import sys
from base64 import b64encode
from pathlib import Path
from types import ModuleType

import pytest
import torch
from conftest import REPO, RawFolder, make_raw, pack, pack_from, run

from packer.sources.containers import CONTAINERS
from packer.sources.reopen import KINDS
from readers import open_dataset

pytestmark = pytest.mark.usefixtures("in_process")
TEXT = (REPO / "CONTRIBUTING.md").read_text()
MOST_LINES = 40


@pytest.fixture(autouse=True)
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do what the page says: save the file, and add the line."""
    (code,) = re.findall(r"^## Add a source.*?^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    assert len(code.splitlines()) < MOST_LINES
    ((kind, name),) = re.findall(r'`"(\w+)": "([\w.]+)"` to `CONTAINERS`', TEXT)
    module = ModuleType(f"packer.sources.{name.rpartition('.')[0]}")
    exec(compile(code, "CONTRIBUTING.md", "exec"), vars(module))  # noqa: S102 - a page of ours
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(CONTAINERS, kind, name)
    monkeypatch.setitem(KINDS, kind, name)


@pytest.fixture
def raw(tmp_path: Path) -> RawFolder:
    return make_raw(tmp_path / "raw", {"train": 3})


def lines_of(raw: RawFolder) -> list[bytes]:
    return [
        b"\t".join([path.stem.encode(), *(b64encode(each.read_bytes()) for each in (path, label))]) + b"\r\n"
        for path in sorted((raw.path / "train/images").iterdir())
        for label in [raw.path / "train/masks" / path.name]
    ]


def test_the_source_of_the_page_packs(raw: RawFolder, tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_bytes(b"".join(lines_of(raw)))
    options = ("--classes", raw.path / "class_dict.csv", "--labels", "index")
    out = pack_from(tmp_path / "train.tsv", tmp_path / "out", *options)
    wanted = pack(raw.path, tmp_path / "wanted", "--labels", "index")
    for shown, expected in zip(open_dataset(out, "train"), open_dataset(wanted, "train"), strict=True):
        assert torch.equal(shown.image, expected.image)
        assert torch.equal(shown.label, expected.label)
    assert len(open_dataset(out, "train")) == 3


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (b"street_009\n", "has a line at byte 0 without the three columns key, image and label"),
        (b"street_009\t\tAAAA\n", "has no image"),
        (b"street_009\tA%\tAAAA\n", "is not base64: "),
        (b"\xff\tAAAA\tAAAA\n", "has control characters or is not UTF-8"),
    ],
)
def test_its_damaged_lines_are_named(found: bytes, words: str, raw: RawFolder, tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_bytes(found + b"".join(lines_of(raw)))
    options = ("--classes", raw.path / "class_dict.csv")
    result = run("build", "--from", tmp_path / "train.tsv", tmp_path / "out", *options)
    assert result.exit_code != 0
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "out" / "manifest.json").exists()
