"""Stores that ignore conditions are found by what they do; a lock object keeps builds apart in them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace

import pytest
from conftest import HANG
from drills.made_stores import IGNORED, LATE, FaultyStore, MemoryStore
from store_servers import proxy, server, use_server

from packer.errors import BusyError, TargetError
from packer.publish import lock_object
from packer.publish.conditional_writes import created
from packer.publish.local_mirror import sizes_of_pack
from packer.publish.lock_object import LOCKS, exclusive
from packer.publish.store_probe import PREFIX, fault_of_conditions
from readers.contract.errors import StoreBusyError, StoreError
from readers.contract.leftovers import MAX_AGE
from readers.contract.manifest import MARK
from readers.stores import waiting
from readers.stores.folder_store import FolderStore
from readers.stores.fsspec_store import FsspecStore
from readers.stores.object_store import ObjectStore
from readers.stores.store import Data, Store, Version
from readers.stores.waiting import answered


class CreatesOnly(MemoryStore):
    """A store that knows no version, and replaces whatever is there."""

    def replace(self, name: str, data: Data, old: Version) -> bool:
        self.put(name, data)
        return True


class ReadOnly(MemoryStore):
    def put(self, name: str, data: Data) -> None:
        raise StoreError("memory://: 403, no permission to write")


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("readers.stores.waiting.FIRST_PAUSE", 0)


def test_stores_that_keep_conditions_pass_and_stay_clean(tmp_path: Path) -> None:
    memory, folder = MemoryStore(), FolderStore(tmp_path)
    assert fault_of_conditions(memory) is fault_of_conditions(folder) is None
    assert not memory.objects
    assert not list(folder.list(""))
    assert fault_of_conditions(FaultyStore(memory, random.Random(3), 0.02)) is None


class KeepsAll(MemoryStore):
    """A store whose objects nobody may delete."""

    def delete(self, names: Iterable[str]) -> None:
        raise StoreError("memory://: 403, no permission to delete")


def test_a_store_that_deletes_nothing_passes_the_probe_and_loses_no_build() -> None:
    store = KeepsAll()
    assert fault_of_conditions(store) is None
    with exclusive(KeepsAll(IGNORED), may_lock=True) as locked:
        locked.put("published", b"")


def test_old_locks_and_probes_are_deleted_by_the_next_build(tmp_path: Path) -> None:
    store = MemoryStore()
    for name, age in ((f"{LOCKS}/dead", 2 * MAX_AGE), (f"{PREFIX}1/0", 2 * MAX_AGE), (f"{LOCKS}/alive", 0)):
        store.put(name, b"")
        store.objects[name] = (b"", "", time.time() - age)
    sizes_of_pack(store)
    assert store.objects.keys() == {MARK, f"{LOCKS}/alive"}


def test_a_store_that_never_answers_is_not_asked_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def silent(*arguments: object) -> bool:
        calls.append("call")
        raise StoreBusyError("no answer")

    store = MemoryStore()
    monkeypatch.setattr(store, "create", silent)
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    clock = SimpleNamespace(monotonic=lambda: now, sleep=sleep)
    monkeypatch.setattr(waiting, "time", clock)
    monkeypatch.setattr(waiting, "FIRST_PAUSE", 0.05)
    asks: list[Callable[[], bool]] = [lambda: answered(silent), lambda: created(store, "a", b"")]
    for ask in asks:
        begun = now
        calls.clear()
        with pytest.raises(StoreBusyError):
            ask()
        assert waiting.RETRY_SECONDS <= now - begun <= waiting.RETRY_SECONDS + waiting.LONGEST_PAUSE
        assert 15 < len(calls) < 50


@pytest.mark.parametrize(
    "store", [MemoryStore(IGNORED), MemoryStore(LATE), CreatesOnly(), FsspecStore("memory://probed")]
)
def test_stores_that_do_not_keep_conditions_are_refused(store: Store) -> None:
    assert fault_of_conditions(store)
    with pytest.raises(TargetError, match="--no-conditions lock"), exclusive(store):
        pass
    assert not list(store.list(""))


@pytest.mark.parametrize(
    ("endpoint", "keeps"),
    [
        (lambda: server("ministack"), True),
        (lambda: proxy("moto", one_put_at_a_time=True).url, True),
        (lambda: proxy("ministack", ignores_conditions=True).url, False),
        pytest.param(lambda: server("rclone"), False, marks=pytest.mark.long),
    ],
    ids=["ministack", "moto", "ignoring proxy", "rclone"],
)
def test_servers_are_judged_by_what_they_do(
    endpoint: Callable[[], str], keeps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ObjectStore(use_server(endpoint(), monkeypatch))
    assert (fault_of_conditions(store) is None) == keeps
    assert not list(store.list(""))


def test_a_store_that_cannot_be_written_says_so() -> None:
    with pytest.raises(StoreError, match="no permission"):
        fault_of_conditions(ReadOnly())


def test_a_locked_store_compares_by_reading() -> None:
    store = MemoryStore(IGNORED)
    with exclusive(store, True) as locked:
        assert [name.partition("/")[0] for name in store.objects] == [LOCKS]
        assert locked.create("a", b"1")
        assert not locked.create("a", b"2")
        _, old = locked.read("a")
        assert locked.replace("a", b"2", old)
        assert not locked.replace("a", b"3", old)
        assert not locked.replace("b", b"3", old)
        with pytest.raises(BusyError, match="is being changed by process"), exclusive(store, True):
            pass
        assert locked.replace("a", b"4", locked.read("a")[1]), "the loser left the lock alone"
    assert list(store.objects) == ["a"]


def test_of_builders_at_the_same_moment_at_most_one_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_object, "fault_of_conditions", lambda store: "is made up")
    store, start, inside = MemoryStore(IGNORED), Barrier(4), list[int]()

    def build(number: int) -> bool:
        start.wait(HANG)
        try:
            with exclusive(store, True) as locked:
                locked.create(f"object-{number}", b"")
                inside.append(number)
                assert inside == [number]
                inside.remove(number)
                return True
        except BusyError:
            return False

    with ThreadPoolExecutor(4) as threads:
        for _ in range(50):
            list(threads.map(build, range(4)))
    assert not list(store.list(LOCKS))
    assert build_alone(store)


def build_alone(store: Store) -> bool:
    with exclusive(store, True) as locked:
        return locked.create("alone", b"")


def test_a_lock_that_nobody_renews_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore(IGNORED)
    store.put(f"{LOCKS}/killed", b"{}")
    with pytest.raises(BusyError), exclusive(store, True):
        pass
    data, tag, when = store.objects[f"{LOCKS}/killed"]
    store.objects[f"{LOCKS}/killed"] = data, tag, when - 2 * lock_object.LIFETIME
    assert build_alone(store)


def test_a_lock_is_renewed_until_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_object, "RENEWAL", 0.001)
    store = MemoryStore(IGNORED)
    with exclusive(store, True) as locked:
        (lock,) = [name for name in store.objects if name.startswith(LOCKS)]
        first = store.objects[lock][2]
        while store.objects[lock][2] == first:
            pass
        assert locked.create("a", b"")
    assert list(store.objects) == ["a"]


def test_a_renewal_that_fails_for_any_reason_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_object, "RENEWAL", 0.001)
    store, tries = MemoryStore(IGNORED), list[str]()
    with exclusive(store, True) as locked:
        put = store.put

        def fails_once(name: str, data: bytes) -> None:
            tries.append(name)
            if len(tries) == 1:
                raise PermissionError("a token has expired")
            put(name, data)

        monkeypatch.setattr(store, "put", fails_once)
        while len(tries) < 3:
            pass
        assert locked.create("a", b"")
    assert list(store.objects) == ["a"]


def test_a_store_without_times_has_no_locks() -> None:
    store = MemoryStore(IGNORED)
    entries = store.list
    store.list = lambda folder: (replace(entry, modified=0.0) for entry in entries(folder))  # type: ignore[method-assign]
    with pytest.raises(StoreError, match="shows no times"), exclusive(store, True):
        pass


def test_a_lock_that_was_lost_publishes_nothing() -> None:
    store = MemoryStore(IGNORED)
    with exclusive(store, True) as locked:
        store.delete([entry.name for entry in store.list(LOCKS)])
        with pytest.raises(BusyError, match="is gone"):
            locked.create("a", b"")
    assert not store.objects
