"""Loaders: batches have the right rows in order, are not overwritten while in use, and are resumed exactly."""

from __future__ import annotations

import gc
import json
import mmap
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import HANG, SMALL_SHARDS, RawFolder, examples, pack
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from readers import (
    CenterCrop,
    DamagedError,
    Loader,
    Order,
    RandomCrop,
    ReadError,
    RequestError,
    SegDataset,
    Window,
    open_dataset,
)
from readers import batch_memory as memory_module
from readers import loader as loader_module
from readers.batch_memory import BatchMemory
from readers.contract.classes import ClassTable, SegClass
from readers.crop import CropAndFlip
from readers.crop import crop as crop_tensor
from readers.epoch import Run
from readers.formats import page_cache, shard
from readers.huge_pages import map_memory
from readers.loader import as_tensor
from readers.windows import mirror

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")

Pair = tuple[torch.Tensor, torch.Tensor]
same_pack = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(10))


def stacked(dataset: SegDataset, rows: list[int]) -> Pair:
    """Return the expected batch of these rows."""
    samples = [dataset[row] for row in rows]
    return torch.stack([image for image, _ in samples]), torch.stack([label for _, label in samples])


def equal(ours: Any, theirs: Any) -> bool:
    return all(torch.equal(torch.as_tensor(a), torch.as_tensor(b)) for a, b in zip(ours, theirs, strict=True))


def all_rows(batches: Iterable[Any]) -> Pair:
    """Return a whole pass as one batch."""
    batches = [tuple(map(torch.clone, batch)) for batch in batches]
    return torch.cat([batch[0] for batch in batches]), torch.cat([batch[1] for batch in batches])


def in_batches(rows: list[int], size: int) -> list[list[int]]:
    return [rows[first : first + size] for first in range(0, len(rows), size)]


@pytest.mark.parametrize("form", ["onehot", "index"])
@pytest.mark.parametrize("shuffle", [False, True, "window", Window(3, 2)])
def test_batches_have_the_rows_in_order(packed: Path, packed_index: Path, form: Any, shuffle: Any) -> None:
    for out in (packed, packed_index):
        dataset = open_dataset(out, "val")
        wanted = open_dataset(out, "val", label=form)
        loader = dataset.loader(4, shuffle=shuffle, seed=5, labels=form, threads=2)
        for epoch in range(2):
            loader.set_epoch(epoch)
            rows = [row for batch in loader.order.coming().batches(4) for row in batch.rows.tolist()]
            batches = list(loader)
            assert sorted(rows) == list(range(9))
            assert len(loader) == len(batches) == 3
            for batch, part in zip(batches, in_batches(rows, 4), strict=True):
                assert equal(batch, stacked(wanted, part))


@pytest.mark.parametrize("split", ["train", "all"])
def test_numpy_output(packed_index: Path, split: str) -> None:
    dataset = open_dataset(packed_index, split)
    for (images, labels), batch in zip(dataset.loader(5, output="numpy"), dataset.loader(5), strict=True):
        assert type(images) is type(labels) is np.ndarray
        assert images.flags.writeable
        assert equal((images, labels), batch)


def test_native_rows_of_one_size_make_batches(native: Path) -> None:
    dataset = open_dataset(native, "val")
    (images, labels) = next(iter(dataset.loader(3)))
    assert equal((images, labels), stacked(dataset, [0, 1, 2]))
    assert [tuple(image.shape[2:]) for image, _ in dataset.loader(1)] == [dataset.size(row) for row in range(5)]
    with pytest.raises(RequestError, match=r"different sizes \(16x24, 7x100.*crop=\(H, W\)"):
        list(dataset.loader(4))


@pytest.mark.parametrize("form", ["onehot", "index"])
@pytest.mark.parametrize("crop", [(8, 16), (40, 5), RandomCrop((20, 20), pad=9), CenterCrop((9, 30), pad=7)])
def test_crops_are_the_windows_of_the_rows(native: Path, packed: Path, form: Any, crop: Any) -> None:
    for out, flip in ((native, False), (native, True), (packed, True)):
        dataset = open_dataset(out, "train", label=form)
        loader = dataset.loader(4, crop=crop, flip=flip, shuffle=True, seed=3)
        cut = CropAndFlip.of(crop, flip)
        assert cut is not None
        rows = list(Order(dataset, seed=3))
        got = all_rows(loader)
        windows = cut.windows(np.array(rows), [Run(3, 0, len(rows))], np.array([dataset.size(row) for row in rows]))
        for index, row in enumerate(rows):
            image, label = dataset[row]
            assert windows.size is not None
            lies = windows.starts[index], windows.size
            ignored = 0 if form == "onehot" else 255
            wanted = crop_tensor(image, *lies, windows.pad), crop_tensor(label, *lies, ignored)
            if windows.flips[index]:
                wanted = wanted[0].flip(-1), wanted[1].flip(-1)
            assert equal((got[0][index], got[1][index]), wanted)


def test_a_center_crop_is_that_of_the_transform(native: Path) -> None:
    crop = CenterCrop((11, 17), pad=3)
    dataset = open_dataset(native, "train", transform=crop)
    assert equal(all_rows(open_dataset(native, "train").loader(3, crop=crop)), stacked(dataset, list(range(11))))


def test_crops_depend_only_on_seed_epoch_and_row(native: Path) -> None:
    dataset = open_dataset(native, "all")
    options: dict[str, Any] = {"crop": (6, 6), "flip": True, "seed": 8}

    def by_row(loader: Loader, rows: list[int]) -> dict[int, bytes]:
        return {row: image.numpy().tobytes() for row, image in zip(rows, all_rows(loader)[0], strict=True)}

    whole = by_row(dataset.loader(5, **options), list(range(16)))
    shuffled = by_row(dataset.loader(3, shuffle=True, threads=1, **options), list(Order(dataset, seed=8)))
    odd = by_row(dataset.loader(2, rank=1, world_size=2, ahead=1, **options), list(range(1, 16, 2)))
    assert shuffled == whole
    assert odd.items() <= whole.items()
    later = dataset.loader(5, **options)
    later.set_epoch(1)
    assert sum(part != whole[row] for row, part in by_row(later, list(range(16))).items()) > 8


def test_crops_reach_every_position_equally_often() -> None:
    rows = np.arange(20_000)
    sizes = np.broadcast_to([10, 6], (20_000, 2))
    cut = CropAndFlip.of((7, 8), flip=True)
    assert cut is not None
    windows = cut.windows(rows, [Run(1, 2, 20_000)], sizes)
    starts = np.column_stack([windows.starts, windows.flips])
    found, counts = np.unique(starts, axis=0, return_counts=True)
    assert found.tolist() == [[top, left, flip] for top in range(4) for left in (-2, -1, 0) for flip in (0, 1)]
    freedom, expected = len(counts) - 1, 20_000 / len(counts)
    assert (((counts - expected) ** 2 / expected).sum() - freedom) / (2 * freedom) ** 0.5 < 4


@given(st.integers(1, 5), st.integers(1, 40), st.sampled_from(["|u1", "<u2", "<f4"]), st.booleans())
def test_mirror_reverses_the_last_axis(height: int, width: int, dtype: str, window: bool) -> None:
    pixels = np.arange(2 * height * (width + 1)).reshape(2, height, width + 1).astype(dtype)
    part = pixels[..., :-1] if window else pixels
    wanted = part[..., ::-1].copy()
    mirror(part)
    assert np.array_equal(part, wanted)


@same_pack
@given(st.integers(1, 9), st.integers(1, 4), st.booleans(), st.booleans())
def test_ranks_get_equally_many_batches_and_share_the_rows(
    packed_index: Path, size: int, world_size: int, drop_last: bool, shuffle: bool
) -> None:
    dataset = open_dataset(packed_index, "train")
    loaders = [
        dataset.loader(size, shuffle=shuffle, seed=2, rank=rank, world_size=world_size, drop_last=drop_last, pad=True)
        for rank in range(world_size)
    ]
    passes = [list(loader) for loader in loaders]
    assert {len(rows) for rows in passes} == {len(loaders[0])}
    whole = list(Order(dataset, shuffle=shuffle, seed=2))
    for rank, batches in enumerate(passes):
        rows = (whole * (world_size + 1))[rank : 23 + (-23 % world_size) : world_size]
        wanted = in_batches(rows, size)[: 23 // (size * world_size) if drop_last else None]
        for batch, part in zip(batches, wanted, strict=True):
            assert equal(batch, stacked(dataset, part))
    assert {loader.padding for loader in loaders} == {0 if drop_last else -23 % world_size}


@same_pack
@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(0, 3)), min_size=1, max_size=4), st.booleans()
)
def test_resuming_is_exact_twice_in_a_row_and_with_other_ranks_and_batches(
    packed_index: Path, stops: list[tuple[int, int, int]], shuffle: bool
) -> None:
    """Each stop is a run with a batch size, a number of ranks and a number of steps."""
    dataset = open_dataset(packed_index, "train")
    options: dict[str, Any] = {"shuffle": shuffle, "crop": (5, 7), "seed": 6, "pad": False}
    first = dataset.loader(4, **options)
    first.set_epoch(3)
    state = json.loads(json.dumps(first.state_dict()))
    whole = all_rows(first)
    received = 0
    for size, world_size, steps in stops:
        loaders = [dataset.loader(size, rank=rank, world_size=world_size, **options) for rank in range(world_size)]
        for loader in loaders:
            loader.load_state_dict(state)
            loader.set_epoch(3)
            assert loader.state_dict() == state
        passes = [iter(loader) for loader in loaders]
        for _ in range(min(steps, (23 - received) // (size * world_size))):
            for rank, batches in enumerate(passes):
                mine = slice(received + rank, received + size * world_size, world_size)
                assert equal(next(batches), (whole[0][mine], whole[1][mine]))
            received += size * world_size
        (state,) = {json.dumps(loader.state_dict()) for loader in loaders}
        state = json.loads(state)
        assert state["consumed"] == received
    last = dataset.loader(4, **options)
    last.load_state_dict(state)
    last.set_epoch(3)
    if received == 23:
        assert list(last) == []
    else:
        assert equal(all_rows(last), (whole[0][received:], whole[1][received:]))
    assert (last.state_dict()["epoch"], last.state_dict()["consumed"]) == (3, 23)


def test_the_state_counts_received_batches_and_not_those_read_ahead(packed: Path) -> None:
    loader = open_dataset(packed, "train").loader(2, shuffle=True, ahead=5)
    batches = iter(loader)
    assert loader.state_dict()["consumed"] == 0
    next(batches)
    time.sleep(0.05)
    assert loader.state_dict()["consumed"] == 2
    assert len(list(batches)) == 11
    assert loader.state_dict()["consumed"] == 23


def test_batches_in_use_are_never_written_again(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep whole batches, single rows and arrays of them, and delete others, while passes go on."""
    monkeypatch.setattr(memory_module, "SMALL", 0)
    dataset = open_dataset(packed, "train")
    loader = dataset.loader(2, shuffle=True, threads=2)
    held: list[tuple[Any, bytes]] = []
    for epoch in range(12):
        loader.set_epoch(epoch)
        for number, (images, labels) in enumerate(loader):
            parts = (images, labels[-1], images.numpy()[0], labels[:, 1], memoryview(images.numpy()))
            part: Any = parts[number % len(parts)]
            held.append((part, np.asarray(part).tobytes()))
        del held[epoch % 3 :: 3]
    assert len(held) > 10
    assert all(np.asarray(part).tobytes() == data for part, data in held)


def test_memory_of_deleted_batches_is_used_again(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_module, "SMALL", 0)
    dataset = open_dataset(packed, "train")
    for output in ("torch", "numpy"):
        loader = dataset.loader(2, ahead=2, output=output)
        addresses = set()
        for epoch in range(20):
            loader.set_epoch(epoch)
            for images, _ in loader:
                addresses.add(images.__array__().__array_interface__["data"][0])
        assert len(addresses) <= 16, "of 240 batches; four at a time, and some more where threads ask together"


def test_a_new_loader_uses_the_memory_of_the_last(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_module, "SMALL", 0)
    mapped: list[int] = []

    def counted(size: int) -> mmap.mmap:
        mapped.append(size)
        return map_memory(size)

    monkeypatch.setattr(memory_module, "map_memory", counted)
    dataset = open_dataset(packed, "train")
    for _ in range(20):
        assert sum(len(images) for images, _ in dataset.loader(2, ahead=2, shuffle=True)) == len(dataset)
    assert 0 < len(mapped) <= 32, "two fields of 16 batches, of 240"


def test_idle_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_module, "SMALL", 0)
    slots = BatchMemory(keep=2)
    many = [slots.lease((10, 3), "<u2") for _ in range(6)]
    many[3][...] = 7
    assert all(not np.shares_memory(a, b) for a in many for b in many if a is not b)
    kept = many[3][2:].view("|u1")
    del many
    gc.collect()
    assert len(slots._idle) == 2
    again = [slots.lease((60,), "|u1") for _ in range(3)]
    for array in again:
        array[...] = 1
    assert set(kept.flatten().tolist()) == {7, 0}
    del kept, again
    gc.collect()
    large = slots.lease((5 << 20,), "|u1")
    assert large.ctypes.data % 4096 == 0
    assert large.size == 5 << 20


@pytest.fixture(scope="module")
def city(raw_folder: RawFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`raw_folder` in one format: the end of threads and programs does not depend on the format."""
    return pack(raw_folder.path, tmp_path_factory.mktemp("city") / "npy", "--format", "npy", *SMALL_SHARDS)


def loader_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("segpack-loader")]


def no_more_threads_than(before: list[threading.Thread]) -> bool:
    """Wait until threads have ended, which read their batch to the end. A failed test may keep some alive."""
    limit = time.monotonic() + HANG
    while set(loader_threads()) - set(before) and time.monotonic() < limit:
        time.sleep(0.01)
    return not set(loader_threads()) - set(before)


def leave(batches: Iterator[Any]) -> None:
    for _ in batches:
        break


def finish(batches: Iterator[Any]) -> None:
    list(batches)


def forget(batches: Iterator[Any]) -> None:
    next(batches)
    ring: list[Any] = [batches]
    ring.append(ring)


@pytest.mark.parametrize("how", [leave, finish, forget])
def test_no_thread_is_left(city: Path, how: Callable[[Iterator[Any]], None]) -> None:
    loader = open_dataset(city, "train").loader(2, threads=2)
    before = loader_threads()
    batches = iter(loader)
    first = next(batches)
    started = set(loader_threads()) - set(before)
    assert 1 <= len(started) <= 2
    assert not any(thread.daemon for thread in started)
    how(batches)
    del batches, first
    gc.collect()
    assert no_more_threads_than(before)


def test_the_number_of_batches_read_ahead_is_limited(city: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = open_dataset(city, "train").loader(1, ahead=4, threads=2)
    gathered: list[int] = []
    gather = loader._read

    def counted(rows: Any) -> Any:
        gathered.append(1)
        return gather(rows)

    monkeypatch.setattr(loader, "_read", counted)
    batches = iter(loader)
    for number in range(1, 10):
        next(batches)
        time.sleep(0.02)
        assert len(gathered) <= number + 4
    assert len(gathered) > 9


def test_an_error_in_a_thread_reaches_the_caller_and_names_the_file(packed: Path, tmp_path: Path) -> None:
    out = shutil.copytree(packed, tmp_path / "out")
    loader = open_dataset(out, "train").loader(2, threads=2)
    victims = [path for path in (out / "shards").glob("train-*") if not path.name.endswith(".json")]
    for path in victims:
        os.truncate(path, 3000)
    before = loader_threads()
    with pytest.raises(DamagedError, match=r"shards/train-") as caught:
        list(loader)
    assert any(str(path) in str(caught.value) for path in victims)
    assert no_more_threads_than(before)


ENDINGS = {
    "the end of the program": "",
    "Ctrl-C": "import signal, time; signal.signal(signal.SIGINT, signal.default_int_handler); "  # a job may ignore it
    "signal.raise_signal(signal.SIGINT); time.sleep(600)",
    "an error": "raise ValueError('a model that does not learn')",
}


@pytest.mark.long(short=lambda case: case["ending"] != "an error")
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_program_ends_in_the_middle_of_a_pass(city: Path, ending: str) -> None:
    program = f"""
import builtins, sys
builtins.kept = sys.modules["__main__"]  # dill does so, and PyTorch imports it where it is installed
from readers import open_dataset
batches = iter(open_dataset(sys.argv[1], "train").loader(1, threads=2))
next(batches)
print("begun", flush=True)
{ENDINGS[ending]}
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(city)], capture_output=True, text=True, check=False, timeout=HANG
    )
    assert done.stdout == "begun\n"
    words = {"the end of the program": "", "Ctrl-C": "KeyboardInterrupt", "an error": "does not learn"}[ending]
    assert words in done.stderr
    assert "Exception ignored" not in done.stderr
    assert done.returncode == {"the end of the program": 0, "Ctrl-C": -signal.SIGINT, "an error": 1}[ending]


def in_a_fork(loader: Loader, batches: Iterator[Any], wanted: list[bytes], results: Any) -> None:
    """Run without operations of torch, whose threads do not survive any fork."""
    try:
        next(batches)
        results.put("went on")
    except ReadError as error:
        results.put(str(error))
    results.put([images.tobytes() for images, _ in loader] == wanted)


def test_a_forked_process_starts_its_own_pass(city: Path) -> None:
    loader = open_dataset(city, "train").loader(3, output="numpy")
    wanted = [images.tobytes() for images, _ in loader]
    loader.set_epoch(0)
    batches = iter(loader)
    next(batches)
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    child = context.Process(target=in_a_fork, args=(loader, batches, wanted, results))
    child.start()
    assert "cannot go on in a forked process" in results.get(timeout=HANG)
    assert results.get(timeout=HANG) is True
    child.join(HANG)
    assert child.exitcode == 0
    assert len(list(batches)) == 7


def test_rows_are_prefetched_and_dropped_after_use(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check only the requests to the kernel: they cover each row before it is read. It may ignore them."""
    out = shutil.copytree(packed, tmp_path / "out")
    dataset = open_dataset(out, "train")
    wanted = all_rows(dataset.loader(4))
    calls: list[tuple[int, int, int]] = []
    libc = page_cache._libc()

    class Libc:
        def mincore(self, page: int, size: int, flags: Any) -> int:
            return -1

        def madvise(self, page: int, size: int, advice: int) -> int:
            calls.append((page, size, advice))
            return int(libc.madvise(page, size, advice))

    monkeypatch.setattr(page_cache, "_libc", Libc)
    monkeypatch.setattr(loader_module, "PREFETCH_ROW_BYTES", 0)

    def asked(advice: int) -> int:
        return sum(size for _, size, kind in calls if kind == advice)

    batches = iter(dataset.loader(4, ahead=1, drop_behind=True))
    received = [next(batches) for _ in range(3)]
    deadline = time.monotonic() + HANG
    while not asked(3) and time.monotonic() < deadline:  # a thread asks, and what it has not begun ends with the pass
        time.sleep(0.01)
    assert equal(all_rows([*received, *batches]), wanted)
    for advice, rows in ((3, 23 - 2 * 4), (4, 23)):
        assert asked(advice) >= rows * (3 + 4) * 24 * 36
        assert all(page % 4096 == 0 for page, _, kind in calls if kind == advice)


def test_only_rows_that_are_not_in_memory_are_prefetched(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = open_dataset(shutil.copytree(packed, tmp_path / "out"), "train")
    shard = max(map(dataset._pack.shard, range(len(dataset._pack.table))), key=lambda shard: shard.facts.rows)
    rows, fields = list(range(shard.facts.rows)), dataset._pack.manifest.fields
    states = [row % 2 for row in rows]
    answers, asked = iter([*states, *[1] * len(rows)]), list[tuple[int, int]]()

    class Libc:
        def mincore(self, page: int, size: int, flags: Any) -> int:
            flags[0] = next(answers)
            return 0

        def madvise(self, page: int, size: int, advice: int) -> int:
            asked.append((page, page + size))
            return 0

    monkeypatch.setattr(page_cache, "_libc", Libc)
    monkeypatch.setattr(page_cache, "_reports_memory", lambda path: True)
    shard.prefetch(fields, rows)
    wanted = []
    for field in fields:
        column = shard._columns[field.name]
        mapped = shard._map(column.path)
        assert mapped is not None
        base = mapped.__array_interface__["data"][0]
        spans = shard._spans(column, [row for row, there in zip(rows, states, strict=True) if not there])
        wanted += [((base + start) & -4096, base + stop) for start, stop in spans]
    assert 2 <= len(wanted) < 2 * len(rows)
    assert asked == wanted
    asked.clear()
    shard.prefetch(fields, rows)
    assert asked == []


def test_the_kernel_reports_only_to_the_owner_which_pages_are_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x")
    assert page_cache._reports_memory(path)


def test_a_transform_and_impossible_options_are_refused(packed: Path) -> None:
    dataset = open_dataset(packed, "train")
    for options in (
        {"batch_size": 0},
        {"batch_size": 2, "threads": 0},
        {"batch_size": 2, "ahead": 0},
        {"batch_size": 2, "crop": (0, 3)},
        {"batch_size": 2, "crop": lambda: 3},
        {"batch_size": 2, "rank": 1},
        {"batch_size": 2, "labels": "planes"},
        {"batch_size": 2, "output": "jax"},
    ):
        with pytest.raises((RequestError, TypeError)):
            dataset.loader(**options)
    cropped = open_dataset(packed, "train", transform=RandomCrop((2, 2)))
    with pytest.raises(RequestError, match="crop with crop="):
        cropped.loader(2)


def test_small_rows_copied_together_are_the_same_as_one_by_one(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = all_rows(open_dataset(packed, "all").loader(7))
    monkeypatch.setattr(shard, "SMALL", 0)
    assert equal(all_rows(open_dataset(packed, "all").loader(7)), wanted)


def test_samples_in_use_do_not_change(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_module, "SMALL", 0)
    dataset = open_dataset(packed, "train")
    held = [dataset[row][part][0] for row in range(23) for part in (0, 1)]
    copies = [sample.clone() for sample in held]
    for row in range(23):
        dataset[row][0].zero_()
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(held, copies, strict=True))


def test_pytorchs_loader_makes_no_second_copy(packed: Path) -> None:
    dataset = open_dataset(packed, "val")
    loader: DataLoader[Any] = DataLoader(dataset, batch_size=4)
    for batch, rows in zip(loader, in_batches(list(range(9)), 4), strict=True):
        assert equal(batch, stacked(dataset, rows))
    samples = dataset.__getitems__([3, 1])
    whole = torch.utils.data.default_collate(samples)  # type: ignore[arg-type]
    assert whole[0].data_ptr() == samples[0][0].data_ptr()
    assert equal(torch.utils.data.default_collate(list(samples[::-1])), stacked(dataset, [1, 3]))
    assert equal(torch.utils.data.default_collate([dataset[2], dataset[0]]), stacked(dataset, [2, 0]))


def test_pinned_memory_stays_in_the_storage_of_pytorch() -> None:
    """PyTorch waits for running copies to the GPU before it uses the memory of a pinned tensor again."""
    tensor = torch.zeros(4, dtype=torch.uint8)
    again = as_tensor(tensor.numpy())
    assert again.untyped_storage()._cdata == tensor.untyped_storage()._cdata
    assert again.equal(tensor)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_batches_are_pinned_on_a_machine_with_a_gpu(packed: Path) -> None:
    dataset = open_dataset(packed, "train")
    wanted = all_rows(dataset.loader(3, pin_memory=False))
    for _ in range(5):
        loader = dataset.loader(3)
        batches = [
            (images.is_pinned(), images.cuda(non_blocking=True), labels.cuda(non_blocking=True))
            for images, labels in loader
        ]
        assert all(pinned for pinned, _, _ in batches)
        got = torch.cat([images.cpu() for _, images, _ in batches]), torch.cat([labels.cpu() for *_, labels in batches])
        assert equal(got, wanted)


def test_reprs_are_short_and_say_what_is_delivered(packed_index: Path) -> None:
    dataset = open_dataset(packed_index, "train")
    rows, classes = len(dataset), len(dataset.classes)
    lines = repr(dataset).splitlines()
    assert lines[0] == type(dataset).__name__
    assert lines[2] == f"    split    train, {rows} rows"
    assert lines[5].startswith(f"    classes  {classes}: sky, ")
    assert len(lines) == 8
    height, width = dataset.size(0)
    loader = dataset.loader(2, shuffle=True, labels="onehot", rank=1, world_size=2)
    assert repr(loader) == (
        f"Loader({len(loader)} batches of 2, image uint8 (3, {height}, {width}), "
        f"label uint8 ({classes}, {height}, {width}), shuffle=True, epoch 0, rank 1 of 2)"
    )
    many = ClassTable(tuple(SegClass(f"class\x1b{number}") for number in range(300)))
    names = ", ".join(rf"'class\x1b{number}'" for number in range(6))
    assert repr(many) == f"ClassTable(300 classes: {names}, … 294 more; ignore_index=65535)"
    assert repr(ClassTable((SegClass("sky"),))) == "ClassTable(1 class: 'sky'; ignore_index=255)"
