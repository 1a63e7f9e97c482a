"""Bridges in worker processes that import all modules again, and what they refuse."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from conftest import REPO, make_raw, run
from test_docs_recipes import absent

LOADING = """
import sys
import torch
from torch.utils.data import DataLoader

if __name__ == "__main__":
    pack = sys.argv[1]
    {opening}
    batches = [*DataLoader(rows, batch_size=2, num_workers=2, multiprocessing_context="spawn", collate_fn={collate})]
    {check}
    print(len(batches), "batches")
"""
OPENINGS = {
    "monai": (
        "from readers.bridges.monai import PackList; rows = PackList(pack, 'train')",
        "from monai.data import list_data_collate",
        "assert batches[0]['image'].shape == (2, 3, 36, 24) and batches[0]['label'].dtype == torch.float32",
    ),
    "torchgeo": (
        "from readers.bridges.torchgeo import PackTiles; rows = PackTiles(pack, 'train')",
        "from torchgeo.datasets import stack_samples as list_data_collate",
        "assert batches[0]['image'].shape == (2, 3, 24, 36) and batches[0]['mask'].dtype == torch.long",
    ),
    "fastai": (
        "from readers.bridges.fastai import PackItems; rows = PackItems(pack, 'train', 0, {})",
        "list_data_collate = list",
        "assert batches[0][0][0].shape == (3, 24, 36) and batches[0][0][1].shape == (24, 36)",
    ),
    "transformers": (
        "from transformers import SegformerImageProcessor; from readers.bridges.huggingface import SemanticRows; "
        "rows = SemanticRows(pack, 'train', SegformerImageProcessor(do_resize=False))",
        "from torch.utils.data import default_collate as list_data_collate",
        "assert batches[0]['pixel_values'].shape == (2, 3, 24, 36) and batches[0]['labels'].shape == (2, 24, 36)",
    ),
    "detectron2": (
        "from readers.bridges.detectron2 import register_pack; register_pack('it', pack, 'train'); "
        "from detectron2.data import DatasetCatalog, DatasetFromList, DatasetMapper, MapDataset; "
        "mapper = DatasetMapper(True, augmentations=[], image_format='RGB'); "
        "rows = MapDataset(DatasetFromList(DatasetCatalog.get('it')), mapper)",
        "list_data_collate = list",
        "assert batches[0][0]['image'].shape == (3, 24, 36) and batches[0][0]['sem_seg'].dtype == torch.long",
    ),
}


def called(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(map(str, (REPO, REPO / "tests" / "cpu_torchvision")))
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, script, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.long
@pytest.mark.parametrize("library", OPENINGS)
def test_spawned_workers_read_a_pack(library: str, tmp_path: Path) -> None:
    if find_spec(library) is None:
        absent(library)
    assert (
        run("build", make_raw(tmp_path / "raw", {"train": 4}).path, tmp_path / "out", "--size", "native").exit_code == 0
    )
    opening, collate, check = OPENINGS[library]
    script = tmp_path / "script.py"
    opening = f"{opening}\n    {collate}"
    script.write_text(LOADING.format(opening=opening, collate="list_data_collate", check=check))
    done = called(str(script), tmp_path / "out")
    assert done.stdout.splitlines()[-1:] == ["2 batches"], done.stderr


REFUSALS = {
    "monai": ("from readers.bridges.monai import PackList; PackList({pack!r})", "no field 'label'"),
    "torchgeo": ("from readers.bridges.torchgeo import PackTiles; PackTiles({pack!r})", "no field 'label'"),
    "torchgeo_map": (
        "from readers.bridges.torchgeo_map import PackMap; PackMap({pack!r}, fields=('image',))",
        "use PackTiles",
    ),
    "mmseg": (
        "from trainers.mmseg import PackDataset; PackDataset({pack!r})",
        "a label with one class for each pixel is needed, and its rows have image (picture)",
    ),
    "fastai": (
        "from readers.bridges.fastai import pack_dataloaders; pack_dataloaders({pack!r}, 'all', 'all')",
        "a label with one class for each pixel is needed, and its rows have image (picture)",
    ),
    "detectron2": (
        "from readers.bridges.detectron2 import register_pack; register_pack('it', {pack!r}, 'all')",
        "a label with one class for each pixel is needed, and its rows have image (picture)",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("bridge", REFUSALS)
def test_packs_of_another_kind_are_refused(bridge: str, tmp_path: Path) -> None:
    library = bridge.partition("_")[0]
    if find_spec(library) is None:
        absent(library)
    raw = make_raw(tmp_path / "raw", {"train": 2}).path / "train" / "images"
    built = run("build", raw, tmp_path / "out", "--size", "native", "--field", "image=picture:{key}.png")
    assert built.exit_code == 0, built.stderr
    opening, error = REFUSALS[bridge]
    script = tmp_path / "script.py"
    script.write_text(
        f"import sys; sys.path.append({str(REPO / 'tools')!r})\n{opening.format(pack=str(tmp_path / 'out'))}"
    )
    last = called(str(script)).stderr.splitlines()[-1]
    assert "RequestError" in last
    assert error in last
