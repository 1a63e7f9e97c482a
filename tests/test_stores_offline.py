"""A pack in a cache is read while its store is away: with a warning, or with `offline=True` without asking."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import make_raw, pack
from scenes.tiny import SHARDS as SMALL_SHARDS
from test_stores_cache import Remote, rows
from torch.utils.data import DataLoader

import readers.location
from readers import RequestError, SegDataset, open_dataset
from readers.contract.errors import StoreBusyError, StoreError
from readers.contract.manifest import Manifest, generation_path

URL = "s3://nobody/out"


class Away(Remote):
    """A bucket that answers until it is `away`."""

    url, away = URL, False

    def fetch(self, name: str, write: Any) -> None:
        if self.away:
            raise StoreBusyError(f"{URL}/{name}: 503 Service Unavailable")
        super().fetch(name, write)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("offline")
    make_raw(folder / "raw", {"train": 20})
    return pack(folder / "raw", folder / "out", *SMALL_SHARDS)


@pytest.fixture
def store(out: Path, monkeypatch: pytest.MonkeyPatch) -> Away:
    store = Away(out)
    monkeypatch.setattr(readers.location, "open_store", lambda url: store)
    monkeypatch.setattr("readers.stores.waiting.RETRY_SECONDS", 0.0)
    return store


@pytest.fixture
def whole(out: Path, store: Away, tmp_path: Path) -> list[bytes]:
    """Fill the cache, and return the rows. Then the store is away."""
    expected = rows(open_dataset(out))
    assert rows(opened(tmp_path)) == expected
    store.away = True
    return expected


def opened(target: Path, **options: Any) -> SegDataset:
    return open_dataset(URL, cache=target, **options)


@pytest.mark.parametrize("generation", [None, 1])
def test_the_cache_serves_while_the_store_is_away(tmp_path: Path, whole: list[bytes], generation: int | None) -> None:
    said = r"503 Service Unavailable; reads generation 1 of 20.*Z, 0 hours old; (\d+) of its \1 shards are there in "
    with pytest.warns(RuntimeWarning, match=said) as warned:
        assert rows(opened(tmp_path, generation=generation)) == whole
    assert warned[0].filename == __file__


def test_offline_asks_no_store_also_in_workers(
    tmp_path: Path, whole: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers.location, "open_store", lambda url: pytest.fail("a store was opened"))
    dataset = opened(tmp_path, offline=True)
    assert rows(dataset) == whole
    batches = DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context="fork")
    assert [image.numpy().tobytes() + label.numpy().tobytes() for image, label in batches] == whole


def test_who_wants_the_store_gets_its_error(tmp_path: Path, whole: list[bytes]) -> None:
    with pytest.raises(StoreBusyError, match="503"):
        opened(tmp_path, offline=False)


def test_what_the_cache_lacks_is_named(tmp_path: Path, whole: list[bytes]) -> None:
    with pytest.raises(StoreError, match=r"has no generation 7 of it, and offline=True asks no store"):
        opened(tmp_path, generation=7, offline=True)
    with pytest.raises(StoreError, match="has no generation of it"):
        opened(tmp_path / "new", offline=True)
    with pytest.raises(StoreBusyError, match="503"):
        opened(tmp_path, generation=7)


def test_missing_shards_are_named_in_each_process(tmp_path: Path, whole: list[bytes]) -> None:
    dataset = opened(tmp_path, offline=True)
    for path in tmp_path.glob("segpack-*/.cache/packs/*/shards/*.json"):
        path.unlink()
    lacking = r"shards/train-.*\.receipt\.json: is not in the cache, and offline=True asks no store"
    with pytest.raises(StoreError, match=lacking):
        rows(dataset)
    with pytest.raises(StoreError, match=lacking):
        list(DataLoader(dataset, batch_size=None, num_workers=1, multiprocessing_context="fork"))


def test_the_newest_generation_is_the_one_published_last(tmp_path: Path, whole: list[bytes]) -> None:
    """A pack that was built again in the same folder counts from 1 again."""
    root = next(tmp_path.glob("segpack-*/.cache/packs/*"))
    manifest = Manifest.load(root, 1)
    for number, created in ((9, "2020-01-01T00:00:00Z"), (2, "2999-01-01T00:00:00Z"), (8, "soon")):
        generation_path(root, number).write_text(replace(manifest, generation=number, created=created).to_text())
    generation_path(root, 7).write_text("{")
    generation_path(root, 6).write_text(replace(manifest, created="~", table="f" * 64).to_text())
    assert opened(tmp_path, offline=True)._pack.manifest.generation == 8
    generation_path(root, 8).unlink()
    assert opened(tmp_path, offline=True)._pack.manifest.generation == 2


def test_a_folder_has_no_cache_to_read_from(out: Path) -> None:
    with pytest.raises(RequestError, match="offline=True needs cache="):
        open_dataset(out, offline=True)
