"""Bridges to transformers and torchvision: masks of stuff, fewer labels, worker processes, packs without objects."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from runpy import run_path
from typing import Any

import numpy as np
import pytest
from test_docs_recipes import CPU_TORCHVISION, absent

from packer import Rows, build_pack
from readers import RequestError

pytestmark = pytest.mark.long
NAMES = ["background", "road", "car"]
LABEL = np.array([[0, 0, 1, 1], [2, 2, 1, 1], [2, 2, 1, 255]], np.uint8).repeat(8, 0).repeat(8, 1)
IDS = np.array([[0, 0, 0, 0], [5, 5, 0, 0], [9, 9, 0, 0]], np.uint16).repeat(8, 0).repeat(8, 1)


def load(key: tuple[str, str]) -> dict[str, Any]:
    return {"image": np.full((24, 32, 3), int(key[1]), np.uint8), "label": LABEL, "instance": IDS}


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack of five rows with a label, of which each has two cars."""
    for need in ("transformers", "torchvision"):
        if find_spec(need) is None:
            absent(need)
    run_path(str(CPU_TORCHVISION / "sitecustomize.py"))
    out = tmp_path_factory.mktemp("bridge") / "pack"
    keys = [("train", str(row)) for row in range(5)]
    build_pack(
        Rows(keys, load),
        out,
        classes=NAMES,
        labels="index",
        ignore=["255"],
        fields=[{"name": "instance", "kind": "ids"}],
    )
    return out


def test_a_first_class_that_the_processor_reduces_is_ignored(pack: Path) -> None:
    from transformers import SegformerImageProcessor

    from readers.bridges.huggingface import SemanticRows

    rows = SemanticRows(pack, "train", SegformerImageProcessor(do_resize=False, do_reduce_labels=True))
    assert rows.id2label == {0: "road", 1: "car"}
    assert rows[1]["labels"].tolist() == np.where(LABEL % 255 == 0, 255, LABEL - 1).tolist()


@pytest.mark.parametrize(
    ("options", "classes"),
    [({}, [1, 1]), ({"things": ["car"], "stuff": True}, [2, 2, 0, 1]), ({"ids": False}, [0, 1, 2])],
)
def test_masks_are_of_objects_of_stuff_too_or_of_classes(
    pack: Path, options: dict[str, Any], classes: list[int]
) -> None:
    from transformers import Mask2FormerImageProcessor

    from readers.bridges.huggingface import ObjectRows

    rows = ObjectRows(pack, "train", Mask2FormerImageProcessor(do_resize=False), **options)
    row = rows[0]
    assert row["class_labels"].tolist() == classes
    covered = row["mask_labels"].sum(0).numpy()
    assert (covered == (LABEL != 255 if options else IDS > 0)).all()
    for mask, number in zip(row["mask_labels"].bool().numpy(), classes, strict=True):
        assert {NAMES[label] for label in np.unique(LABEL[mask])} == {rows.id2label[number]}


def test_workers_that_are_spawned_read_the_same(pack: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(CPU_TORCHVISION))
    from torch.utils.data import DataLoader
    from torchvision.transforms import v2
    from transformers import Mask2FormerImageProcessor

    from readers.bridges import huggingface, torchvision

    objects = huggingface.ObjectRows(pack, "train", Mask2FormerImageProcessor(do_resize=False))
    targets = torchvision.DetectionRows(pack, "train", transforms=v2.ToPureTensor())
    for rows, collate in ((objects, huggingface.collate_objects), (targets, torchvision.collate)):
        spawned = DataLoader(rows, 5, num_workers=1, multiprocessing_context="spawn", collate_fn=collate)
        (batch,), (alone,) = list(spawned), list(DataLoader(rows, 5, collate_fn=collate))
        assert str(batch) == str(alone)
    image, target = targets[3]
    assert (image == 3).all()
    assert target["boxes"].tolist() == [[0, 8, 15, 15], [0, 16, 15, 23]]
    assert target["labels"].tolist() == [2, 2]
    assert (targets.categories, targets.num_classes) == (("__background__", "road", "car"), 3)


def plain(key: tuple[str, str]) -> dict[str, Any]:
    return {name: array for name, array in load(key).items() if name != "instance"}


def test_a_pack_without_objects_is_refused(tmp_path: Path, pack: Path) -> None:
    from readers.bridges.torchvision import DetectionRows

    build_pack(Rows([("train", "0")], plain), tmp_path / "a", classes=NAMES, ignore=["255"])
    with pytest.raises(RequestError, match="build the pack with --field instance=ids"):
        DetectionRows(tmp_path / "a", "train")
    with pytest.raises(RequestError, match="things='dog'"):
        DetectionRows(pack, "train", things=["dog"])
