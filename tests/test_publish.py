"""Publishing in a folder or a bucket: lost replies, builds that race, stores that ignore conditions."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from any_pack import FIELDS, write_any_pack
from conftest import HANG
from drills.made_stores import FaultyStore, MemoryStore

from packer.errors import BusyError, PinnedError
from packer.publish.conditional_writes import created, replaced
from packer.publish.generation import Current, current_manifest, make_current, read_current, restore_manifest
from packer.publish.history import HISTORY, kept_numbers, never_current, read_history
from packer.publish.pin import check_pin, is_pinned, pin, unpin
from readers.contract.errors import StoreBusyError
from readers.contract.manifest import MANIFEST, Manifest
from readers.stores.folder_store import FolderStore
from readers.stores.store import Data, Store, Version

RACES = 200


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    """The manifest of some pack, with number 1."""
    out = tmp_path_factory.mktemp("publish") / "out"
    write_any_pack(out, "npy", fields=FIELDS[1:2])
    return Manifest.load(out)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("readers.stores.waiting.FIRST_PAUSE", 0)


@pytest.fixture(params=["folder", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return FolderStore(tmp_path / "out") if request.param == "folder" else MemoryStore()


def next_one(store: Store, first: Manifest, data: int) -> Manifest:
    """A manifest with the next number. Manifests with the same `data` describe the same data."""
    return replace(first, generation=max(kept_numbers(store), default=0) + 1, bytes=data)


def race(*functions: Callable[[], object]) -> list[object]:
    """Call functions at the same moment; return the result or the error of each."""
    start = Barrier(len(functions))

    def run(function: Callable[[], object]) -> object:
        start.wait(HANG)
        try:
            return function()
        except BusyError as error:
            return error

    with ThreadPoolExecutor(len(functions)) as threads:
        return list(threads.map(run, functions))


def test_generations_follow_each_other_in_any_store(store: Store, first: Manifest) -> None:
    assert read_current(store) == Current(None, None)
    for number in (1, 2, 3):
        manifest = next_one(store, first, number)
        assert manifest.generation == number
        make_current(store, manifest)
        assert current_manifest(store) == manifest
    assert kept_numbers(store) == {1, 2, 3}
    assert (read_history(store).current, set(read_history(store).ended)) == (3, {1, 2})
    make_current(store, replace(first, generation=1, bytes=1))
    assert (read_history(store).current, set(read_history(store).ended)) == (1, {2, 3})


def test_a_damaged_manifest_is_replaced_and_a_damaged_history_forgotten(store: Store, first: Manifest) -> None:
    make_current(store, next_one(store, first, 1))
    store.put(MANIFEST, b"{")
    assert current_manifest(store) is None
    assert read_current(store).version is not None
    make_current(store, next_one(store, first, 2))
    store.put(HISTORY, b"{")
    assert read_history(store).ended.keys() == {1, 2}
    store.put("generations/000003.json", b"{")
    make_current(store, replace(first, generation=3))
    assert current_manifest(store) == replace(first, generation=3)
    store.put(MANIFEST, b"{")
    assert restore_manifest(store) is None, "the table is not there"


def test_a_pin_is_an_object(store: Store) -> None:
    assert not is_pinned(store)
    assert not unpin(store)
    pin(store)
    pin(store)
    with pytest.raises(PinnedError, match="packer unpin"):
        check_pin(store)
    assert unpin(store)
    check_pin(store)


def test_of_builds_that_race_one_publishes(store: Store, first: Manifest) -> None:
    """Both began at the same generation, and then built different data."""
    for number in range(RACES if isinstance(store, MemoryStore) else RACES // 4):
        before = read_current(store)
        makers = [partial(make_current, store, next_one(store, first, 2 * number + n), before) for n in (1, 2)]
        found = race(*makers)
        assert sorted(isinstance(each, BusyError) for each in found) == [False, True], number
        current = current_manifest(store)
        assert current is not None
        assert current == makers[[isinstance(each, BusyError) for each in found].index(False)].args[1]
        assert read_history(store).current in {None, *kept_numbers(store)}
        if number:
            loser = ({2 * number + 1, 2 * number + 2} & kept_numbers(store)) - {current.generation}
            assert loser <= never_current(kept_numbers(store), current.generation, read_history(store))


def test_a_build_that_wakes_up_late_publishes_nothing(store: Store, first: Manifest) -> None:
    make_current(store, next_one(store, first, 1))
    before = read_current(store)
    make_current(store, next_one(store, first, 2))
    with pytest.raises(BusyError, match="another build has published"):
        make_current(store, next_one(store, first, 3), before)
    current = current_manifest(store)
    assert current is not None
    assert (current.generation, read_history(store).current) == (2, 2)
    make_current(store, next_one(store, first, 4))
    assert current_manifest(store) == replace(first, generation=4, bytes=4), "3 is an unused number"


def test_who_claims_a_number_keeps_it(store: Store, first: Manifest) -> None:
    make_current(store, next_one(store, first, 1))
    mine, theirs = next_one(store, first, 2), next_one(store, first, 3)
    assert created(store, "generations/000002.json", theirs.to_text().encode())
    with pytest.raises(BusyError):
        make_current(store, mine)
    assert current_manifest(store) == replace(first, bytes=1)


class OnceLost(MemoryStore):
    """A store whose first conditional write is done, but refused, or without a reply."""

    def __init__(self, refused: bool) -> None:
        super().__init__()
        self._refused, self._faults = refused, 1

    def _put_if(self, name: str, data: Data, old: Version | None) -> bool:
        done = super()._put_if(name, data, old)
        if not self._faults:
            return done
        self._faults = 0
        if self._refused:
            return False
        raise StoreBusyError("no reply")


@pytest.mark.parametrize("refused", [True, False])
def test_a_refusal_is_not_believed(refused: bool) -> None:
    assert created(OnceLost(refused), "a", b"mine")
    store = OnceLost(refused)
    store.put("a", b"1")
    old = store.read("a")[1]
    assert replaced(store, "a", b"mine", old)
    assert not replaced(store, "a", b"late", old)
    assert not created(store, "a", b"late")
    assert not replaced(store, "missing", b"late", old)


def test_a_write_that_did_not_happen_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    store = FaultyStore(MemoryStore(), random.Random(1), 0.3)
    assert all(created(store, f"object-{number}", b"1") for number in range(100))
    assert store.faults.total() > 20
    monkeypatch.setattr("readers.stores.waiting.RETRY_SECONDS", 0.1)
    with pytest.raises(StoreBusyError):
        created(FaultyStore(MemoryStore(), random.Random(1), 1), "a", b"1")


def test_with_faults_too_one_of_two_builds_publishes(first: Manifest) -> None:
    """Neither lost replies nor refusals make both or none of them succeed, as long as the store answers."""
    plain, dice = MemoryStore(), random.Random(5)
    for number in range(RACES):
        before = read_current(plain)
        store = FaultyStore(plain, dice, 0.1)

        def publish(data: int, store: Any = store, before: Current = before) -> None:
            while True:
                try:
                    make_current(store, next_one(plain, first, data), before)
                    return
                except BusyError as error:
                    now = current_manifest(plain)
                    if now is not None and now.bytes == data:
                        return
                    if "another build" in str(error):
                        raise

        found = race(partial(publish, 2 * number + 1), partial(publish, 2 * number + 2))
        current = current_manifest(plain)
        assert current is not None
        winners = [2 * number + n for n, each in enumerate(found, 1) if not isinstance(each, BusyError)]
        assert [current.bytes] == winners, number
