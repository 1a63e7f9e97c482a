"""The commands in the guide about archives run, next to archives such as it describes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from conftest import REPO, good
from stored_scenes import KINDS, png, rec_picture, scenes_of

SECTIONS = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
SCENES = scenes_of({"a": 1, "b": 2, "c": 3})


def test_the_commands_of_the_guide_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shards").mkdir()
    for name, (key, scene) in zip(("train-000", "train-001", "val-000"), SCENES.items(), strict=True):
        KINDS["webdataset"].write(tmp_path / "shards" / f"{name}.tar", {key: scene})
    KINDS["parquet"].write(tmp_path / "train-00000-of-00001.parquet", SCENES)
    KINDS["hugging face"].write(tmp_path / "saved", scenes_of({f"{number}": number for number in range(7)}))
    KINDS["lmdb"].write(tmp_path / "data.mdb", SCENES)
    (tmp_path / "records").mkdir()
    KINDS["tfrecord"].write(tmp_path / "records" / "train.tfrecord", SCENES)
    (tmp_path / "recs").mkdir()
    for side, name in enumerate(("images", "masks")):
        rows = enumerate(png(scene[side]) for scene in SCENES.values())
        (tmp_path / "recs" / f"train_{name}.rec").write_bytes(b"".join(rec_picture(*row) for row in rows))
    monkeypatch.chdir(tmp_path)
    text = (REPO / "docs" / "guide" / "sources.md").read_text()
    commands = [line for code in SECTIONS.findall(text) for line in code.splitlines()]
    assert commands
    for command in commands:
        good(*shlex.split(command)[1:])
