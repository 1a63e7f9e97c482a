"""The laws of every format: all pixels come back, in order, from any process, and never as a view of a file."""

from __future__ import annotations

import gc
import multiprocessing
import pickle
import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import HANG, SMALL_SHARDS, RawFolder, make_raw, pack, run, write_png
from torch.utils.data import DataLoader

import readers
from packer.workers.fork_server import start_fork_server
from readers import RequestError, SegDataset, open_dataset
from readers.by_format import DATASETS

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")


def expected(raw: RawFolder, split: str) -> list[tuple[str, np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """Return key, image (3,H,W) and index (H,W) of every sample of a split, in key order."""
    keys = sorted(key for known, key in raw.images if known == split)
    return [(key, raw.images[split, key].transpose(2, 0, 1), raw.labels[split, key]) for key in keys]


def test_every_pixel_comes_back_in_key_order(packed: Path, raw_folder: RawFolder) -> None:
    for split in ("train", "val"):
        onehot, index = open_dataset(packed, split=split), open_dataset(packed, split=split, label="index")
        wanted = expected(raw_folder, split)
        assert len(onehot) == len(wanted)
        assert onehot.manifest.splits[0].shards >= 3, "else this suite does not see the ends of shards"
        for row, (key, image, classes) in enumerate(wanted):
            assert onehot.key(row) == key
            assert onehot[row][0].dtype == torch.uint8
            assert np.array_equal(onehot[row][0].numpy(), image)
            assert np.array_equal(index[row][1].numpy(), classes)
            assert np.array_equal(onehot[row][1].numpy(), np.arange(4)[:, None, None] == classes)


def test_files_are_closed_with_the_data_set(packed: Path) -> None:
    """A reference cycle would keep them open until Python collects garbage."""

    def open_files() -> int:
        mapped = Path("/proc/self/maps").read_text().count(str(packed))  # NumPy 2.5 keeps a map without its descriptor
        return mapped + len(list(Path("/proc/self/fd").iterdir()))

    gc.disable()
    try:
        before = open_files()
        dataset = open_dataset(packed, split="train")
        assert dataset[0] is not None
        assert open_files() > before
        del dataset
        assert open_files() == before
    finally:
        gc.enable()


def test_both_label_forms_hold_the_same_labels(packed: Path, packed_index: Path) -> None:
    for form in ("onehot", "index"):
        for ours, theirs in zip(
            open_dataset(packed, "all", label=form), open_dataset(packed_index, "all", label=form), strict=True
        ):
            assert torch.equal(ours[0], theirs[0])
            assert ours[1].dtype == theirs[1].dtype
            assert torch.equal(ours[1], theirs[1])


def test_the_stored_label_form_is_the_default(packed: Path, packed_index: Path) -> None:
    assert open_dataset(packed, "train")[0][1].shape == (4, 24, 36)
    assert open_dataset(packed_index, "train")[0][1].shape == (24, 36)


def test_many_samples_at_once_are_the_same_as_one_by_one(packed: Path) -> None:
    dataset = open_dataset(packed, split="all")
    order = random.Random(0).choices(range(len(dataset)), k=50)
    for sample, row in zip(dataset.__getitems__(order), order, strict=True):
        assert all(torch.equal(ours, theirs) for ours, theirs in zip(sample, dataset[row], strict=True))


def test_slices_and_negative_indices_count_as_in_a_list(packed: Path) -> None:
    dataset = open_dataset(packed, split="train")
    assert torch.equal(dataset[-1][0], dataset[len(dataset) - 1][0])
    assert torch.equal(dataset[-len(dataset)][0], dataset[0][0])
    assert [bool(torch.equal(a[0], dataset[b][0])) for a, b in zip(dataset[7:1:-2], (7, 5, 3), strict=True)] == [
        True
    ] * 3
    assert dataset[len(dataset) :] == []


@pytest.mark.parametrize("index", [23, -24, 10**12])
def test_an_index_outside_is_an_index_error(packed: Path, index: int) -> None:
    dataset = open_dataset(packed, split="train")
    with pytest.raises(IndexError, match=rf"index {index} is out of range for 23 samples"):
        dataset[index]
    with pytest.raises(IndexError):
        dataset.__getitems__([0, index])
    with pytest.raises(IndexError):
        dataset.key(index)


def test_an_index_that_is_not_a_number_is_a_type_error(packed: Path) -> None:
    with pytest.raises(TypeError):
        open_dataset(packed, split="train")["street_001"]  # type: ignore[index]


def test_numbers_of_numpy_and_torch_are_indices(packed: Path) -> None:
    dataset = open_dataset(packed, split="train")
    assert torch.equal(dataset[np.int64(5)][0], dataset[5][0])  # type: ignore[index]
    assert torch.equal(dataset[torch.tensor(5)][0], dataset[5][0])  # type: ignore[index]


def test_writing_into_a_sample_never_reaches_the_file(packed: Path) -> None:
    before = {path: path.read_bytes() for path in packed.rglob("*") if path.is_file()}
    dataset = open_dataset(packed, split="train")
    kept = dataset[3]
    copy = [part.clone() for part in kept]
    for part in dataset[3]:
        part.zero_()
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(dataset[3], copy, strict=True))
    del dataset
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(kept, copy, strict=True)), "a view outlived its map"
    assert all(path.read_bytes() == data for path, data in before.items())


def test_a_pickle_is_small_and_reads_the_same(packed: Path) -> None:
    dataset = open_dataset(packed, split="val", label="index")
    first = dataset[0]
    data = pickle.dumps(dataset)
    again = pickle.loads(data)  # noqa: S301 - our own
    assert len(data) < 10_000
    assert type(again) is type(dataset)
    assert (len(again), again.label, again.split) == (9, "index", "val")
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(again[0], first, strict=True))


@pytest.mark.long(short=lambda case: case["method"] == "fork" or (case["method"], case["storage"]) == ("spawn", "lmdb"))
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_every_kind_deliver_every_sample_once(packed: Path, raw_folder: RawFolder, method: str) -> None:
    if method == "forkserver":
        start_fork_server()  # the server of PyTorch has no preload, and later builds of this process would use it
    dataset = open_dataset(packed, split="train", label="index")
    dataset[0]  # a fork must not share what is open here
    loader: DataLoader[Any] = DataLoader(
        dataset, batch_size=4, shuffle=True, num_workers=2, persistent_workers=True, multiprocessing_context=method
    )
    wanted = sorted(image.tobytes() + index.tobytes() for _, image, index in expected(raw_folder, "train"))
    for _ in range(2):
        got = [
            image.numpy().tobytes() + label.numpy().tobytes()
            for images, labels in loader
            for image, label in zip(images, labels, strict=True)
        ]
        assert sorted(got) == wanted


def test_a_fork_while_a_thread_reads_does_not_hang(packed: Path) -> None:
    dataset = open_dataset(packed, split="all")
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            dataset.__getitems__(range(len(dataset)))

    thread = threading.Thread(target=read)
    thread.start()
    try:
        context = multiprocessing.get_context("fork")
        for _ in range(5):
            child = context.Process(target=dataset.__getitem__, args=(4,))
            child.start()
            child.join(HANG)
            assert child.exitcode == 0
    finally:
        stop.set()
        thread.join()


def test_threads_share_a_dataset(packed: Path) -> None:
    dataset = open_dataset(packed, split="all")
    wanted = [dataset[row][0].clone() for row in range(len(dataset))]
    wrong: list[int] = []

    def read(seed: int) -> None:
        for row in random.Random(seed).choices(range(len(wanted)), k=100):
            if not torch.equal(dataset[row][0], wanted[row]):
                wrong.append(row)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def flip(image: torch.Tensor, label: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, str]:
    return image.flip(-1), label.flip(-1), "flipped"


def test_a_transform_gets_image_and_label_and_its_result_is_the_sample(packed: Path) -> None:
    plain, flipped = open_dataset(packed, "train"), open_dataset(packed, "train", transform=flip)
    image, label, word = flipped[2]
    assert word == "flipped"
    assert torch.equal(image.flip(-1), plain[2][0])
    assert torch.equal(label.flip(-1), plain[2][1])
    assert flipped.__getitems__([2])[0][2] == "flipped"


def test_the_class_of_another_format_names_the_right_class(packed: Path, storage: str) -> None:
    right = DATASETS[storage]
    assert isinstance(open_dataset(packed, "train"), right)
    assert len(getattr(readers, right.__name__)(str(packed), split="train")) == 23
    for name, wrong in DATASETS.items():
        if name != storage:
            with pytest.raises(RequestError, match=rf"stored as {storage}, not {name}; use {right.__name__}"):
                wrong(packed, split="train")


def test_a_missing_split_names_all_splits(packed: Path) -> None:
    with pytest.raises(RequestError, match="'train', 'val', 'all'"):
        open_dataset(packed)
    with pytest.raises(RequestError, match=r"no split 'test'.*'train', 'val', 'all'"):
        open_dataset(packed, split="test")
    assert len(open_dataset(packed, split="all")) == 32


def test_an_unknown_label_form_is_refused(packed: Path) -> None:
    with pytest.raises(RequestError, match=r"delivered as .index. or .onehot."):
        open_dataset(packed, split="train", label="rgb")  # type: ignore[arg-type]


def test_classes_are_named_in_order(packed: Path) -> None:
    classes = open_dataset(packed, split="train").classes
    assert classes.names == ("sky", "road", "car", "person")
    assert classes.classes[3].colour == (220, 20, 60)
    assert classes.ignore_index == 255


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_float_images_are_scaled_to_one(storage: str, raw_folder: RawFolder, tmp_path: Path, dtype: str) -> None:
    out = pack(raw_folder.path, tmp_path / "out", "--format", storage, "--image-dtype", dtype, *SMALL_SHARDS)
    dataset = open_dataset(out, split="val")
    for row, (_, image, _) in enumerate(expected(raw_folder, "val")):
        wanted = (image.astype(np.float32) / 255).astype(dtype)
        assert dataset[row][0].dtype == getattr(torch, dtype)
        assert np.array_equal(dataset[row][0].numpy(), wanted)


@pytest.mark.parametrize("labels", ["onehot", "index"])
def test_more_classes_than_fit_into_a_byte(storage: str, tmp_path: Path, labels: str) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 2})
    wide = np.arange(24 * 36, dtype=np.uint16).reshape(24, 36) % 300
    for path in (raw.path / "train" / "masks").iterdir():
        write_png(path, wide)
    out = pack(raw.path, tmp_path / "out", "--format", storage, "--labels", labels, "--classes", 300, "--ignore", 299)
    dataset = open_dataset(out, label="index")
    wanted = np.where(wide == 299, 65_535, wide)
    assert dataset[1][1].dtype == torch.uint16
    assert np.array_equal(dataset[1][1].numpy(), wanted)
    planes = open_dataset(out, label="onehot")[1][1].numpy()
    assert planes.shape == (299, 24, 36)
    assert np.array_equal(planes.sum(0), wide != 299)
    (images, indices) = next(iter(DataLoader(dataset, batch_size=2)))
    assert (images.shape, indices.dtype) == ((2, 3, 24, 36), torch.uint16)


def test_pictures_of_one_pixel_and_data_sets_of_one_sample(storage: str, tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 1}, height=1, width=1)
    dataset = open_dataset(pack(raw.path, tmp_path / "out", "--format", storage))
    assert len(dataset) == 1
    assert np.array_equal(dataset[0][0].numpy().reshape(3), raw.images["train", "street_000"].reshape(3))
    assert dataset[0][1].shape == (4, 1, 1)


def test_a_running_reader_keeps_its_generation(storage: str, tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 6})
    out = pack(raw.path, tmp_path / "out", "--format", storage, *SMALL_SHARDS)
    old = open_dataset(out)
    assert old.manifest.generation == 1
    make_raw(tmp_path / "raw", {"train": 8})
    pack(raw.path, out, "--format", storage, *SMALL_SHARDS)
    assert (len(old), len(open_dataset(out))) == (6, 8)
    assert open_dataset(out).manifest.generation == 2
    copy: SegDataset = pickle.loads(pickle.dumps(old))  # noqa: S301 - our own
    assert len(copy) == 6
    assert torch.equal(copy[5][0], old[5][0])
    assert run("verify", "--quiet", out).exit_code == 0


def test_a_folder_without_a_pack_is_refused_with_the_command_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(readers.NoPackError, match="packer build"):
        open_dataset(tmp_path)


def test_keys_of_any_width_come_back(storage: str, tmp_path: Path) -> None:
    """In key order the lengths of the names go up and down: 10, 100, 11, …, 9."""
    raw = make_raw(tmp_path / "raw", {"train": 1}, height=2, width=2)
    for kind in ("images", "masks"):
        first = raw.path / "train" / kind / "street_000.png"
        for number in range(120):
            (first.parent / f"{number}.png").hardlink_to(first)
    dataset = open_dataset(pack(raw.path, tmp_path / "out", "--format", storage))
    names = sorted([*map(str, range(120)), "street_000"])
    assert [dataset.key(row) for row in range(len(dataset))] == names
