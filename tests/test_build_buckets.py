"""Builds into a bucket: the objects of a local build, bounded scratch, stores that must be refused, faults."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from pickle import PickleBuffer
from unittest import mock

import pytest
from conftest import SMALL_SHARDS, RawFolder, errors_of, good, make_raw, pack, run, write_png
from drills.made_stores import IGNORED, MemoryStore
from drills.store_faults import drill
from store_servers import server, use_server

import packer.publish.bucket
import packer.workers.run
from packer import build_pack
from packer.building.summary import Summary
from packer.errors import BusyError, PinnedError, TargetError
from packer.publish.pin import pin
from packer.publish.target import REMARKS
from packer.shards.row_counts import SUFFIX as COUNTS
from packer.workers.in_process import InProcess
from readers.contract.errors import StoreBusyError
from readers.contract.manifest import Manifest
from readers.stores.store import Data

URL = "memory://bucket/out"
CHANGING = ("manifest.json", "generations/000001.json", "packer.toml", "stamps/")
"""These have times or paths in them."""


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    """The store that every URL names."""
    found = MemoryStore()
    use(found, monkeypatch)
    return found


@pytest.fixture(autouse=True)
def in_process() -> Iterator[None]:
    with mock.patch.object(packer.workers.run, "POOL", InProcess):
        yield


def use(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packer.publish.bucket, "open_store", lambda url: store)


def build(raw: Path, scratch: Path, no_conditions: str = "refuse") -> Summary:
    scratch.mkdir(exist_ok=True)
    return build_pack(raw, URL, shard_size="30KB", scratch=scratch, no_conditions=no_conditions)


def test_a_bucket_gets_the_objects_of_a_local_pack(store: MemoryStore, raw_folder: RawFolder, tmp_path: Path) -> None:
    local = pack(raw_folder.path, tmp_path / "local", *SMALL_SHARDS)
    summary = build(raw_folder.path, tmp_path / "scratch")
    assert summary.manifest.same_data(Manifest.load(local))
    files = {path.relative_to(local).as_posix(): path for path in local.rglob("*") if path.is_file()}
    files = {name: path for name, path in files.items() if path.suffix != COUNTS and not name.startswith(REMARKS)}
    assert store.objects.keys() == files.keys() - {".lock"}
    for name, path in files.items():
        if name != ".lock" and not name.startswith(CHANGING):
            assert store.objects[name][0] == path.read_bytes(), name
    assert not list((tmp_path / "scratch").iterdir())


def test_unchanged_shards_in_a_bucket_are_reused(store: MemoryStore, tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 12})
    build(raw.path, tmp_path / "scratch")
    before = dict(store.objects)
    again = build(raw.path, tmp_path / "scratch")
    assert (again.reused, again.manifest.generation) == (12, 1)
    assert store.objects.keys() == before.keys()
    key = next(key for split, key in raw.images)
    write_png(raw.path / "train" / "images" / f"{key}.png", raw.images["train", key] ^ 255)
    third = build(raw.path, tmp_path / "scratch")
    assert 0 < third.reused < 12
    assert third.manifest.generation == 2
    local = pack(raw.path, tmp_path / "local", *SMALL_SHARDS)
    assert third.manifest.same_data(Manifest.load(local))


def test_files_that_were_touched_are_read_in_one_night_alone(store: MemoryStore, tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 12}).path
    build(raw, tmp_path / "scratch")
    before = {name: data for name, data in store.objects.items() if name.startswith("stamps/")}
    for path in raw.rglob("*.png"):
        os.utime(path, (1, 1))
    store.put("stamps/of others/a.stamps", b"")
    assert build(raw, tmp_path / "scratch").reused == 12
    assert before
    assert not [name for name, data in before.items() if store.objects[name][0] == data[0]]


def test_shards_that_were_sent_take_no_scratch(
    store: MemoryStore, raw_folder: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[int] = []

    def finish(bucket: packer.publish.bucket.Bucket) -> None:
        real(bucket)
        files = list((bucket.folder / "shards").glob("*.npy"))
        assert len(files) > 8
        used.append(sum(path.stat().st_blocks for path in files))

    real = packer.publish.bucket.Bucket.finish
    monkeypatch.setattr(packer.publish.bucket.Bucket, "finish", finish)
    build(raw_folder.path, tmp_path / "scratch")
    assert used == [0]


def test_too_little_scratch_is_known_before_the_first_shard(
    store: MemoryStore, raw_folder: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("packer.publish.free_space.free_space", lambda folder: 1000)
    with pytest.raises(TargetError, match="name another folder with --scratch"):
        build(raw_folder.path, tmp_path / "scratch")
    assert store.objects.keys() == {".segpack"}


def test_a_client_that_keeps_the_bytes_of_a_failed_upload_hides_no_error(
    store: MemoryStore, raw_folder: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[object] = []

    def put(name: str, data: Data) -> None:
        if name.startswith("shards/"):
            kept.append(PickleBuffer(data))
            raise StoreBusyError(f"{name}: no answer")
        usual(name, data)

    usual = store.put
    monkeypatch.setattr(store, "put", put)
    monkeypatch.setattr("readers.stores.waiting.RETRY_SECONDS", 0.2)
    with pytest.raises(BusyError, match=r"shards/.*: no answer"):
        build(raw_folder.path, tmp_path / "scratch")
    assert kept


def test_other_objects_are_not_touched(store: MemoryStore, raw_folder: RawFolder, tmp_path: Path) -> None:
    store.put("photos/cat.jpg", b"cat")
    with pytest.raises(TargetError, match=r"is not a packed data set \(it holds photos/cat.jpg\)"):
        build(raw_folder.path, tmp_path / "scratch")
    assert store.objects.keys() == {"photos/cat.jpg"}


def test_a_manifest_of_others_is_not_replaced(store: MemoryStore, raw_folder: RawFolder, tmp_path: Path) -> None:
    text = '{"name": "an app"}'
    store.put("manifest.json", text.encode())
    with pytest.raises(TargetError, match=r"is not a packed data set \(it holds manifest.json\)"):
        build(raw_folder.path, tmp_path / "scratch")
    assert store.objects["manifest.json"][0] == text.encode()
    app = tmp_path / "app"
    app.mkdir()
    (app / "manifest.json").write_text(text)
    with pytest.raises(TargetError, match=r"is not a packed data set \(it holds manifest.json\)"):
        build_pack(raw_folder.path, app)
    assert (app / "manifest.json").read_text() == text


def test_a_pinned_bucket_stays_as_it_is(store: MemoryStore, raw_folder: RawFolder, tmp_path: Path) -> None:
    build(raw_folder.path, tmp_path / "scratch")
    pin(store)
    with pytest.raises(PinnedError, match="packer unpin memory://"):
        build(raw_folder.path, tmp_path / "scratch")


def test_a_store_without_conditions_is_refused_or_locked(
    raw_folder: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore(IGNORED)
    use(store, monkeypatch)
    with pytest.raises(TargetError, match="does not keep conditional writes"):
        build(raw_folder.path, tmp_path / "scratch")
    assert not store.objects
    assert build(raw_folder.path, tmp_path / "scratch", "lock").manifest.generation == 1
    store.put(".locks/other", b"{}")
    with pytest.raises(BusyError):
        build(raw_folder.path, tmp_path / "scratch", "lock")


@pytest.mark.parametrize(
    "faults", [pytest.param(60, marks=pytest.mark.short), pytest.param(1000, marks=pytest.mark.long)]
)
def test_faults_of_a_store_leave_one_manifest(faults: int, tmp_path: Path) -> None:
    found, wrong = drill(faults, 0.08, tmp_path)
    assert not wrong
    assert found["starts"] >= 2 * found["rounds"]


def test_the_command_packs_into_a_bucket(
    raw_folder: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = use_server(server("ministack"), monkeypatch)
    done = good("build", "--quiet", *SMALL_SHARDS, "--scratch", tmp_path, raw_folder.path, url)
    assert done.stdout.startswith(f"{url}: generation 1, 32 rows")
    assert "32" in good("info", url).stdout
    assert f"{url}-not: no packed data set here" in errors_of(1, "info", f"{url}-not")
    assert run("build", "--dry-run", raw_folder.path, url).exit_code == 0
    assert run("build", "--scratch", tmp_path / "none", raw_folder.path, url).exit_code == 1


def test_a_shard_that_is_built_again_keeps_its_bytes(store: MemoryStore, tmp_path: Path) -> None:
    """Its bytes are not on this machine: the shadow has files without content."""
    raw = make_raw(tmp_path / "raw", {"train": 12}).path
    next((raw / "train" / "images").iterdir()).write_bytes(b"bad")
    (tmp_path / "scratch").mkdir()
    for _ in range(2):
        build_pack(raw, URL, scratch=tmp_path / "scratch", on_bad="skip", retry_bad=True)
    local = build_pack(raw, tmp_path / "local", on_bad="skip")
    assert local.rejects
    for path in (tmp_path / "local" / "shards").iterdir():
        assert store.objects[f"shards/{path.name}"][0] == path.read_bytes(), path.name
