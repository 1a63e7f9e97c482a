"""The format of CONTRIBUTING.md: what a new format of annotations needs, added in one file and one name, and built."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import ModuleType

import cv2
import numpy as np
import pytest
from conftest import REPO, run

from packer.annotations import formats
from readers import open_dataset

pytestmark = pytest.mark.usefixtures("in_process")
TEXT = (REPO / "CONTRIBUTING.md").read_text()
MOST_LINES = 40
SQUARE = {"class": "car", "points": [[2, 1], [6, 1], [6, 4], [2, 4]]}


@pytest.fixture(autouse=True)
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do what the page says: save the file, and add the name."""
    (code,) = re.findall(r"^## Add a format of annotations.*?^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    assert len(code.splitlines()) < MOST_LINES
    ((path, name),) = re.findall(r"Save it as ([\w/.]+), and add `\"(\w+)\"` to `OF_ONE_PICTURE`", TEXT)
    module = ModuleType(path.removesuffix(".py").replace("/", "."))
    exec(compile(code, "CONTRIBUTING.md", "exec"), vars(module))  # noqa: S102 - a page of ours
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(formats, "OF_ONE_PICTURE", (name, *formats.OF_ONE_PICTURE))


def make(raw: Path, document: object) -> Path:
    """Write a picture of 8x6 pixels and its file."""
    (raw / "images").mkdir(parents=True)
    (raw / "labels").mkdir()
    assert cv2.imwrite(str(raw / "images/a.png"), np.full((6, 8, 3), 90, np.uint8))
    (raw / "labels/a.json").write_text(json.dumps(document))
    return raw


def test_the_format_of_the_page_is_proposed_and_packs(tmp_path: Path) -> None:
    raw = make(tmp_path / "raw", {"height": 6, "width": 8, "polygons": [SQUARE]})
    assert "layout    polygon_json labels/{key}.json" in run("probe", raw).stdout
    result = run("build", "--labels", "index", raw, tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    label = np.zeros((6, 8), np.uint8)
    label[1:4, 2:6] = 1
    assert np.array_equal(open_dataset(tmp_path / "out")[0].label, label)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"height": 6, "width": 0, "polygons": []}, "has no height and width"),
        ({"height": 6, "width": 8, "polygons": [{"points": []}]}, "class"),
        ({"height": 6, "width": 8, "polygons": [{"class": "car"}]}, "has an object without a list of points"),
    ],
)
def test_its_damaged_files_are_named(document: object, words: str, tmp_path: Path) -> None:
    raw = make(tmp_path / "raw", document)
    result = run("build", raw, tmp_path / "out")
    assert result.exit_code != 0
    assert "labels/a.json" in result.stderr
    assert words in result.stderr
    assert "Traceback" not in result.stderr
