"""Parts of a plan that are built into a bucket become the pack of one build, whatever happens to some of them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from unittest import mock

import pytest
from conftest import SMALL_SHARDS, RawFolder, good, pack, run
from drills.made_stores import IGNORED, FaultyStore, MemoryStore
from drills.published import same
from store_servers import server, use_server
from test_build_parts import kill_in

import packer.building.commit_plan
import packer.publish.bucket
import packer.publish.upload
import packer.workers.run
from packer import build_part, commit_pack
from packer.building.commit_plan import missing_parts
from packer.building.plan_parts import PartSummary
from packer.building.summary import Summary
from packer.errors import BusyError, PartsError, TargetError
from packer.publish.generation import current_manifest
from packer.publish.target import REMARKS, TICKETS
from packer.shards.row_counts import SUFFIX as COUNTS
from packer.workers.planned import PlannedShards
from readers.contract.errors import StoreBusyError
from readers.contract.manifest import MANIFEST, MARK, Manifest
from readers.stores.heard import _Heard
from readers.stores.store import Data, Store

pytestmark = pytest.mark.usefixtures("in_process")
URL = "s3://bucket/out"


class Dying(MemoryStore):
    """A store to which objects below shards/ are sent until `left` were."""

    left = 1 << 30

    def create(self, name: str, data: Data) -> bool:
        if name.startswith("shards/"):
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
        return super().create(name, data)


@pytest.fixture(scope="module")
def plan(raw_folder: RawFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan of `raw_folder` with some ten shards."""
    folder = tmp_path_factory.mktemp("plan") / "plan"
    good("plan", "--quiet", *SMALL_SHARDS, raw_folder.path, folder)
    return folder


@pytest.fixture(scope="module")
def whole(raw_folder: RawFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same build in one go, into a folder."""
    return pack(raw_folder.path, tmp_path_factory.mktemp("whole") / "out", *SMALL_SHARDS)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Dying:
    """The store that every URL names."""
    found = Dying()
    use(found, monkeypatch)
    return found


def use(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (packer.building.commit_plan, packer.publish.bucket, packer.publish.upload):
        monkeypatch.setattr(module, "open_store", lambda url: store)


Build = Callable[[str], PartSummary]


@pytest.fixture
def build(plan: Path, tmp_path: Path) -> Build:
    """Build a part into the bucket, with an empty folder for scratch before and after."""

    def build(part: str) -> PartSummary:
        return build_part(plan, part, URL, workers=2, scratch=tmp_path)

    return build


def commit(plan: Path, scratch: Path, no_conditions: str = "refuse") -> Summary:
    return commit_pack(plan, URL, scratch=scratch, no_conditions=no_conditions)


def contents(store: MemoryStore) -> dict[str, bytes]:
    return {name: data for name, (data, *_) in store.objects.items()}


def copy_of(store: MemoryStore, folder: Path) -> Path:
    for name, (data, _, _) in store.objects.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def test_a_bucket_gets_what_a_folder_gets(plan: Path, whole: Path, store: Dying, build: Build, tmp_path: Path) -> None:
    """In any order, a part twice, and divided otherwise in between."""
    for part in ("3/3", "1/3", "3/3", "1/2", "2/3"):
        build(part)
    summary = commit(plan, tmp_path)
    assert not list(tmp_path.iterdir())
    local = tmp_path / "local"
    for part in ("1/3", "2/3", "3/3"):
        build_part(plan, part, local)
    commit_pack(plan, local)
    there = copy_of(store, tmp_path / "there")
    assert same(there, whole)
    assert same(local, whole)
    names = {
        path.relative_to(local).as_posix() for path in local.rglob("*") if path.is_file() and path.suffix != COUNTS
    }
    names = {name for name in names if not name.startswith(REMARKS)}
    assert {name for name in store.objects if not name.endswith("/of-2")} == names - {".lock"}
    assert (summary.rows, summary.manifest.generation) == (32, 1)
    before = contents(store)
    assert commit(plan, tmp_path).manifest == summary.manifest
    assert contents(store) == before


def test_a_first_run_of_a_part_lists_tickets_alone(store: Dying, build: Build) -> None:
    """Thousands of parts would each list millions of shards."""
    store.put(MARK, b"")
    with mock.patch.object(store, "list", side_effect=store.list) as listed:
        build("1/3")
    assert {call.args[0].partition("/")[0] for call in listed.call_args_list} == {TICKETS}


def test_one_of_sixteen_parts_is_missing(plan: Path, whole: Path, store: Dying, build: Build, tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=f"{URL}: no part of a plan was built there"):
        missing_parts(plan, URL)
    with pytest.raises(TargetError, match=f"{URL}: no part of a plan was built there"):
        commit(plan, tmp_path)
    assert not store.objects
    for number in range(1, 17):
        if number != 5:
            build(f"{number}/16")
    assert list(map(str, missing_parts(plan, URL, tmp_path))) == ["5/16"]
    with pytest.raises(PartsError, match="nothing was published; run the parts again: 5/16"):
        commit(plan, tmp_path)
    assert MANIFEST not in store.objects
    assert build("5/16").built == 1
    assert missing_parts(plan, URL, tmp_path) == []
    commit(plan, tmp_path)
    assert same(copy_of(store, tmp_path / "there"), whole)


@pytest.mark.parametrize("left", [4, 5, 6])
def test_a_part_dies_while_it_sends(
    plan: Path, whole: Path, store: Dying, build: Build, tmp_path: Path, left: int
) -> None:
    store.left = left
    with pytest.raises(KeyboardInterrupt):
        build("1/1")
    assert not list(tmp_path.iterdir())
    sent = contents(store)
    done = sum("-" in name.rpartition("/")[2] for name in sent if name.startswith(f"{TICKETS}/")) - 1
    store.left = 1 << 30
    summary = build("1/1")
    assert summary.shards - summary.built == done
    assert {name: store.objects[name][0] for name in sent} == sent
    commit(plan, tmp_path)
    assert same(copy_of(store, tmp_path / "there"), whole)


def test_a_part_runs_twice_at_once(plan: Path, whole: Path, store: Dying, tmp_path: Path) -> None:
    start = Barrier(2)

    def twice(number: int) -> PartSummary:
        (tmp_path / str(number)).mkdir()
        start.wait()
        return build_part(plan, "1/1", URL, workers=1, scratch=tmp_path / str(number))

    with ThreadPoolExecutor(2) as threads:
        assert all(summary.rows for summary in threads.map(twice, range(2)))
    commit(plan, tmp_path)
    assert same(copy_of(store, tmp_path / "there"), whole)


def test_two_commits_at_once(plan: Path, whole: Path, store: Dying, build: Build, tmp_path: Path) -> None:
    build("1/1")
    start = Barrier(2)

    def at_once(number: int) -> Manifest | None:
        (tmp_path / str(number)).mkdir()
        start.wait()
        try:
            return commit(plan, tmp_path / str(number)).manifest
        except BusyError:  # the other one has claimed the generation, and publishes it in a moment
            return None

    with ThreadPoolExecutor(2) as threads:
        published = [manifest for manifest in threads.map(at_once, range(2)) if manifest is not None]
    assert published
    assert all(manifest == current_manifest(store) for manifest in published)
    assert same(copy_of(store, tmp_path / "there"), whole)


def test_faults_of_the_store(plan: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = MemoryStore()
    store = FaultyStore(plain, random.Random(1), 0.1)
    use(store, monkeypatch)
    monkeypatch.setattr("readers.stores.waiting.FIRST_PAUSE", 0)
    steps: list[Callable[[], object]] = [
        lambda: build_part(plan, "1/2", URL),
        lambda: build_part(plan, "2/2", URL),
        lambda: commit(plan, tmp_path),
    ]
    for step in steps:
        for _ in range(100):
            try:
                step()
                break
            except BusyError:
                continue
    assert len(store.faults) > 4
    assert same(copy_of(plain, tmp_path / "there"), whole)
    assert not [name for name in plain.objects if name.startswith(".") and name != MARK]


class Busy(MemoryStore):
    """A store that answers 503 for the first objects below shards/."""

    left = 20

    def create(self, name: str, data: Data) -> bool:
        if name.startswith("shards/") and self.left:
            self.left -= 1
            raise StoreBusyError(f"{URL}/{name}: status 503 (SlowDown)")
        return super().create(name, data)


def test_a_part_that_waits_for_a_bucket_says_so_once(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(Busy(), monkeypatch)
    monkeypatch.setattr("readers.stores.waiting.HEARD_SECONDS", 0.0)
    monkeypatch.setattr("readers.stores.waiting.FIRST_PAUSE", 0.0)
    monkeypatch.setattr("readers.stores.heard._HEARD", _Heard())
    lines = good("build-part", "--quiet", "--plan", plan, "--part", "1/1", URL).stderr.splitlines()
    [line] = [line for line in lines if line.startswith("waiting")]
    words = r"waiting   s3://bucket/out/shards/\S+: status 503 \(SlowDown\); it is tried again until \d\d:\d\d:\d\d"
    assert re.fullmatch(words, line)


def test_other_bytes_under_the_name_of_a_shard_are_not_replaced(
    plan: Path, store: Dying, build: Build, tmp_path: Path
) -> None:
    build("1/1")
    shard = next(name for name in sorted(store.objects) if name.endswith(".image.npy"))
    for ticket in [name for name in store.objects if name.startswith(TICKETS)]:
        store.delete([ticket])
    store.put(shard, b"other")
    with pytest.raises(TargetError, match=f"{shard}: has other bytes than this machine makes"):
        build("1/1")
    assert store.objects[shard][0] == b"other"
    store.delete([shard])
    build("1/1")
    assert commit(plan, tmp_path).rows == 32


def test_a_shard_that_was_cut_is_missing(plan: Path, store: Dying, build: Build, tmp_path: Path) -> None:
    build("1/1")
    shard = next(name for name in sorted(store.objects) if name.endswith(".image.npy"))
    whole = store.objects[shard][0]
    store.delete([shard])
    assert len(missing_parts(plan, URL, tmp_path)) == 1
    assert build("1/1").built == 1
    assert store.objects[shard][0] == whole


def test_a_store_without_conditions_is_refused_or_locked(
    plan: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore(IGNORED)
    use(store, monkeypatch)
    build_part(plan, "1/1", URL, scratch=tmp_path)  # it publishes nothing
    with pytest.raises(TargetError, match="does not keep conditional writes"):
        commit(plan, tmp_path)
    assert MANIFEST not in store.objects
    commit(plan, tmp_path, "lock")
    assert same(copy_of(store, tmp_path / "there"), whole)


def test_a_store_of_fsspec(plan: Path, whole: Path) -> None:
    pytest.importorskip("fsspec")
    url = "memory://parts/out"
    for part in ("1/2", "2/2", "2/2"):
        build_part(plan, part, url)
    assert commit_pack(plan, url, no_conditions="lock").manifest.same_data(Manifest.load(whole))


def test_what_is_refused_before_work(plan: Path, store: Dying, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put("photos/cat.jpg", b"cat")
    with pytest.raises(TargetError, match=r"is not a packed data set \(it holds photos/cat.jpg\)"):
        build_part(plan, "1/1", URL)
    store.delete(["photos/cat.jpg"])
    with pytest.raises(TargetError, match="there is no such folder"):
        build_part(plan, "1/1", URL, scratch=tmp_path / "none")
    monkeypatch.setattr("packer.publish.free_space.free_space", lambda folder: 1000)
    with pytest.raises(TargetError, match="name another folder with --scratch"):
        build_part(plan, "1/1", URL, scratch=tmp_path)
    assert not [name for name in store.objects if name.startswith("shards/")]
    with pytest.raises(TargetError, match="has 1,000 free"):
        build_part(plan, "1/1", tmp_path / "out")
    assert not list((tmp_path / "out" / "shards").iterdir())


def test_tickets_are_of_the_plan_that_was_built(
    plan: Path, raw_folder: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody replaces the plan by one of the same rows while a part begins."""
    mine, other = tmp_path / "mine", tmp_path / "other"
    good("plan", "--quiet", *SMALL_SHARDS, raw_folder.path, mine)
    good("plan", "--quiet", *SMALL_SHARDS, "--max-bad", 3, "--on-bad", "skip", raw_folder.path, other)
    real = PlannedShards.open

    def replaced(folder: Path, **options: object) -> PlannedShards:
        shards = real(folder, **options)  # type: ignore[arg-type]
        mine.rename(tmp_path / "old")
        other.rename(mine)
        return shards

    monkeypatch.setattr(PlannedShards, "open", replaced)
    build_part(mine, "1/1", tmp_path / "out")
    assert commit_pack(plan, tmp_path / "out").rows == 32


def test_the_commands(plan: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part is killed while it sends its third shard, and runs again."""
    url, scratch = use_server(server("ministack"), monkeypatch), ("--scratch", tmp_path / "scratch")
    (tmp_path / "scratch").mkdir()
    part = ("build-part", "--quiet", "--workers", 1, "--plan", plan, "--part", "1/2", *scratch, url)
    kill_in("packer.publish.upload", "created", 7, *part)
    assert list((tmp_path / "scratch").iterdir())
    assert run("commit", "--plan", plan, url).exit_code == 1
    done = good(*part)
    assert f"{url}: part 1/2, " in done.stdout
    built, there = map(int, re.findall(r"(\d+) (?:shards built|were there)", done.stdout))
    assert (built + there, there <= 2) == (5, True)  # shards are sent at the same time
    assert not list((tmp_path / "scratch").iterdir())
    assert run("commit", "--plan", plan, "--missing", url).stdout == "2/2\n"
    good("build-part", "--quiet", "--plan", plan, "--part", "2/2", url)
    assert run("commit", "--plan", plan, "--missing", url).exit_code == 0
    done = good("commit", "--quiet", "--plan", plan, *scratch, url)
    assert done.stdout.startswith(f"{url}: generation 1, 32 rows")
    good("pull", "--quiet", url, tmp_path / "back")
    assert same(tmp_path / "back", whole)
