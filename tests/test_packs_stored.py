"""Commands on packs in buckets do what they do on folders: verify, log, rollback, unpin, gc."""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import SMALL_SHARDS, RawFolder, errors_of, make_raw, pack, run, write_png
from drills.made_stores import FaultyStore, MemoryStore
from store_servers import server, use_server

import packer.building.plan_build
import packer.packs.garbage
import packer.packs.generations
import packer.packs.stored
import packer.publish.local_mirror
from packer import plan_pack
from packer.errors import BusyError, PinnedError, TargetError, UsageError
from packer.packs.diff import diff_pack
from packer.packs.garbage import delete_garbage
from packer.packs.generations import list_generations, rollback_pack, unpin_pack
from packer.packs.stage import stage_pack
from packer.packs.staged_copies import drop_copies, list_copies
from packer.packs.stats import pack_stats
from packer.packs.verify_pack import verify_pack
from packer.publish.generation import current_manifest
from packer.publish.pin import check_pin
from readers.contract.errors import DamagedError, NoPackError
from readers.contract.manifest import STORAGES, Manifest
from readers.stores.store import Listed, Store

pytestmark = pytest.mark.usefixtures("in_process")
URL = "s3://bucket/out"
LONG_AGO = 1_000_000_000


@pytest.fixture(scope="module")
def two_nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack of two generations; every file is old."""
    folder = tmp_path_factory.mktemp("nights")
    raw = make_raw(folder / "raw", {"train": 12, "val": 4})
    out = pack(raw.path, folder / "out", *SMALL_SHARDS)
    key = next(key for _, key in raw.images)
    write_png(raw.path / "train" / "images" / f"{key}.png", raw.images["train", key] ^ 255)
    pack(raw.path, out, *SMALL_SHARDS)
    (out / "history.json").unlink()
    for path in out.rglob("*"):
        os.utime(path, (LONG_AGO, LONG_AGO))
    return out


@pytest.fixture
def out(two_nights: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(two_nights, tmp_path / "out"))


def use(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every URL name this store."""
    for module in (packer.building.plan_build, packer.packs.generations, packer.packs.stage, packer.packs.stored):
        monkeypatch.setattr(module, "open_store", lambda url: store)


def stored(out: Path, monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    """Return a store with the files of a pack, and their times. Every URL names it."""
    store = MemoryStore()
    store.url = URL
    for path in out.rglob("*"):
        if path.is_file() and path.name != ".lock":
            name = path.relative_to(out).as_posix()
            store.put(name, path.read_bytes())
            data, tag, _ = store.objects[name]
            store.objects[name] = data, tag, path.stat().st_mtime
    use(store, monkeypatch)
    return store


class LateStore(FaultyStore):
    """A store of which a tenth of the calls fail. Its client has asked for lists again."""

    def list(self, folder: str) -> Iterator[Listed]:
        return self._store.list(folder)


def faulty(store: MemoryStore) -> LateStore:
    return LateStore(store, random.Random(3), 0.1)


@pytest.mark.parametrize("storage", STORAGES)
def test_a_whole_pack(raw_folder: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, storage: str) -> None:
    local = pack(raw_folder.path, tmp_path / "local", *SMALL_SHARDS, "--format", storage)
    stored(local, monkeypatch)
    for deep in (False, True):
        assert verify_pack(URL, deep=deep, workers=2, scratch=tmp_path) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["local"]


DAMAGES = ("flipped", "cut", "long", "missing", "receipt", "receipt missing", "table", "generation")


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_named_as_in_a_folder(out: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    name = {"receipt": "shards/*.json", "receipt missing": "shards/*.json", "table": "generations/*.npy"}.get(
        damage, "generations/000001.json" if damage == "generation" else "shards/*.image.npy"
    )
    current = current_manifest(out)
    assert current is not None
    path = next(path for path in sorted(out.glob(name)) if damage != "table" or current.table[:32] in path.name)
    if damage not in ("table", "generation"):
        used = (out / "generations" / f"shards-{current.table[:32]}.npy").read_bytes()
        path = next(path for path in sorted(out.glob(name)) if path.name.split(".")[0][-32:].encode() in used)
    data = path.read_bytes()
    if "missing" in damage:
        path.unlink()
    else:
        changed = {"cut": data[:-1], "long": data + b"?"}.get(damage, data[:-1] + bytes([data[-1] ^ 1]))
        path.write_bytes(changed)
    expected = [item.message.replace(str(out), URL) for item in verify_pack(out, deep=True)]
    stored(out, monkeypatch)
    found = verify_pack(URL, deep=True, workers=1)
    assert expected
    assert [item.message for item in found] == expected
    assert {item.file for item in found if item.file} <= {path.relative_to(out)}


def test_few_shards_are_on_this_machine_at_once(out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored(out, monkeypatch)
    used: list[int] = []
    real = packer.publish.local_mirror.as_hole

    def as_hole(path: Path, size: int) -> None:
        used.append(sum(each.stat().st_blocks for each in path.parent.iterdir()) * 512)
        real(path, size)

    monkeypatch.setattr("packer.packs.verify_stored.as_hole", as_hole)
    assert verify_pack(URL, workers=1) == []
    sizes = [path.stat().st_size + 4096 for path in (out / "shards").iterdir()]
    assert max(used) <= 4 * max(sizes) < sum(sizes)
    monkeypatch.setattr("packer.publish.free_space.free_space", lambda folder: 1000)
    with pytest.raises(TargetError, match="name another folder with --scratch"):
        verify_pack(URL)


def test_faults_of_a_store_do_not_count_as_damage(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = faulty(stored(out, monkeypatch))
    use(store, monkeypatch)
    monkeypatch.setattr("readers.stores.waiting.FIRST_PAUSE", 0)
    assert verify_pack(URL, workers=2) == []
    assert store.faults


def test_what_is_not_a_pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = stored(tmp_path, monkeypatch)
    with pytest.raises(NoPackError, match=URL):
        verify_pack(URL)
    for call in (list_generations, delete_garbage, unpin_pack):
        with pytest.raises((NoPackError, TargetError), match=URL):
            call(URL)
    store.put("photos/cat.jpg", b"")
    with pytest.raises(TargetError, match="is not a packed data set"):
        delete_garbage(URL)
    assert store.objects.keys() == {"photos/cat.jpg"}


def test_generations_are_those_of_a_folder(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = stored(out, monkeypatch)
    assert list_generations(URL) == list_generations(out)
    with pytest.raises(UsageError, match=f"{URL}: generation 7 is not kept; the kept generations are 2, 1"):
        rollback_pack(URL, 7)
    assert rollback_pack(URL, 1, pinned=True).generation == 1
    rollback_pack(out, 1, pinned=True)
    assert current_manifest(store) == Manifest.load(out)
    assert json.loads(store.objects["history.json"][0])["current"] == 1
    with pytest.raises(PinnedError):
        check_pin(store)
    assert unpin_pack(URL)
    assert not unpin_pack(URL)
    for name in [name for name in store.objects if name.endswith(".image.npy")]:
        store.put(name, b"cut")
    with pytest.raises(DamagedError, match=f"{URL}: cannot roll back to generation 2: [0-9]+ of its shards.*\n{URL}/"):
        rollback_pack(URL, 2)


def test_gc_deletes_what_it_deletes_in_a_folder(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for plan, age in (("old", LONG_AGO), ("new", time.time())):
        folder = out / "tickets" / plan
        folder.mkdir(parents=True)
        for name in ("of-16", f"3-{'a' * 32}-{'b' * 64}", "notes.txt"):
            (folder / name).touch()
            os.utime(folder / name, (age, age))
    store = stored(out, monkeypatch)
    before = set(store.objects)
    seen = delete_garbage(URL, keep=1, dry_run=True)
    assert set(store.objects) == before
    assert delete_garbage(URL, keep=1) == seen
    local = delete_garbage(out, keep=1)
    assert seen == local.below(out)
    assert [path.as_posix() for path in seen.tickets] == [f"tickets/old/3-{'a' * 32}-{'b' * 64}", "tickets/old/of-16"]
    assert len(seen.shards) > 2
    assert len(seen.manifests) == 1
    left = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()} - {".lock"}
    assert set(store.objects) == left
    assert verify_pack(URL) == []


def test_gc_of_a_bucket_stops_if_somebody_publishes(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = stored(out, monkeypatch)
    before = set(store.objects)
    other = (out / "generations" / "000001.json").read_bytes()

    def published(*arguments: object) -> object:
        found = real(*arguments)  # type: ignore[arg-type]
        store.put("manifest.json", other)
        return found

    real = packer.packs.garbage.find_garbage
    monkeypatch.setattr(packer.packs.garbage, "find_garbage", published)
    with pytest.raises(BusyError, match="nothing was deleted; try again"):
        delete_garbage(URL, keep=1)
    assert set(store.objects) == before


def test_a_copy_of_a_bucket_is_staged(out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("readers.stores.waiting.FIRST_PAUSE", 0)
    plain = stored(out, monkeypatch)
    use(faulty(plain), monkeypatch)
    staged = stage_pack(URL, tmp_path / "disk")
    assert (staged.shards, staged.opened) == (staged.manifest.shards, staged.path)
    assert staged.path.name.startswith("out-")
    assert verify_pack(staged.path) == []
    assert stage_pack(URL, tmp_path / "disk").shards == 0
    assert [copy.source for copy in list_copies()] == [URL]
    use(plain, monkeypatch)
    for name in [name for name in plain.objects if name.endswith(".image.npy")]:
        plain.put(name, b"cut")
    with pytest.raises(DamagedError, match=f"{URL}: damaged, so nothing was published; put whole copies") as damaged:
        stage_pack(URL, tmp_path / "other")
    assert f"{URL}/shards/" in str(damaged.value)
    assert {copy.path.parents[1].name for copy in drop_copies(URL)} == {"disk", "other"}


def test_what_a_build_would_change(two_nights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = two_nights.parent / "raw"
    store = stored(two_nights, monkeypatch)
    before = dict(store.objects)
    assert pack_stats(URL) == pack_stats(two_nights)
    assert diff_pack(URL, raw).is_empty
    plans = [
        plan_pack(raw, tmp_path / name, reuse=reuse, shard_size="30KB")
        for name, reuse in (("a", URL), ("b", two_nights))
    ]
    assert plans[0] == plans[1]
    assert store.objects == before


def test_the_commands(two_nights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = use_server(server("ministack"), monkeypatch)
    assert run("push", "--quiet", two_nights, url).exit_code == 0
    done = run("verify", "--quiet", "--deep", "--scratch", tmp_path, url)
    assert (done.exit_code, done.stdout.startswith(f"{url}: whole; ")) == (0, True), done.stderr
    assert run("log", url).stdout.startswith("* 2")
    assert run("gc", "--keep", 1, "--grace", "0s", "--dry-run", url).stdout.startswith(f"{url}: 0 generations")
    assert f"{url}: generation 1 is not kept" in errors_of(2, "rollback", url, 1)
    assert "is not pinned" in run("unpin", url).stdout
    assert run("stats", url).stdout == run("stats", two_nights).stdout
    shown = run("build", "--dry-run", *SMALL_SHARDS, two_nights.parent / "raw", url)
    assert (shown.exit_code, "free" in shown.stdout, "; 0 of them exist already" in shown.stdout) == (0, False, True)
    for command in ("bench", "repair"):
        refused = run(command, url)
        assert (refused.exit_code, "no URL; " in refused.stderr, url in refused.stderr) == (2, True, True)
    assert f"packer pull {url} OUT" in errors_of(2, "verify", "--sha256sums", url)
