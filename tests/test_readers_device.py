"""Batches on a device: the right numbers, the user's position in the epoch, and copies ahead of use."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from conftest import HANG, SMALL_SHARDS, RawFolder, pack
from torch.utils.data import DataLoader

from readers import Loader, RequestError, SegDataset, open_dataset, to_device

MEAN, DEVIATION = (0.5, 0.25, 0.125), (0.5, 1.0, 0.25)
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")),
]


@pytest.fixture(scope="module")
def dataset(raw_folder: RawFolder, tmp_path_factory: pytest.TempPathFactory) -> SegDataset:
    out = tmp_path_factory.mktemp("device") / "out"
    return open_dataset(pack(raw_folder.path, out, "--labels", "index", *SMALL_SHARDS), "train", label="index")


def copies(loader: Loader) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [(images.clone(), labels.clone()) for images, labels in loader]


@pytest.mark.parametrize("device", DEVICES)
def test_without_options_batches_are_those_of_the_loader(dataset: SegDataset, device: str) -> None:
    wanted = copies(dataset.loader(4, shuffle=True, seed=3))
    got = list(dataset.loader(4, shuffle=True, seed=3).to(device))
    assert len(got) == len(wanted) > 2
    for (images, labels), (theirs, their_labels) in zip(got, wanted, strict=True):
        assert images.device.type == labels.device.type == torch.device(device).type
        assert images.cpu().equal(theirs)
        assert labels.cpu().equal(their_labels)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_images_are_scaled_and_normalised_as_by_hand(dataset: SegDataset, device: str, dtype: torch.dtype) -> None:
    options: dict[str, Any] = {"dtype": dtype, "normalize": (MEAN, DEVIATION), "channels_last": True}
    batches = dataset.loader(4).to(device, label_dtype=torch.long, **options)
    for (images, labels), (theirs, their_labels) in zip(batches, copies(dataset.loader(4)), strict=True):
        mean, deviation = (torch.tensor(values).view(1, 3, 1, 1) for values in (MEAN, DEVIATION))
        wanted = (theirs.to(torch.float32) / 255 - mean) / deviation
        assert images.dtype == dtype
        assert images.is_contiguous(memory_format=torch.channels_last)
        torch.testing.assert_close(images.cpu(), wanted.to(dtype), rtol=2**-7, atol=1e-6)
        assert labels.dtype == torch.long
        assert labels.cpu().equal(their_labels.long())


@pytest.mark.parametrize("device", DEVICES)
def test_planes_are_made_on_the_device(dataset: SegDataset, device: str) -> None:
    wanted = [labels.clone() for _, labels in dataset.loader(4, labels="onehot")]
    planes = [labels.cpu() for _, labels in dataset.loader(4, labels="onehot").to(device)]
    by_hand = to_device(dataset.loader(4), device, classes=len(dataset.classes), label_dtype=torch.float32)
    for ours, theirs, (_, third) in zip(planes, wanted, by_hand, strict=True):
        assert ours.dtype == torch.uint8
        assert ours.equal(theirs)
        assert third.cpu().equal(theirs.float())


def test_an_ignored_pixel_is_0_in_every_plane() -> None:
    batch = torch.zeros(1, 3, 1, 2), torch.tensor([[[1, 255]]], dtype=torch.uint8)
    ((_, labels),) = to_device([batch], "cpu", classes=2)
    assert labels.tolist() == [[[[0, 0]], [[1, 0]]]]


@pytest.mark.parametrize("ahead", [1, 3])
@pytest.mark.parametrize("received", [0, 1, 2, 3])
def test_the_state_is_what_the_user_has_received(dataset: SegDataset, ahead: int, received: int) -> None:
    wanted = copies(dataset.loader(3, shuffle=True, seed=5))
    loader = dataset.loader(3, shuffle=True, seed=5).to("cpu", ahead=ahead)
    passing = iter(loader)
    for _ in range(received):
        next(passing)
    state = loader.state_dict()
    again = dataset.loader(3, shuffle=True, seed=99).to("cpu", ahead=ahead)
    again.load_state_dict(state)
    rest = [images for images, _ in again]
    assert len(rest) == len(wanted) - received
    assert all(ours.equal(theirs) for ours, (theirs, _) in zip(rest, wanted[received:], strict=True))


def test_a_pass_that_ended_early_does_not_count_in_the_next(dataset: SegDataset) -> None:
    loader = dataset.loader(3, shuffle=True, seed=5).to("cpu")
    untouched = loader.state_dict()
    next(iter(loader))
    assert loader.state_dict() != untouched
    passing = iter(loader)
    assert loader.state_dict() == untouched
    next(passing)


def test_the_next_epoch_follows_and_others_can_be_chosen(dataset: SegDataset) -> None:
    plain, batches = dataset.loader(4, shuffle=True, seed=1), dataset.loader(4, shuffle=True, seed=1).to("cpu")
    for _ in range(2):
        assert all(a.equal(b) for (a, _), (b, _) in zip(batches, copies(plain), strict=True))
    batches.set_epoch(9)
    plain.set_epoch(9)
    assert len(batches) == len(plain)
    assert all(a.equal(b) for (a, _), (b, _) in zip(batches, copies(plain), strict=True))


def noise(images: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    assert images.dtype == torch.float32
    assert 0 <= images.min() <= images.max() <= 1
    return torch.rand_like(images), labels


@pytest.mark.parametrize("device", DEVICES)
def test_random_numbers_follow_from_seed_epoch_and_rank(dataset: SegDataset, device: str) -> None:
    def drawn(seed: int, epoch: int, rank: int, skip: int = 0) -> list[torch.Tensor]:
        loader = dataset.loader(2, seed=seed, rank=rank, world_size=2)
        loader.set_epoch(epoch)
        return [images.cpu() for images, _ in loader.to(device, augment=noise)][skip:]

    first = drawn(1, 2, 0)
    assert all(a.equal(b) for a, b in zip(first, drawn(1, 2, 0), strict=True))
    assert not first[0].equal(first[1])
    for other in (drawn(2, 2, 0), drawn(1, 3, 0), drawn(1, 2, 1)):
        assert not first[0].equal(other[0])


def test_the_random_numbers_of_the_program_do_not_change(dataset: SegDataset) -> None:
    torch.manual_seed(0)
    wanted = torch.rand(3)
    torch.manual_seed(0)
    assert len(list(dataset.loader(4).to("cpu", augment=noise))) > 1
    assert torch.rand(3).equal(wanted)


def test_batches_are_sent_ahead_of_use_and_no_further() -> None:
    sent = 0

    def source() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        nonlocal sent
        while sent < 9:
            sent += 1
            yield torch.zeros(1), torch.zeros(1)

    passing = iter(to_device(source(), "cpu", ahead=2))
    for received in range(1, 10):
        next(passing)
        assert sent == min(9, received + 2)
    assert next(passing, None) is None


def test_a_pass_that_ends_early_leaves_no_thread(dataset: SegDataset) -> None:
    before = threading.active_count()
    for _ in dataset.loader(2).to("cpu"):
        break
    until = time.monotonic() + HANG
    while threading.active_count() > before and time.monotonic() < until:
        time.sleep(0.01)
    assert threading.active_count() <= before, "those of earlier tests may end, too"


def test_an_error_of_the_augmentation_reaches_the_user(dataset: SegDataset) -> None:
    def fail(images: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        next(iter(dataset.loader(2).to("cpu", augment=fail)))


@pytest.mark.parametrize("device", DEVICES)
def test_batches_of_pytorchs_loader_are_copied(dataset: SegDataset, device: str) -> None:
    stock: DataLoader[Any] = DataLoader(dataset, batch_size=4)
    for (images, labels), (theirs, their_labels) in zip(to_device(stock, device), stock, strict=True):
        assert images.cpu().equal(theirs)
        assert labels.cpu().equal(their_labels)


def test_other_parts_of_a_batch_are_kept() -> None:
    batch = [torch.zeros(1), torch.ones(1), torch.ones(2), ["a", "b"]]
    ((_, _, weights, names),) = to_device([batch], "cpu")
    assert weights.equal(torch.ones(2))
    assert names == ["a", "b"]


def test_impossible_options_are_refused(dataset: SegDataset) -> None:
    with pytest.raises(RequestError, match="floating-point"):
        dataset.loader(2).to("cpu", dtype=torch.uint8)
    with pytest.raises(RequestError, match="above 0"):
        dataset.loader(2).to("cpu", normalize=((0,), (0,)))
    with pytest.raises(RequestError, match="ahead=0"):
        dataset.loader(2).to("cpu", ahead=0)
    with pytest.raises(RequestError, match="images and labels"):
        next(iter(to_device([torch.zeros(1)], "cpu")))
