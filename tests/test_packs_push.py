"""`packer push` and `packer pull`: only what is missing, every byte checked, nothing of others replaced."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from conftest import RawFolder, pack, run
from drills.made_stores import IGNORED, MemoryStore
from faulty_proxy import BUSY, LOST, Request
from store_servers import proxy, use_server

import packer.packs.push
from packer.errors import BusyError, PinnedError, TargetError, UsageError
from packer.packs.copy_shards import Copying
from packer.packs.push import pull_pack, push_pack
from packer.packs.verify_pack import verify_pack
from packer.publish.generation import current_manifest
from packer.publish.pin import pin
from readers.contract.errors import DamagedError, NoPackError, StoreBusyError
from readers.contract.manifest import Manifest
from readers.stores.open_store import open_store
from readers.stores.store import Data

OWN = (".lock", "packer.toml", "history.json", "stamps/", "remarks/")
"""These are not copied."""


class Dying(MemoryStore):
    """A store to which a shard is sent until `left` objects were written."""

    left = 1 << 30

    def put(self, name: str, data: Data) -> None:
        if name.startswith("shards/"):
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
        super().put(name, data)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Dying:
    """The store that every URL names."""
    found = Dying()
    use(found, monkeypatch)
    return found


def use(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packer.packs.push, "open_store", lambda url: store)


def files(folder: Path) -> dict[str, bytes]:
    """Return what is copied of a pack."""
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: data for name, data in found.items() if not name.startswith(OWN)}


def test_a_folder_gets_what_it_lacks(two_nights: tuple[Path, Path], tmp_path: Path) -> None:
    first, second = two_nights
    done = push_pack(first, tmp_path / "there")
    assert done.shards == done.manifest.shards > 3
    assert files(tmp_path / "there") == files(first)
    assert push_pack(first, tmp_path / "there").shards == 0
    night = push_pack(second, tmp_path / "there")
    assert 0 < night.shards < night.manifest.shards
    assert 0 < night.bytes < night.manifest.bytes
    assert Manifest.load(tmp_path / "there") == Manifest.load(second) == night.manifest
    assert not verify_pack(tmp_path / "there")
    assert files(second).items() <= files(tmp_path / "there").items()
    assert pull_pack(tmp_path / "there", tmp_path / "back").shards == night.manifest.shards
    assert files(tmp_path / "back").items() <= files(second).items()
    assert not verify_pack(tmp_path / "back")


def test_a_push_that_died_is_repeated(two_nights: tuple[Path, Path], store: Dying, tmp_path: Path) -> None:
    first, second = two_nights
    store.left = 7
    with pytest.raises(KeyboardInterrupt):
        push_pack(first, "s3://bucket/out", workers=1)
    assert "manifest.json" not in store.objects
    store.left = 1 << 30
    done = push_pack(first, "s3://bucket/out", workers=1)
    objects = sum(name.startswith("shards/") for name in files(first)) // done.manifest.shards
    assert done.manifest.shards - done.shards == 7 // objects > 0
    assert {name: data for name, (data, *_) in store.objects.items() if name != "history.json"} == files(first)
    push_pack(second, "s3://bucket/out")
    assert {name: store.objects[name][0] for name in files(second)} == files(second)


def test_a_bucket_with_faults(two_nights: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = two_nights
    faulty = proxy("ministack")
    url = use_server(faulty.url, monkeypatch)
    met: set[tuple[str, str]] = set()

    def once(request: Request) -> str | None:
        """Every object meets one lost reply when it is written, and one refusal when it is read."""
        fault = {"PUT": LOST, "GET": BUSY}.get(request.method)
        if fault is None or ".probe-" in request.name or (request.method, request.name) in met:
            return None
        met.add((request.method, request.name))
        return fault if len(met) % 4 == 0 or request.name.endswith("manifest.json") else None

    for out in (first, second):
        with faulty.doing(once):
            done = run("push", "--quiet", "--json", out, url)
            assert done.exit_code == 0, done.stderr
            assert faulty.faults > 2
        assert current_manifest(open_store(url)) == Manifest.load(out)
        met.clear()
    assert 0 < json.loads(done.stdout)["copied_shards"] < json.loads(done.stdout)["shards"]
    with faulty.doing(lambda request: None):
        assert push_pack(second, url).shards == 0
        sent = [
            request.name for request in faulty.requests if request.method == "PUT" and ".probe-" not in request.name
        ]
        assert all(name.endswith(".npy") and "/generations/" in name for name in sent)
    with faulty.doing(once):
        done = run("pull", "--quiet", url, tmp_path / "back")
        assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith(f"{tmp_path / 'back'}: has generation 2 of {url}; ")
    assert not verify_pack(tmp_path / "back")
    assert files(tmp_path / "back").items() <= files(second).items()


def test_a_newer_generation_there_is_refused(two_nights: tuple[Path, Path], tmp_path: Path) -> None:
    first, second = two_nights
    push_pack(second, tmp_path / "there")
    before = files(tmp_path / "there")
    with pytest.raises(TargetError, match=f"newer than generation 1 .*to get that one: packer pull .*there {first}"):
        push_pack(first, tmp_path / "there")
    assert files(tmp_path / "there") == before
    with pytest.raises(TargetError, match=r"newer than generation 1 .*: packer push"):
        pull_pack(first, tmp_path / "there")


def test_another_pack_there_is_refused(two_nights: tuple[Path, Path], raw_folder: RawFolder, tmp_path: Path) -> None:
    other = pack(raw_folder.path, tmp_path / "other")
    before = files(other)
    for out in two_nights:
        with pytest.raises(TargetError, match="name a new folder or URL"):
            push_pack(out, other)
    assert files(other) == before
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").touch()
    with pytest.raises(TargetError, match="is not a packed data set"):
        push_pack(other, tmp_path / "photos")


def test_a_number_that_was_taken_is_refused(
    two_nights: tuple[Path, Path], raw_folder: RawFolder, store: Dying, tmp_path: Path
) -> None:
    other = pack(raw_folder.path, tmp_path / "other")
    store.put("generations/000001.json", (other / "generations" / "000001.json").read_bytes())
    store.put(".segpack", b"")
    with pytest.raises(TargetError, match="a build there has taken number 1"):
        push_pack(two_nights[0], "s3://bucket/out")
    store.put("manifest.json", b"{")
    with pytest.raises(TargetError, match=r"manifest.json: is damaged; delete it"):
        push_pack(two_nights[0], "s3://bucket/out")


def test_damage_is_not_pushed(two_nights: tuple[Path, Path], store: Dying, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(two_nights[0], out)
    push_pack(out, "s3://bucket/out")
    whole = dict(store.objects)
    shard = next(name for name in sorted(files(out)) if name.endswith(".image.npy"))
    store.put(shard, b"short")
    push_pack(out, "s3://bucket/out")
    assert store.objects[shard][0] == whole[shard][0]
    data = bytearray((out / shard).read_bytes())
    data[-1] ^= 1
    (out / shard).write_bytes(data)
    store.delete([shard])
    with pytest.raises(
        DamagedError, match=f"nothing was published; packer repair fixes it\n.*{shard}: its digest differs"
    ):
        push_pack(out, "s3://bucket/out")
    assert shard not in store.objects
    store.put(shard, whole[shard][0][:-1] + b"?")
    with pytest.raises(DamagedError, match=f"{shard}: its digest differs"):
        pull_pack("s3://bucket/out", tmp_path / "new")
    assert not (tmp_path / "new" / "manifest.json").exists()


def test_what_cannot_be_pushed(two_nights: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = two_nights
    with pytest.raises(UsageError, match="packer pull s3://bucket/a OUT"):
        push_pack("s3://bucket/a", "s3://bucket/b")
    with pytest.raises(UsageError, match="packer push OUT s3://bucket/b"):
        pull_pack(first, "s3://bucket/b")
    with pytest.raises(NoPackError):
        push_pack(tmp_path / "none", tmp_path / "there")
    push_pack(first, tmp_path / "there")
    pin(tmp_path / "there")
    with pytest.raises(PinnedError):
        push_pack(second, tmp_path / "there")
    bad = MemoryStore(IGNORED)
    use(bad, monkeypatch)
    with pytest.raises(TargetError, match="--no-conditions lock"):
        push_pack(first, "s3://bucket/out")
    assert push_pack(first, "s3://bucket/out", no_conditions="lock").shards
    with pytest.raises(UsageError, match="expected refuse or lock"):
        push_pack(first, "s3://bucket/out", no_conditions="never")


def test_too_little_disk_is_known_before_the_first_shard(
    two_nights: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("packer.publish.free_space.free_space", lambda folder: 1000)
    with pytest.raises(TargetError, match="has 1,000 free"):
        pull_pack(two_nights[0], tmp_path / "new")
    assert not list((tmp_path / "new" / "shards").iterdir())


@pytest.mark.parametrize("overwritten", ["generations/000002.json", "manifest.json"])
def test_of_two_that_publish_one_is_refused(
    overwritten: str,
    two_nights: tuple[Path, Path],
    raw_folder: RawFolder,
    store: Dying,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = two_nights
    other = pack(raw_folder.path, tmp_path / "other")
    push_pack(first, "s3://bucket/out")
    theirs = (other / "generations" / "000001.json").read_bytes()
    real = Copying.copy

    def overtaken(copying: Copying, shards: list[int], workers: int) -> None:
        real(copying, shards, workers)
        store.put(overwritten, theirs)

    monkeypatch.setattr(Copying, "copy", overtaken)
    with pytest.raises(BusyError, match="another build has published"):
        push_pack(second, "s3://bucket/out")
    assert current_manifest(store) == Manifest.load(other if overwritten == "manifest.json" else first)


def test_a_store_that_does_not_answer_is_tried_later(
    two_nights: tuple[Path, Path], store: Dying, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(name: str, data: Data) -> None:
        raise StoreBusyError("503")

    monkeypatch.setattr(store, "put", busy)
    monkeypatch.setattr("readers.stores.waiting.RETRY_SECONDS", 0.2)
    with pytest.raises(BusyError, match="503"):
        push_pack(two_nights[0], "s3://bucket/out")
