"""Receipts of trainings: what they say, that they are JSON, and what trackers of experiments keep of them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from conftest import REPO, RawFolder, good, pack
from test_docs_recipes import absent

from readers import Colour, Order, RandomCrop, mix_packs, open_dataset
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
