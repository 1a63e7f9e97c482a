"""Shared slots: worker processes write where the trainer reads, but never into a batch that is still used."""

from __future__ import annotations

import gc
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import SMALL_SHARDS, RawFolder, end_workers, pack
from torch.utils.data import BatchSampler, SequentialSampler

from packer.workers.fork_server import start_fork_server
from readers import DamagedError, Order, RandomCrop, RequestError, SegDataset, SlotDataLoader, open_dataset
from readers.slot_loader import HELD, SharedSlots

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")


@pytest.fixture(scope="module")
def city(raw_folder: RawFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`raw_folder` in one format: the way of a batch does not depend on the format."""
    return pack(raw_folder.path, tmp_path_factory.mktemp("city") / "npy", "--format", "npy", *SMALL_SHARDS)


def stacked(dataset: SegDataset, rows: list[int]) -> list[torch.Tensor]:
    samples = [dataset[row] for row in rows]
    return [torch.stack([sample[part] for sample in samples]) for part in (0, 1)]


def check(batches: Any, dataset: SegDataset, rows: list[int], size: int) -> None:
    """Check that these are the batches of these rows; each is deleted before the next."""
    parts = [rows[first : first + size] for first in range(0, len(rows), size)]
    for batch, part in zip(batches, parts, strict=True):
        assert all(torch.equal(ours, theirs) for ours, theirs in zip(batch, stacked(dataset, part), strict=True))


@pytest.mark.long(short=lambda case: case["method"] != "forkserver")
@pytest.mark.parametrize(
    ("method", "form"), [("fork", "onehot"), ("fork", "index"), ("spawn", "onehot"), ("forkserver", "index")]
)
def test_workers_of_every_kind_deliver_every_row(city: Path, method: str, form: Any) -> None:
    if method == "forkserver":
        start_fork_server()  # the server of PyTorch has no preload, and later builds of this process would use it
    dataset = open_dataset(city, "train", label=form)
    order = Order(dataset, seed=1)
    loader = SlotDataLoader(
        dataset, 4, sampler=order, num_workers=2, persistent_workers=True, multiprocessing_context=method
    )
    assert len(loader) == 6
    for epoch in range(2):
        order.set_epoch(epoch)
        rows = order.coming().take(0, 100).tolist()
        check(loader, dataset, rows, 4)


def addresses(loader: SlotDataLoader) -> list[int]:
    """Return the addresses of the batches of a pass."""
    return [images.data_ptr() for images, _ in loader]


def test_batches_lie_in_slots_that_are_used_again(city: Path) -> None:
    loader = SlotDataLoader(open_dataset(city, "train"), 1, num_workers=2, persistent_workers=True)
    assert len({address for _ in range(3) for address in addresses(loader)}) <= 2 * (2 + HELD)


def test_batches_in_use_are_never_written_again_and_the_rest_is_sent(city: Path) -> None:
    dataset = open_dataset(city, "train")
    loader = SlotDataLoader(dataset, 1, num_workers=2, persistent_workers=True)
    held = [batch for _ in range(2) for batch in loader]
    parts = [(images[0, 1], labels.numpy()) for images, labels in held[::3]]
    for number, (images, labels) in enumerate(held):
        image, label = dataset[number % 23]
        assert torch.equal(images[0], image)
        assert torch.equal(labels[0], label)
    copies = [(image.numpy().tobytes(), label.tobytes()) for image, label in parts]
    del held, images, labels
    check(loader, dataset, list(range(23)), 1)
    check(loader, dataset, list(range(23)), 1)
    assert [(image.numpy().tobytes(), label.tobytes()) for image, label in parts] == copies


def test_a_pass_that_ends_early_frees_its_slots(city: Path) -> None:
    dataset = open_dataset(city, "train")
    for persistent in (False, True):
        loader = SlotDataLoader(dataset, 2, num_workers=2, persistent_workers=persistent)
        for _ in range(4):
            for _ in loader:
                break
        rows = list(range(23))
        check(loader, dataset, rows, 2)
        assert len(set(addresses(loader))) <= 2 * (2 + HELD)


def test_two_passes_at_once_do_not_disturb_each_other(city: Path) -> None:
    dataset = open_dataset(city, "val")
    loader = SlotDataLoader(dataset, 2, num_workers=1)
    for number, batches in enumerate(zip(loader, loader, strict=True)):
        wanted = stacked(dataset, list(range(2 * number, min(9, 2 * number + 2))))
        for batch in batches:
            assert all(torch.equal(ours, theirs) for ours, theirs in zip(batch, wanted, strict=True))


def test_it_works_without_workers_and_with_batch_samplers(city: Path) -> None:
    dataset = open_dataset(city, "val")
    check(SlotDataLoader(dataset, 4), dataset, list(range(9)), 4)
    sampler = BatchSampler(SequentialSampler(range(9)), 3, drop_last=False)
    check(SlotDataLoader(dataset, batch_sampler=sampler, num_workers=1), dataset, list(range(9)), 3)
    check(SlotDataLoader(dataset, batch_sampler=[[1, 2, 3], [0]], num_workers=1), dataset, [1, 2, 3, 0], 3)


def test_an_error_in_a_worker_names_the_file(city: Path, tmp_path: Path) -> None:
    out = shutil.copytree(city, tmp_path / "out")
    for path in (out / "shards").glob("train-*.npy"):
        os.truncate(path, 3000)
    batches = iter(SlotDataLoader(open_dataset(out, "train"), 4, num_workers=1))
    with pytest.raises(DamagedError, match=r"shards/train-.*npy"):
        list(batches)
    end_workers(batches)


def test_a_slot_is_free_when_nothing_refers_to_its_batch(city: Path) -> None:
    dataset = open_dataset(city, "val")
    slots = SharedSlots(dataset.fields, rows=3, slots=4, workers=2)
    assert [slots.take(1, 3) for _ in range(3)] == [2, 3, None]
    assert slots.take(0, 4) is None, "a batch that is too large for a slot"
    for part, field in zip(slots.parts(2, 2), dataset.fields, strict=True):
        assert part.shape == (2, *field.shape)
        part[...] = 5
    images, labels = slots.hand_out(2, 2)
    assert {*images.flatten().tolist(), *labels.flatten().tolist()} == {5}
    view = np.asarray(labels[1])
    del images, labels
    gc.collect()
    assert slots.take(1, 3) is None
    del view
    gc.collect()
    assert slots.take(1, 3) == 2


def test_data_sets_that_do_not_fit_into_slots_are_refused(city: Path, native: Path) -> None:
    with pytest.raises(RequestError, match="rows of one size"):
        SlotDataLoader(open_dataset(native, "train"), 2)
    with pytest.raises(RequestError, match="no transform"):
        SlotDataLoader(open_dataset(city, "train", transform=RandomCrop((2, 2))), 2)
    with pytest.raises(RequestError, match="collate_fn of its own"):
        SlotDataLoader(open_dataset(city, "train"), 2, collate_fn=list)
