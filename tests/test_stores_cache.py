"""A cache: whole verified shards of a pack that lies elsewhere, within a byte budget, shared by processes."""

from __future__ import annotations

import gc
import os
import pickle
import re
import resource
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from bench import remote as server_of_bench
from conftest import HANG, REPO, make_raw, pack, run
from drills.cache import bytes_in, drill
from faulty_proxy import BUSY, CUT, ERROR, times
from scenes.tiny import SHARDS as SMALL_SHARDS
from store_servers import proxy, rclone, upload, use_server
from test_packs_verify import flip
from torch.utils.data import DataLoader

import readers.location
import readers.stores.ahead
import readers.stores.cache
from readers import DamagedError, NoPackError, ReadError, RequestError, SegDataset, Window, open_dataset
from readers.contract.atomic import PARTIAL
from readers.contract.errors import StoreBusyError, StoreError
from readers.contract.manifest import Manifest
from readers.stores.ahead import THREADS, Ahead
from readers.stores.cache import open_cache
from readers.stores.evict import Budget, CacheFullError
from readers.stores.folder_store import FolderStore
from readers.stores.locks import ReadLock, if_unused, only_owner

URL = "fake://bucket/out"


class Remote(FolderStore):
    """A folder that looks like a bucket, counts what is asked of it, and can fail."""

    url = URL

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.asked: Counter[str] = Counter()
        self.fault: Callable[[str, Callable[[memoryview], object]], None] = lambda name, write: None

    def list(self, folder: str) -> Iterator[Any]:
        raise AssertionError(f"{folder} was listed")

    def fetch(self, name: str, write: Callable[[memoryview], object]) -> None:
        self.asked[name] += 1
        self.fault(name, write)
        super().fetch(name, write)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack of many small shards."""
    folder = tmp_path_factory.mktemp("cached")
    make_raw(folder / "raw", {"train": 40, "val": 4})
    return pack(folder / "raw", folder / "out", *SMALL_SHARDS)


@pytest.fixture
def remote(out: Path, monkeypatch: pytest.MonkeyPatch) -> Remote:
    store = Remote(out)
    monkeypatch.setattr(readers.location, "open_store", lambda url: store)
    return store


@pytest.fixture
def own_remote(out: Path, tmp_path: Path, remote: Remote) -> Remote:
    """A bucket that a test may damage."""
    remote.root = shutil.copytree(out, tmp_path / "bucket")
    return remote


def cached(target: Path, size: int | str = "1GB", root: str | Path = URL, **options: Any) -> SegDataset:
    return open_dataset(root, "train", cache=target, cache_bytes=size, **options)


def rows(dataset: SegDataset) -> list[bytes]:
    return [image.numpy().tobytes() + label.numpy().tobytes() for image, label in dataset]


def files(target: Path) -> list[Path]:
    return [path for path in target.glob("segpack-*/.cache/packs/*/*/**/*") if path.is_file()]


# --- reading ---


def test_rows_of_every_format_are_those_of_the_pack(packed: Path, tmp_path: Path) -> None:
    near, far = cached(tmp_path / "cache", root=packed), open_dataset(packed, "train")
    assert type(near) is type(far)
    assert rows(near) == rows(far)
    for mine, theirs in zip(near.loader(4, shuffle=True), far.loader(4, shuffle=True), strict=True):
        assert all(torch.equal(a, b) for a, b in zip(mine, theirs, strict=True))
    assert type(far)(packed, "train", cache=tmp_path / "cache").root == near.root


def test_nothing_is_listed_and_each_object_comes_once(out: Path, remote: Remote, tmp_path: Path) -> None:
    expected = rows(open_dataset(out, "train"))
    dataset = cached(tmp_path)
    assert set(remote.asked) == {"manifest.json", f"generations/shards-{dataset.manifest.table[:32]}.npy"}
    assert rows(dataset) == expected
    assert {*remote.asked.values()} == {1}
    fetched = Counter(remote.asked)
    assert rows(cached(tmp_path)) == expected
    assert remote.asked - fetched == Counter({"manifest.json": 1})
    again = pickle.loads(pickle.dumps(dataset))  # noqa: S301 - our own
    assert rows(again) == expected
    assert remote.asked["manifest.json"] == 2, "the cache has the manifest of this generation"


def test_a_batch_waits_only_for_its_own_shards(remote: Remote, tmp_path: Path) -> None:
    dataset = cached(tmp_path)
    go_on = threading.Event()
    first = {dataset._pack.stem(dataset._pack.table.locate(row)[0]).name for row in range(4)}

    def only_first(name: str, write: object) -> None:
        if name.startswith("shards/") and name.split("/")[1].split(".")[0] not in first:
            assert go_on.wait(HANG)

    remote.fault = only_first
    batches = iter(dataset.loader(4))
    next(batches)
    go_on.set()
    assert len(list(batches)) == 9
    assert {*remote.asked.values()} == {1}


def test_an_earlier_generation_is_read_by_its_number(own_remote: Remote, tmp_path: Path) -> None:
    assert cached(tmp_path / "cache", generation=1).manifest == Manifest.load(own_remote.root)
    assert open_dataset(own_remote.root, "train", generation=1).manifest.generation == 1
    with pytest.raises(NoPackError, match=r"fake://bucket/out: generation 7 is not kept here"):
        cached(tmp_path / "cache", generation=7)


def test_a_staged_copy_is_read_before_the_cache(
    out: Path, remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "disk").mkdir()
    monkeypatch.setenv("SEGPACK_STAGED", str(tmp_path / "disk"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert run("stage", "--quiet", out, tmp_path / "disk").exit_code == 0
    assert ".cache" not in cached(tmp_path / "disk").root.parts
    assert cached(tmp_path / "disk", staged=False).root.parts[-3] == ".cache"


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_a_data_loader_fetch(out: Path, tmp_path: Path, method: str) -> None:
    """A forked worker has a process of its own that fetches, because clients of stores do not work there."""
    dataset = cached(tmp_path, root=f"local://{out}")
    loader: DataLoader[Any] = DataLoader(dataset, batch_size=8, num_workers=1, multiprocessing_context=method)
    images = [image.numpy().tobytes() for batch, _ in loader for image in batch]
    assert images == [image.numpy().tobytes() for image, _ in open_dataset(out, "train")]


def test_threads_of_a_forked_worker_share_a_helper(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = cached(tmp_path)._pack.cached
    assert pack is not None
    both, asked = threading.Barrier(2, timeout=HANG), []

    class SlowHelper:
        def __init__(self, *arguments: object) -> None:
            both.wait()

        def shard(self, stem: str, digest: str) -> None:
            asked.append(self)
            both.wait()

    monkeypatch.setattr(readers.stores.cache, "Helper", SlowHelper)
    monkeypatch.setattr(pack, "_process", 0)
    with ThreadPoolExecutor(2) as pool:
        for failed in [pool.submit(pack.fetch, f"train-{'0' * 32}", "") for _ in range(2)]:
            assert isinstance(failed.exception(), FileNotFoundError), "nothing was fetched"
    assert len(asked) == 2
    assert asked[0] is asked[1]


def test_a_helper_reports_why_it_cannot_write(out: Path, tmp_path: Path) -> None:
    dataset = cached(tmp_path, root=f"local://{out}")
    pack = dataset._pack.cached
    assert pack is not None
    pack._process = 0  # as in a forked worker
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (256, limits[1]))
    try:
        with pytest.raises(
            ReadError, match=r"train-\w+.receipt.json cannot be written \(.*File too large.*cache_bytes"
        ):
            dataset[0]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    (helper,) = pack._helpers.values()
    assert helper._process is not None
    assert helper._process.stdin is not None
    with helper._process:
        helper._process.stdin.close()
    assert helper._process.returncode == 0


def test_a_bucket_is_read_without_a_listing(out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by a forked worker, and over a network that breaks a body, refuses a request and asks to wait."""
    bucket = proxy("moto")
    upload(out, url := use_server(bucket.url, monkeypatch))
    faults = [
        times(2, CUT, "GET", ".image.npy"),
        times(2, BUSY, "GET", ".label.npy"),
        times(1, ERROR, "GET", "manifest"),
    ]
    with bucket.doing(lambda request: next(filter(None, (fault(request) for fault in faults)), None)):
        dataset = cached(tmp_path / "first", root=url)
        assert rows(dataset) == rows(open_dataset(out, "train"))
        loader: DataLoader[Any] = DataLoader(
            cached(tmp_path / "second", root=url), batch_size=8, num_workers=1, multiprocessing_context="fork"
        )
        assert sum(len(images) for images, _ in loader) == 40
    asked = Counter(request.name for request in bucket.requests)
    assert not [request for request in bucket.requests if request.is_listing]
    assert sum(asked.values()) <= 2 * len(asked) + 10
    assert pickle.loads(pickle.dumps(dataset)).root == dataset.root  # noqa: S301 - our own


JOB = """
import sys
from torch.utils.data import DataLoader
from readers import open_dataset

url, cache = sys.argv[1:]
loader = DataLoader(open_dataset(url, "train", cache=cache), 4, num_workers=4, multiprocessing_context="fork")
print(sum(len(images) for images, _ in loader))
"""


@pytest.mark.long
def test_two_jobs_with_four_workers_each_list_nothing_and_fetch_each_object_once(
    out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = proxy("moto")
    upload(out, url := use_server(bucket.url, monkeypatch))
    before = len(bucket.requests)
    command = [sys.executable, "-c", JOB, url, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(REPO)}
    started = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [job.communicate(timeout=HANG)[0] for job in started] == ["40\n"] * 2
    requests = bucket.requests[before:]
    assert not [request for request in requests if request.is_listing]
    asked = Counter(Path(request.name).name for request in requests)
    assert asked.pop("manifest.json") == 2, "one for each job"
    assert {*asked.values()} == {1}
    assert len(asked) > 40


@pytest.mark.parametrize(("here", "there"), [("a folder", "a cache"), ("a cache", "a folder")])
def test_a_state_of_another_window_names_what_to_pass(out: Path, tmp_path: Path, here: str, there: str) -> None:
    datasets = {"a folder": open_dataset(out, "train"), "a cache": cached(tmp_path, root=out)}
    first, second = datasets[here], datasets[there]
    batches = iter(saved := first.loader(4, shuffle="window"))
    next(batches)
    with pytest.raises(RequestError, match=r"another order: shuffle is Window.*; pass shuffle=(.*) to go on") as caught:
        second.loader(4, shuffle="window").load_state_dict(saved.state_dict())
    named = re.search(r"pass shuffle=Window\(block=(\d+), blocks=(\d+)(, apart=True)?\)", str(caught.value))
    assert named
    again = second.loader(4, shuffle=Window(int(named[1]), int(named[2]), bool(named[3])))
    again.load_state_dict(saved.state_dict())
    for mine, rest in zip(again, batches, strict=True):
        assert torch.equal(mine[0], rest[0])


# --- the budget ---


def test_the_least_recently_used_shards_make_space(out: Path, remote: Remote, tmp_path: Path) -> None:
    budget = Manifest.load(out).bytes // 2
    dataset = cached(tmp_path, budget)
    dataset[0]
    dataset._pack.close_shards()
    for path in files(tmp_path):
        os.utime(path, (1, 1))
    oldest = {path for path in files(tmp_path) if path.parent.name == "shards"}
    assert rows(dataset) == rows(open_dataset(out, "train"))
    assert not oldest & {*files(tmp_path)}
    gc.collect()
    for batch, expected in zip(dataset.loader(4, shuffle="window"), open_dataset(out, "train").loader(4), strict=True):
        assert batch[0].shape == expected[0].shape
    assert bytes_in(tmp_path) <= budget + 4096, "with a few bytes in locks/"


def test_open_shards_stay_until_another_one_needs_their_space(remote: Remote, tmp_path: Path) -> None:
    largest = max(cached(tmp_path / "any")._pack.table.bytes(shard) for shard in range(5))
    first, second = cached(tmp_path / "cache", 60_000), cached(tmp_path / "cache", 60_000)
    held = [first._pack.shard(number) for number in range(2)]
    kept = [path for shard in held for path in files(tmp_path / "cache") if path.name.startswith(shard.path.name[:20])]
    rows(second)
    assert all(path.exists() for path in kept), "they are in use"
    assert len(first._pack._shards) < 2, "the cache closed them for others"
    assert largest < 60_000


def test_a_cache_full_of_open_shards_is_an_error_in_the_end(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers.stores.cache, "PATIENCE", 0.1)
    dataset = cached(tmp_path, 60_000)
    with pytest.raises(ReadError, match=r"fake://bucket/out/train-\w+: .* budget is 60,000 bytes.*higher cache_bytes"):
        _ = [dataset._pack.shard(number) for number in range(len(dataset._pack.table))]
    assert {*remote.asked.values()} == {1}, "the receipt is kept for the next try"


def test_what_can_never_fit_is_refused_at_once(remote: Remote, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"cache_bytes=9000 is too little: manifest and shard table have"):
        cached(tmp_path / "cache", 9_000)
    shard = Budget(tmp_path / "budget", 100).packs / "pack" / "shards" / f"{PARTIAL}train-{'0' * 32}"
    with pytest.raises(RequestError, match=r"train-0+ has 101 bytes, and the budget is 100; give a higher cache_bytes"):
        Budget(tmp_path / "budget", 100).reserve(shard, {"a": 101})
    with pytest.raises(RequestError, match=r"1 batches are read at once.*cache_bytes=60000 is too little"):
        next(iter(cached(tmp_path / "other", 60_000).loader(32, shuffle=True, threads=1)))


def test_the_least_budget_of_running_processes_holds(tmp_path: Path) -> None:
    large, small = Budget(tmp_path, 1000), Budget(tmp_path, 100)
    assert large.limit() == small.limit() == 100
    del small
    gc.collect()
    assert large.limit() == 1000


def test_other_files_among_the_budgets_do_not_count(tmp_path: Path) -> None:
    budget = Budget(tmp_path, 100)
    (tmp_path / "limits" / ".nfs0000").touch()
    assert budget.limit() == 100


def test_leftovers_of_killed_processes_are_deleted_when_space_is_needed(tmp_path: Path) -> None:
    budget = Budget(tmp_path, 1000)
    shards = budget.packs / "pack" / "shards"
    budget.reserve(shards / f"{PARTIAL}train-{'0' * 32}", {"a": 600})
    with (shards / f"train-{'1' * 32}.image.npy").open("wb") as file:
        file.truncate(300)
    budget.reserve(shards / f"{PARTIAL}train-{'2' * 32}", {"a": 900})
    assert [path.name for path in shards.iterdir()] == [f"{PARTIAL}train-{'2' * 32}"]


def test_many_processes_that_are_killed_never_exceed_the_budget(out: Path, tmp_path: Path) -> None:
    result = drill(out, tmp_path, readers=3, seconds=2, kill_every=0.4, part=0.4)
    assert result.faults == []
    assert min(result.shards, result.killed, result.seen) > 2
    assert result.budget / 2 < result.most <= result.budget


def test_batches_that_do_not_fit_together_take_turns(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of two threads has fetched the first of its shards when the cache is full."""
    monkeypatch.setattr(readers.stores.cache, "PATIENCE", HANG)
    table = cached(tmp_path / "other")._pack.table
    numbers = sorted(range(len(table)), key=table.bytes)[-4:]
    begun, first = threading.Barrier(2), set[str]()

    def together(name: str, write: object) -> None:
        if name.startswith("shards/") and threading.current_thread().name not in first:
            first.add(threading.current_thread().name)
            begun.wait(HANG)

    budget = bytes_in(tmp_path / "other") + table.bytes(numbers[-1]) * 5 // 2
    datasets = [cached(tmp_path / "cache", budget) for _ in range(2)]
    remote.fault = together

    def read(dataset: SegDataset, shards: list[int]) -> int:
        return len(dataset._pack.shards(shards))

    with ThreadPoolExecutor(2) as threads:
        counts = list(threads.map(read, datasets, (numbers[:2], numbers[2:]), timeout=HANG))
    assert (counts, len(first)) == ([2, 2], 2)


# --- faults ---


def test_a_body_that_is_cut_is_fetched_once_more(out: Path, remote: Remote, tmp_path: Path) -> None:
    failed: set[str] = set()

    def cut(name: str, write: Callable[[memoryview], object]) -> None:
        if name.endswith(".image.npy") and name not in failed:
            failed.add(name)
            write(memoryview(b"half"))
            raise StoreBusyError(f"{URL}/{name}: the connection was reset")

    remote.fault = cut
    assert rows(cached(tmp_path)) == rows(open_dataset(out, "train"))
    assert len(failed) > 5


@pytest.mark.parametrize("change", ["flipped", "cut", "longer", "missing", "receipt", "refused"])
def test_a_damaged_object_is_named_and_nothing_of_it_stays(own_remote: Remote, tmp_path: Path, change: str) -> None:
    target = tmp_path / "cache"
    dataset = cached(target)
    stem = dataset._pack.stem(0).name
    victim = own_remote.root / "shards" / f"{stem}.{'receipt.json' if change == 'receipt' else 'image.npy'}"
    data = victim.read_bytes()
    if change in ("flipped", "receipt"):
        flip(victim, len(data) // 2, 3)
    elif change == "missing":
        victim.unlink()
    elif change == "refused":
        victim.unlink()
        victim.mkdir()
    else:
        victim.write_bytes(data[:-1] if change == "cut" else data + b"x")
    expected = StoreError if change == "refused" else DamagedError
    with pytest.raises((expected, DamagedError)) as caught:
        dataset[0]
    assert f"shards/{victim.name}" in str(caught.value)
    assert not [path for path in target.rglob("*") if stem in path.name]
    if change == "refused":
        victim.rmdir()
    victim.write_bytes(data)
    assert rows(dataset) == rows(open_dataset(own_remote.root, "train"))


def test_a_shard_that_was_damaged_in_the_cache_is_fetched_again(out: Path, remote: Remote, tmp_path: Path) -> None:
    rows(cached(tmp_path))
    gc.collect()
    cut, flipped, lost = [path for path in files(tmp_path) if path.name.endswith(".image.npy")][:3]
    cut.write_bytes(cut.read_bytes()[:-100])
    flip(flipped, flipped.stat().st_size // 2, 3)
    lost.unlink()
    assert rows(cached(tmp_path, verify="digest")) == rows(open_dataset(out, "train"))
    assert remote.asked[f"shards/{cut.name}"] == remote.asked[f"shards/{lost.name}"] == 2


def test_a_cache_that_was_deleted_can_be_opened_again_at_once(out: Path, remote: Remote, tmp_path: Path) -> None:
    dataset = cached(tmp_path)
    shutil.rmtree(dataset.root.parents[1])
    with pytest.raises(ReadError, match="was deleted while it was read; open fake://bucket/out again"):
        dataset[0]
    assert rows(cached(tmp_path)) == rows(open_dataset(out, "train"))


def test_a_cache_that_cannot_be_used_is_named(remote: Remote, tmp_path: Path) -> None:
    (tmp_path / f"segpack-{os.geteuid()}").mkdir(0o700)
    (tmp_path / f"segpack-{os.geteuid()}" / ".cache").touch()
    with pytest.raises(ReadError, match=r"the cache cannot be used \(.*Not a directory.*; delete it"):
        cached(tmp_path)


def test_a_cache_that_is_deleted_in_mid_epoch_is_named(remote: Remote, tmp_path: Path) -> None:
    dataset = cached(tmp_path)
    shard = cached(tmp_path)._pack.shard(0)  # which is opened, and not mapped
    batches = iter(dataset.loader(2))
    next(batches)
    shutil.rmtree(dataset.root.parents[1], ignore_errors=True)
    with pytest.raises(ReadError, match=f"was deleted|deletes files of the cache while it is read; open {URL}"):
        list(batches)
    with pytest.raises(ReadError, match=r"cannot be used|was deleted|deletes files of the cache"):
        list(dataset.loader(2))
    with pytest.raises(DamagedError, match="is missing; another process deletes files of the cache"):
        shard.pixels(dataset._pack.fields[1], 0)


@pytest.mark.parametrize("kind", ["pipe", "folder", "link"])
def test_what_became_no_file_is_fetched_again(out: Path, remote: Remote, tmp_path: Path, kind: str) -> None:
    dataset = cached(tmp_path)
    rows(dataset)
    pickled = pickle.dumps(dataset)
    del dataset
    gc.collect()
    there = files(tmp_path)
    shards = [path for path in there if path.parent.name == "shards"]
    images = [path for path in shards if path.name.endswith(".image.npy")]
    receipts = [
        path for path in shards if path.name.endswith(".receipt.json") and path.stem[:38] != images[0].stem[:38]
    ]
    victims = [images[0], receipts[0], *(path for path in there if path.parent.name == "generations")]
    for victim in victims:
        victim.unlink()
        if kind == "pipe":
            os.mkfifo(victim)
        elif kind == "folder":
            (victim / "inside").mkdir(parents=True)
        else:
            victim.symlink_to(out / "manifest.json")
    assert len(victims) == 4
    assert rows(pickle.loads(pickled)) == rows(open_dataset(out, "train"))  # noqa: S301 - our own
    assert all(victim.is_file() and not victim.is_symlink() for victim in victims)
    budget = open_cache(tmp_path, 10**9).budget
    receipts[0].unlink()
    receipts[0].mkdir()
    budget.reserve(budget.packs / "x" / "shards" / f"{PARTIAL}train-{'1' * 32}", {"a": budget.limit()})
    assert not receipts[0].exists(), "it was deleted to make space"


def test_a_clock_that_was_set_back_does_not_stop_the_order_of_use(remote: Remote, tmp_path: Path) -> None:
    rows(cached(tmp_path))
    gc.collect()
    later = time.time() + 10**6
    for path in files(tmp_path):
        os.utime(path, (later, later))
    rows(cached(tmp_path))
    assert all(path.stat().st_mtime < later for path in files(tmp_path) if path.name.endswith(".receipt.json"))


def test_a_server_that_is_killed_and_started_again_in_mid_epoch(
    out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rclone()
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    for name, value in server_of_bench.credentials(address).items():
        monkeypatch.setenv(name, value)
    server = server_of_bench.started(address, out.parent)
    try:
        dataset = cached(tmp_path, Manifest.load(out).bytes // 2, root=f"s3://{out.parent.name}/{out.name}")
        batches = iter(dataset.loader(2))
        images = [next(batches)[0]]
        server.kill()
        server.wait()
        server = server_of_bench.started(address, out.parent)
        images += [image for image, _ in batches]
    finally:
        server.kill()
        server.wait()
    expected = [image for image, _ in open_dataset(out, "train").loader(2)]
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(images, expected, strict=True))


def test_a_pack_that_was_built_again_replaces_its_manifest(own_remote: Remote, out: Path, tmp_path: Path) -> None:
    cached(tmp_path / "cache")
    shutil.rmtree(own_remote.root)
    pack(out.parent / "raw", own_remote.root, *SMALL_SHARDS, "--labels", "index")
    assert rows(cached(tmp_path / "cache")) == rows(open_dataset(own_remote.root, "train"))


def test_wrong_arguments_are_refused(remote: Remote, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r'fake://b/out: .* give cache=, such as cache="/nvme/packs"'):
        open_dataset("fake://b/out", "train")
    with pytest.raises(RequestError, match="cache_bytes= needs cache="):
        open_dataset("out", "train", cache_bytes=1)
    for wrong in ("much", "0", "-1", "1 XB", 0):
        with pytest.raises(RequestError, match="expected a number of bytes"):
            cached(tmp_path, wrong)
    with pytest.raises(RequestError, match="is the disk mounted"):
        cached(tmp_path / "a" / "b")
    remote.root = tmp_path
    with pytest.raises(NoPackError, match="fake://bucket/out: no packed data set here"):
        cached(tmp_path)


def test_without_a_budget_most_of_the_free_space_is_one(remote: Remote, tmp_path: Path) -> None:
    dataset = open_dataset(URL, "train", cache=tmp_path)
    assert len(rows(dataset)) == 40
    limit = open_cache(tmp_path, None).budget.limit()
    assert limit == pytest.approx(0.9 * shutil.disk_usage(tmp_path).free, rel=0.2)


# --- ahead ---


def test_an_order_that_fails_ends_all_threads() -> None:
    def order() -> Iterator[list[int]]:
        yield [1]
        raise ValueError("the order of a user")

    before = set(threading.enumerate())
    ahead = Ahead(order(), lambda shard: 10, ignore, ignore, 1000)
    for thread in set(threading.enumerate()) - before:
        thread.join(HANG)
        assert not thread.is_alive()
    ahead.close()


def fetched_ahead(batches: list[list[int]], limit: int, expected: int) -> tuple[Ahead, list[int]]:
    """Return an `Ahead` of shards of 10 bytes, and the shards that it fetched, once there are as many as expected."""
    fetched: list[int] = []
    ahead = Ahead(iter(batches), lambda shard: 10, fetched.append, ignore, limit)
    wait_for(fetched, expected)
    return ahead, fetched


def wait_for(fetched: list[int], expected: int) -> None:
    deadline = time.monotonic() + HANG
    while len(fetched) < expected and time.monotonic() < deadline:
        time.sleep(0.001)
    assert len(fetched) == expected


def test_shards_are_fetched_in_the_order_of_need_and_no_more_than_the_limit() -> None:
    ahead, fetched = fetched_ahead([[5, 3], [3, 1], [2, 5], [5, 4], [7]], 40, 4)
    assert sorted(fetched[:2]) == [3, 5]
    assert sorted(fetched) == [1, 2, 3, 5]
    ahead.received()
    ahead.received()
    wait_for(fetched, 6)
    assert set(fetched) == {1, 2, 3, 4, 5, 7}, "each once"
    for _ in range(3):
        ahead.received()
    ahead.close()


def test_shards_of_batches_that_are_over_are_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    full = threading.Event()

    def fetch(shard: int) -> None:
        asked.append(shard)
        if not full.is_set():
            raise CacheFullError("full")

    monkeypatch.setattr(readers.stores.ahead, "PAUSES", (0.01, 0.01))
    ahead = Ahead(iter([[1], [2]]), lambda shard: 10, fetch, ignore, 100)
    wait = time.monotonic() + HANG
    while len(asked) < 3 and time.monotonic() < wait:
        time.sleep(0.001)
    ahead.received()
    full.set()
    ahead.received()
    ahead.close()
    assert {*asked} <= {1, 2}


def test_a_full_cache_is_tried_again_when_a_shard_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers.stores.ahead, "PAUSES", (HANG, HANG))
    asked: list[int] = []
    released: list[int] = []
    gone = threading.Event()

    def fetch(shard: int) -> None:
        asked.append(shard)
        if not gone.is_set():
            raise CacheFullError("full")

    ahead = Ahead(
        iter([[0], [0, 1], *([number] for number in range(2, 9))]), lambda shard: 10, fetch, released.append, 90
    )
    deadline = time.monotonic() + HANG
    while not asked and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(0.3)
    assert 0 < len(asked) <= THREADS, "each thread has tried once at most, and now all wait"
    ahead.received()
    assert released == [], "the next batch needs shard 0"
    gone.set()
    ahead.received()
    assert released == [0, 1]
    while {*range(2, 9)} - {*asked} and time.monotonic() < deadline:
        time.sleep(0.001)
    assert {*range(2, 9)} <= {*asked}
    ahead.close()


def ignore(shard: int) -> None:
    """Stand for a function that fetches or closes a shard."""


def test_a_lock_of_a_deleted_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    lock = ReadLock(tmp_path / "file", wait=True)
    assert not Budget(tmp_path / "cache", 10).delete(tmp_path / "file", ())
    lock.close()
    assert Budget(tmp_path / "cache", 10).delete(tmp_path / "file", ())
    with pytest.raises(FileNotFoundError):
        ReadLock(tmp_path / "file", wait=True)


def test_a_forked_process_keeps_no_lock_that_was_held_at_its_birth(tmp_path: Path) -> None:
    """A DataLoader may fork its workers while threads of its process fetch: these locks would last as long as they."""
    (tmp_path / "free").touch()
    with only_owner(tmp_path / "budget"), if_unused(tmp_path / "free") as unused:
        assert unused
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(writer)
            os.read(reader, 1)
            os._exit(0)
    try:
        for name in ("budget", "free"):
            with if_unused(tmp_path / name) as unused:
                assert unused, name
    finally:
        os.close(writer)
        os.close(reader)
        os.waitpid(child, 0)
