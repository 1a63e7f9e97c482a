"""The bridge to Ultralytics: other names of splits, a part of the rows, spawned workers, packs that are refused."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import REPO
from test_docs_recipes import absent

from packer import build_pack
from readers import RequestError

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if find_spec("ultralytics") is None:
        absent("ultralytics")
    out = tmp_path_factory.mktemp("bridge") / "pack"
    build_pack(str(REPO / "data_samples" / "raw"), out, size="native", labels="index", ignore=["void"])
    return out


def trainer(kind: Any, data: Path, folder: Path, **settings: Any) -> Any:
    places = {"model": "yolo26n-sem.yaml", "data": str(data), "project": str(folder), "device": "cpu"}
    return kind(overrides={**places, **settings})


def test_splits_of_other_names_a_part_of_the_rows_and_spawned_workers(pack: Path, tmp_path: Path) -> None:
    from torch.utils.data import DataLoader

    from readers.bridges.ultralytics import SemanticTrainer

    class Reversed(SemanticTrainer):
        splits = {"train": "val", "val": "train"}  # noqa: RUF012

    made = trainer(Reversed, pack, tmp_path, imgsz=64, fraction=0.5, mosaic=0.0, rect=True)
    assert (made.data["nc"], made.data["names"][7], made.data["channels"]) == (8, "pole_sign", 3)
    rows = made.rows("val", 4, True, 32)
    assert (len(made.rows("train", 4, False, 32)), len(rows)) == (3, 18)
    spawned = DataLoader(rows, 4, num_workers=1, multiprocessing_context="spawn", collate_fn=rows.collate_fn)
    for batch, alone in zip(spawned, DataLoader(rows, 4, collate_fn=rows.collate_fn), strict=True):
        assert torch.equal(batch["img"], alone["img"])
        assert torch.equal(batch["semantic_mask"], alone["semantic_mask"])
        assert batch["im_file"] == alone["im_file"]


def test_the_file_of_a_run_is_data_too(pack: Path, tmp_path: Path) -> None:
    from readers.bridges.ultralytics import SemanticTrainer

    first = trainer(SemanticTrainer, pack, tmp_path)
    again = trainer(SemanticTrainer, Path(first.args.data), tmp_path)
    assert again.args.data.endswith("pack.yaml")
    assert len(again.rows("train", 4, False, 32)) == 18


def test_a_pack_without_objects_or_without_a_split_is_refused(pack: Path, tmp_path: Path) -> None:
    from readers.bridges.ultralytics import SegmentTrainer, SemanticTrainer

    with pytest.raises(RequestError, match="build the pack with --field instance=ids"):
        trainer(SegmentTrainer, pack, tmp_path)
    with pytest.raises(RequestError, match="splits are train, val, and none is named for test"):
        trainer(SemanticTrainer, pack, tmp_path, split="test")
