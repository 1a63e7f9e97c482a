"""Receipts of trainings: what they say, that they are JSON, and what trackers of experiments keep of them."""

from __future__ import annotations

import ast
import hashlib
import inspect
import itertools
import json
import os
import pickle
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from conftest import REPO, RawFolder, good, make_raw, pack
from test_docs_recipes import absent

from readers import Colour, Loader, Order, RandomCrop, SegDataset, SlidingWindows, Window, mix_packs, open_dataset
from readers.bridges.dvc import write_dvc
from readers.contract.errors import RequestError
from readers.contract.manifest import Manifest
from readers.training_receipt import packs_of, plain, write_receipt


@pytest.fixture
def out(raw_folder: RawFolder, tmp_path: Path) -> Path:
    return pack(raw_folder.path, tmp_path / "out", "--labels", "index")


def as_json(receipt: dict[str, Any]) -> dict[str, Any]:
    """Return a receipt after it was written as JSON, which changes nothing."""
    again: dict[str, Any] = json.loads(json.dumps(receipt, allow_nan=False))
    assert again == receipt
    return again


def test_a_receipt_names_the_generation_and_the_rows(out: Path) -> None:
    train = open_dataset(out, "train")
    receipt = as_json(train.receipt())
    assert receipt["pack"]["manifest"] == json.loads((out / "manifest.json").read_text())["checksum"]
    assert (receipt["pack"]["generation"], receipt["pack"]["root"]) == (1, str(out))
    assert (receipt["split"], receipt["rows"]) == ("train", len(train))
    assert receipt["fields"] == {"image": "uint8", "label": "uint8 index"}
    assert receipt["versions"]["torch"] == torch.__version__
    again = open_dataset(receipt["pack"]["root"], receipt["split"], generation=receipt["pack"]["generation"])
    assert again.receipt() == receipt


def test_another_generation_has_another_receipt(raw_folder: RawFolder, out: Path) -> None:
    before = open_dataset(out, "train").receipt()
    pack(raw_folder.path, out, "--labels", "index", "--size", "32x32")
    after = open_dataset(out, "train").receipt()
    assert after["pack"]["generation"] == before["pack"]["generation"] + 1
    assert all(after["pack"][name] != before["pack"][name] for name in ("manifest", "recipe"))
    assert open_dataset(out, "train", generation=1).receipt()["pack"] == before["pack"]


def test_the_receipt_of_a_loader_has_every_option_and_what_was_received(out: Path) -> None:
    crop = RandomCrop((16, 16), scale=(0.5, 2.0))
    loader = open_dataset(out, "train").loader(2, shuffle=True, seed=7, crop=crop, flip="all", colour=Colour(0.2))
    next(iter(loader))
    receipt = as_json(loader.receipt())
    options = receipt["loader"]
    assert options["crop"] == {**options["crop"], "type": "RandomCrop", "size": [16, 16], "scale": [0.5, 2.0]}
    assert (options["flip"], options["colour"]["brightness"]) == ("all", 0.2)
    assert not {"turn", "normalize", "partners"} & set(options)
    assert (receipt["batch_size"], receipt["order"]["seed"], receipt["order"]["consumed"]) == (2, 7, 2)
    onehot = open_dataset(out, "train").loader(
        2, labels="onehot", dtype=torch.float16, normalize=((0.5,) * 3, (0.5,) * 3)
    )
    assert onehot.receipt()["fields"] == {"image": "uint8", "label": "uint8 onehot"}


CROP = {"crop": (16, 16)}
MIX: dict[str, Any] = {"batch_size": 6, "mix": {"labelled": 4, "unlabelled": 2}}
CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "batch_size": ({"batch_size": 2}, {"batch_size": 3}),
    "shuffle": ({"shuffle": True}, {"shuffle": Window(2, 2)}),
    "seed": ({"seed": 1}, {"seed": 2}),
    "crop": (CROP, {"crop": RandomCrop((16, 16), scale=(0.5, 2.0))}),
    "flip": ({**CROP, "flip": True}, {**CROP, "flip": "all"}),
    "turn": (CROP, {**CROP, "turn": True}),
    "colour": ({"colour": Colour(0.2)}, {"colour": Colour(0.3)}),
    "normalize": ({"dtype": torch.float32}, {"dtype": torch.float32, "normalize": True}),
    "dtype": ({"dtype": torch.float32}, {"dtype": torch.float16}),
    "on": (CROP, {**CROP, "on": "device"}),
    "rank": ({"world_size": 2}, {"world_size": 2, "rank": 1}),
    "world_size": ({}, {"world_size": 2}),
    "drop_last": ({}, {"drop_last": True}),
    "pad": ({"shuffle": True}, {"shuffle": True, "pad": False}),
    "labels": ({}, {"labels": "onehot"}),
    "mix": (MIX, {**MIX, "mix": {"labelled": 3, "unlabelled": 3}}),
    "mix_end": (MIX, {**MIX, "mix_end": "unlabelled"}),
    "partners": ({}, {"partners": 1}),
    "windows": ({"windows": (16, 16)}, {"windows": (8, 8)}),
    "weights": ({"weights": ("repeat-factor", 0.9)}, {"weights": ("repeat-factor", 0.5)}),
}
"""Two uses of each option of a loader that decides its batches."""
READING = {"output": "numpy", "pin_memory": False, "threads": 1, "ahead": 2, "drop_behind": True}
"""The options that decide only how batches are read."""


@pytest.fixture
def partly(tmp_path: Path) -> Path:
    """Return a pack with 20 rows that have a label, and 4 that have none."""
    raw = make_raw(tmp_path / "raw", {"train": 24}).path
    for row in range(4):
        (raw / "train" / "masks" / f"street_{row:03d}.png").unlink()
    return pack(raw, tmp_path / "partly", "--labels", "index", "--missing", "keep")


def loader_of(root: Path, options: dict[str, Any]) -> Loader:
    """Return a loader of all rows if it mixes them, else of those with a label."""
    train = open_dataset(root, "train", labelled=None if "mix" in options else True)
    return train.loader(**{"batch_size": 2, **options})


def test_the_receipt_differs_with_each_option_that_decides_batches_and_with_no_other(partly: Path) -> None:
    parameters = set(inspect.signature(SegDataset.loader).parameters) - {"self"}
    assert parameters == {*CHANGES, *READING}, "a new option of loader belongs into its receipt"
    for name, (one, other) in CHANGES.items():
        assert as_json(loader_of(partly, one).receipt()) != as_json(loader_of(partly, other).receipt()), name
        assert loader_of(partly, one).receipt() == loader_of(partly, {**one, **READING}).receipt(), name
    implied = loader_of(partly, {"shuffle": True}).receipt()
    assert implied == loader_of(partly, {"shuffle": True, "pad": True, "labels": "index", "flip": False}).receipt()
    sides = [open_dataset(partly, "train", labelled=labelled).receipt() for labelled in (True, False, None)]
    assert [side.get("labelled") for side in sides] == [True, False, None]
    train = open_dataset(partly, "train")
    assert pickle.loads(pickle.dumps(train)).receipt() == train.receipt()  # noqa: S301


TYPES: dict[str, Any] = {"RandomCrop": RandomCrop, "Colour": Colour, "SlidingWindows": SlidingWindows}
REST: dict[str, dict[str, Any]] = {"drop": {"drop_last": True}, "pad": {"pad": True}, "keep": {"pad": False}}


def option_of(fact: Any) -> Any:
    """Return the option that a receipt has as JSON."""
    if isinstance(fact, dict) and "type" in fact:
        return TYPES[fact["type"]](**{name: option_of(part) for name, part in fact.items() if name != "type"})
    if isinstance(fact, list):
        return tuple(map(option_of, fact))
    return getattr(torch, fact.removeprefix("torch.")) if str(fact).startswith("torch.") else fact


def loader_again(receipt: dict[str, Any]) -> Loader:
    """Return the loader that a receipt describes, where it was."""
    pack_facts, order, facts = receipt["pack"], dict(receipt["order"]), dict(receipt["loader"])
    options: dict[str, Any] = {"rank": order.pop("rank"), "world_size": order["world_size"]}
    if "windows" in facts:
        del facts["crop"]
    else:
        del order["world_size"]
        side = order["labelled"] if "mix" in facts else order
        shuffle = side["shuffle"]
        window = [int(number) for number in re.findall(r"\d+", shuffle)]
        options |= {"shuffle": Window(window[0], window[1], "apart" in shuffle) if window else shuffle == "True"}
        options |= {"seed": side["seed"], **REST[facts.pop("rest")]}
        if "weights" in side:
            options["weights"] = ast.literal_eval(side["weights"])
    options |= {name: option_of(fact) for name, fact in facts.items()}
    options["labels"] = receipt["fields"]["label"].split()[1]
    train = open_dataset(
        pack_facts["root"], receipt["split"], generation=pack_facts["generation"], labelled=receipt.get("labelled")
    )
    loader = train.loader(receipt["batch_size"], **options)
    loader.load_state_dict(order)
    return loader


def batches_of(loader: Loader, most: int = 99) -> list[tuple[Any, ...]]:
    return [tuple(part for part in batch) for batch in itertools.islice(loader, most)]


@pytest.mark.parametrize(
    "options", [pair[number] for pair in CHANGES.values() for number in (0, 1)], ids=lambda options: str(options)
)
def test_a_receipt_is_enough_to_make_the_batches_again(options: dict[str, Any], partly: Path) -> None:
    loader = loader_of(partly, options)
    batches_of(loader, 2)
    receipt = as_json(loader.receipt())
    rest = loader_again(receipt)
    assert rest.receipt() == receipt
    resumed = loader_of(partly, options)
    resumed.load_state_dict(loader.state_dict())
    expected, found = batches_of(resumed), batches_of(rest)
    assert len(expected) == len(found) > 0
    for batch, again in zip(expected, found, strict=True):
        assert all(map(same, batch, again))


def same(one: Any, other: Any) -> bool:
    return torch.equal(one, other) if isinstance(one, torch.Tensor) else bool(one == other)


def test_all_kinds_of_loaders_have_one(out: Path) -> None:
    train, val = open_dataset(out, "train"), open_dataset(out, "val")
    device = train.loader(2).to("cpu", dtype=torch.float32, normalize=True, augment=lambda image, label: (image, label))
    next(iter(device))
    found = as_json(device.receipt())
    assert (found["order"]["consumed"], found["device"]["name"]) == (2, "cpu")
    assert "augment" in found["device"]["steps"]
    windows = as_json(val.loader(2, windows=(16, 16)).receipt())
    assert windows["loader"]["windows"]["size"] == [16, 16]
    mixed = as_json(mix_packs({"a": (train, 0.75), "b": (val, 0.25)}).loader(4).receipt())
    assert {name: part["share"] for name, part in packs_of(mixed).items()} == {"a": "3/4", "b": "1/4"}
    assert mixed["packs"]["a"]["pack"] == train.receipt()["pack"]
    weighted = train.loader(2, weights="repeat-factor", shuffle=True).receipt()
    assert weighted["order"]["weights"] == Order(train, weights="repeat-factor").state_dict()["weights"]


def test_a_transform_is_named() -> None:
    assert plain(RandomCrop((2, 3)))["type"] == "RandomCrop"
    assert plain(as_json).endswith("test_readers_receipts.as_json")
    assert plain(torch.nn.Identity()) == "torch.nn.modules.linear.Identity"
    assert plain({"a": (float("inf"), torch.tensor([1, 2]))}) == {"a": ["inf", [1, 2]]}


def test_a_receipt_lies_next_to_a_checkpoint(out: Path, tmp_path: Path) -> None:
    receipt = open_dataset(out, "train").receipt()
    write_receipt(receipt, tmp_path / "model.json")
    assert json.loads((tmp_path / "model.json").read_text()) == receipt


def test_dvc_finds_the_manifest_by_its_md5(raw_folder: RawFolder, out: Path) -> None:
    receipt = open_dataset(out, "train").receipt()
    (written,) = yaml.safe_load(write_dvc(receipt, out).read_text())["outs"]
    manifest = (out / "manifest.json").read_bytes()
    assert written == {
        "md5": hashlib.md5(manifest, usedforsecurity=False).hexdigest(),
        "size": len(manifest),
        "hash": "md5",
        "path": "manifest.json",
        "cache": False,
    }
    good("verify", out)
    pack(raw_folder.path, out, "--labels", "index", "--size", "32x32")
    with pytest.raises(RequestError, match=r"generation 2 is current, and the receipt is of generation 1"):
        write_dvc(receipt, out)
    with pytest.raises(RequestError, match=r"expected what receipt\(\) returns"):
        write_dvc({"epoch": 3}, out)


TRACKERS = {
    "mlflow": """
import mlflow
from readers.bridges.mlflow import GenerationSource, log_input
mlflow.set_tracking_uri(f"sqlite:///{folder}/runs.db")
mlflow.set_experiment(experiment_id=mlflow.create_experiment("streets", artifact_location=f"file://{folder}/kept"))
with mlflow.start_run() as run:
    for receipt in receipts:
        log_input(receipt)
inputs = [found.dataset for found in mlflow.get_run(run.info.run_id).inputs.dataset_inputs]
for found in inputs:
    rows = GenerationSource.from_dict(json.loads(found.source)).load()
    print(found.name, found.digest, len(rows))
""",
    "wandb": """
import wandb
from readers.bridges.wandb import use_packs
with wandb.init(project="streets", dir=folder, mode="offline") as run:
    for receipt in receipts:
        (artifact,) = use_packs(run, receipt)
        entry = artifact.manifest.entries["manifest.json"]
        print(artifact.name, artifact.metadata["manifest"], run.config[f"{receipt['split']}_receipt"]["rows"])
        assert entry.ref == f"file://{out}/generations/000001.json", entry
""",
}


@pytest.mark.long
@pytest.mark.parametrize("tracker", TRACKERS)
def test_a_tracker_keeps_the_packs_of_a_run(tracker: str, out: Path, tmp_path: Path) -> None:
    if find_spec(tracker) is None:
        absent(tracker)
    code = f"""
import json
from readers import open_dataset
folder, out = {str(tmp_path)!r}, {str(out)!r}
receipts = [open_dataset(out, split).receipt() for split in ("train", "val")]
{TRACKERS[tracker]}
"""
    environment = {**os.environ, "PYTHONPATH": str(REPO), "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    kept = [line.split() for line in done.stdout.splitlines()]
    checksum = Manifest.load(out).identity
    assert len(kept) == 2
    for (_, digest, rows), split in zip(kept, ("train", "val"), strict=True):
        assert checksum.startswith(digest)
        assert len(digest) >= 32
        assert int(rows) == len(open_dataset(out, split))
