"""Batches by PyTorch's DataLoader: our collate functions are registered on first use, and batches are right without."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from conftest import RawFolder, pack
from torch.utils.data import DataLoader

from readers import collate, open_dataset

REGISTERED = """
import sys
import readers.by_format
from torch.utils.data._utils.collate import default_collate_fn_map
names = lambda: {str(kind) for kind in default_collate_fn_map if "readers" in str(kind)}
print(len(names()))
readers.by_format.open_dataset(sys.argv[1], "all")
print(len(names()))
"""


@pytest.fixture
def unregistered() -> Iterator[None]:
    """Let the next data set register again, and once more after the test."""
    collate.register_collate.cache_clear()
    yield
    collate.register_collate.cache_clear()
    collate.register_collate()


def test_importing_does_not_change_pytorch_and_opening_does(raw_folder: RawFolder, tmp_path: Path) -> None:
    command = [sys.executable, "-c", REGISTERED, str(pack(raw_folder.path, tmp_path / "out"))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "2"]


@pytest.mark.usefixtures("unregistered")
@pytest.mark.parametrize("moved", ["torch.utils.data._no_such_module", "torch.utils.data"])
def test_without_the_registry_batches_are_the_same(
    packed_index: Path, native: Path, moved: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`moved` is a module that is not there, and one that has no registry."""
    from torch.utils.data._utils.collate import default_collate_fn_map as registry

    expected = list(DataLoader(open_dataset(packed_index, "val"), 4))
    collate.register_collate.cache_clear()
    for kind in (collate.Sample, collate.PlainSample):
        monkeypatch.delitem(registry, kind)
    monkeypatch.setattr(collate, "COLLATE_MODULE", moved)
    with pytest.warns(UserWarning, match=r"no registry of collate functions .*copies each batch once more"):
        dataset = open_dataset(packed_index, "val")
    for batch, wanted in zip(DataLoader(dataset, 4), expected, strict=True):
        assert isinstance(batch, collate.Sample)
        assert all(torch.equal(part, other) for part, other in zip(batch, wanted, strict=True))
    ((image, label),) = zip(*next(iter(DataLoader(open_dataset(native, "val"), 1))), strict=True)
    assert image.shape[1:] == label.shape[-2:]
    with pytest.raises(RuntimeError, match="equal size"):  # PyTorch's own error
        next(iter(DataLoader(open_dataset(native, "val"), 4)))
