"""The laws of all sources, one suite for each kind: whatever holds the rows, the pack is the same and no row is lost.

`stored_scenes` writes the same scenes for each kind. What only one kind can do is in a test of its own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drills.published import same
from stored_scenes import KINDS, Kind, Scenes, scenes_of

from packer.building import Summary, build
from packer.errors import InputError, LostFileError, RejectedError, TooManyRejectsError, UsageError
from packer.pairs.folds import Folds
from packer.pairs.split_by_hash import Shares
from packer.plan import request as requests
from packer.plan.make_plan import make_plan
from packer.plan.request import Request
from packer.publish.target import make_target, prepare_target
from packer.recipe.row_ref import RowRef
from packer.recipe.source import Loaded, PackedPixels, Source
from packer.shards.build_shard import build_shard
from packer.sources.reopen import reopen
from packer.workers.in_process import InProcess
from readers import open_dataset
from readers.contract.manifest import STORAGES, Manifest
from readers.contract.receipt import Receipt

KEYS = [f"scan {number:02}" for number in range(14)]
SEEDS = {key: number for number, key in enumerate(KEYS)}
SCENES = scenes_of(SEEDS)
REVERSED = dict(reversed(SCENES.items()))


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


@pytest.fixture(scope="module")
def shared(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scenes as this kind of source stores them, for tests that change nothing there."""
    rows = tmp_path_factory.mktemp("shared") / "rows"
    kind.write(rows, SCENES)
    return rows


@pytest.fixture(scope="module")
def shared_pack(kind: Kind, shared: Path) -> Path:
    """Their pack, also for tests that change nothing there."""
    packed(kind.open(shared), shared.with_name("out"))
    return shared.with_name("out")


@pytest.fixture
def place(kind: Kind, tmp_path: Path) -> Path:
    """The scenes once more, to be changed."""
    kind.write(tmp_path / "rows", SCENES)
    return tmp_path / "rows"


def test_splits_are_drawn_by_the_keys(kind: Kind, shared: Path, shared_pack: Path, tmp_path: Path) -> None:
    source, shares = kind.open(shared), Shares.parse("60/40")
    if source.keeps_splits:
        with pytest.raises(UsageError, match="have the splits that their keys name"):
            packed(source, tmp_path / "out", split="60/40")
        return
    packed(source, tmp_path / "out", split="60/40")
    assert {entry.name for entry in Manifest.load(tmp_path / "out").splits} == {"train", "val"}
    for split in ("train", "val"):
        rows = open_dataset(tmp_path / "out", split)
        assert {shares.split_of(source.group_of(rows.key(index))) for index in range(len(rows))} == {split}
    before, after = rows_of(shared_pack), rows_of(tmp_path / "out")
    assert before == after


def test_folds_are_drawn_or_listed_by_the_keys(kind: Kind, shared: Path, shared_pack: Path, tmp_path: Path) -> None:
    source, drawn = kind.open(shared), Folds.of(2)
    if source.keeps_splits:
        with pytest.raises(UsageError, match=r"--folds: .* have the splits that their keys name"):
            packed(source, tmp_path / "out", folds=2)
        return
    packed(source, tmp_path / "out", folds=2)
    groups = {source.group_of(row.key) for row in make_plan(request_of(source, tmp_path / "out")).found_rows.refs}
    vals = [sorted(group for group in groups if drawn.split_of(group) == f"fold{fold}") for fold in range(2)]
    listed = [{"train": vals[1 - fold], "val": vals[fold]} for fold in range(2)]
    (tmp_path / "splits_final.json").write_text(json.dumps(listed))
    packed(source, tmp_path / "listed", folds=tmp_path / "splits_final.json")
    assert shards_of(tmp_path / "listed") == shards_of(tmp_path / "out")
    assert rows_of(tmp_path / "out") == rows_of(shared_pack)
    for fold in range(2):
        rows = open_dataset(tmp_path / "out", "val", fold=fold)
        assert {source.group_of(rows.key(index)) for index in range(len(rows))} == set(vals[fold])
        assert len(rows) + len(open_dataset(tmp_path / "out", "train", fold=fold)) == len(SCENES)


def request_of(source: Source, out: Path, skip: bool = False, **options: Any) -> Request:
    options = {"classes": None if source.kind == "pack" else "4", "labels": "index", "shard_size": 9000, **options}
    return requests.request_of(source, out, on_bad="skip" if skip else "fail", **options)


def packed(source: Source, out: Path, workers: int = 1, **options: Any) -> Summary:
    pool = InProcess(workers, 60)
    return build(make_plan(request_of(source, out, **options), pool=pool), lambda rows: None, pool)


def rows_of(out: Path) -> dict[str, tuple[bytes, bytes]]:
    """Return the bytes of image and label of each row, by its key."""
    rows = open_dataset(out, "all")
    return {
        rows.key(index): (rows[index][0].numpy().tobytes(), rows[index][1].numpy().tobytes())
        for index in range(len(rows))
    }


def expected(scenes: Scenes) -> dict[str, tuple[bytes, bytes]]:
    return {key: (image.transpose(2, 0, 1).tobytes(), label.tobytes()) for key, (image, label) in scenes.items()}


def shards_of(out: Path) -> list[tuple[Any, ...]]:
    """Return the split, the keys and the checksums of each shard."""
    receipts = map(Receipt.load, sorted(out.glob("shards/*.receipt.json")))
    return sorted((receipt.split, receipt.keys, receipt.row_checksums) for receipt in receipts)


@pytest.mark.parametrize(
    "storage", [STORAGES[0], *(pytest.param(name, marks=pytest.mark.long) for name in STORAGES[1:])]
)
def test_the_rows_are_those_of_the_source(kind: Kind, shared: Path, tmp_path: Path, storage: str) -> None:
    summary = packed(kind.open(shared), tmp_path / "out", format=storage)
    assert (summary.rows, summary.rejects) == (len(KEYS), ())
    assert rows_of(tmp_path / "out") == expected(SCENES)


@pytest.fixture(scope="module")
def of_a_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pack of the same scenes in files."""
    folder = tmp_path_factory.mktemp("folder")
    KINDS["folder"].write(folder / "files", SCENES)
    packed(KINDS["folder"].open(folder / "files"), folder / "out")
    return folder / "out"


def test_shards_and_checksums_are_those_of_a_folder(shared_pack: Path, of_a_folder: Path) -> None:
    assert len(shards_of(shared_pack)) > 3
    assert shards_of(shared_pack) == shards_of(of_a_folder)
    assert Manifest.load(shared_pack).statistics == Manifest.load(of_a_folder).statistics


def test_a_shard_depends_on_its_rows_alone(kind: Kind, shared_pack: Path, tmp_path: Path) -> None:
    """Not on the order of the rows in the source, its path, the number of threads, or who opened it."""
    kind.write(tmp_path / "elsewhere", REVERSED)
    packed(kind.open(tmp_path / "elsewhere"), tmp_path / "again", workers=4)
    assert same(shared_pack, tmp_path / "again")


def _array(given: Any) -> Any:
    """Return what a source gives of a field: the bytes of a file, or pixels."""
    return np.asarray(given.pixels if isinstance(given, PackedPixels) else given)


def test_a_source_is_opened_again_by_its_text(kind: Kind, shared: Path) -> None:
    source = kind.open(shared)
    refs = list(source.rows())
    again = reopen(source.to_text())
    assert len(source.to_text()) < 4000, "it is sent to each worker"
    assert (again.kind, again.tools, sorted(ref.key for ref in refs)) == (source.kind, source.tools, KEYS)
    assert len({ref.parts for ref in refs}) == len(refs)
    for ref in refs:
        first, second = source.load(ref), again.load(ref)
        assert (first.identities, first.bad, second.bad) == (second.identities, None, None)
        assert all(map(np.array_equal, *(map(_array, loaded.data) for loaded in (first, second))))
    identities = list(source.identities(refs))
    assert [known in (None, source.load(ref).identities) for ref, known in zip(refs, identities, strict=True)] == [
        True
    ] * len(refs)


def test_a_second_build_loads_nothing(kind: Kind, place: Path, tmp_path: Path) -> None:
    packed(kind.open(place), tmp_path / "out")
    source = kind.open(place)
    with watched(source) as loaded:
        assert packed(source, tmp_path / "out").reused == len(KEYS)
    assert loaded == []


CHANGES = ("one changes", "one comes", "one goes", "the order changes")
WHEN = ("before", "after")


@pytest.mark.long(short=lambda case: case["change"] == CHANGES[tuple(KINDS).index(case["kind"]) % len(CHANGES)])
@pytest.mark.parametrize("change", CHANGES)
def test_after_a_change_the_pack_is_that_of_a_fresh_build(kind: Kind, place: Path, tmp_path: Path, change: str) -> None:
    now = {
        "one changes": scenes_of({**SEEDS, KEYS[5]: 100}),
        "one comes": {**SCENES, "scan 00b": scenes_of({"": 200})[""]},
        "one goes": {key: scene for key, scene in SCENES.items() if key != KEYS[5]},
        "the order changes": REVERSED,
    }[change]
    packed(kind.open(place), tmp_path / "out")
    kind.write(place, now)
    summary = packed(kind.open(place), tmp_path / "out")
    packed(kind.open(place), tmp_path / "fresh")
    assert same(tmp_path / "out", tmp_path / "fresh")
    assert rows_of(tmp_path / "out") == expected(now)
    if kind.saves_loading and change in ("one changes", "one comes"):  # others move rows to other places
        assert 0 < summary.reused < summary.rows


def test_a_row_that_cannot_be_packed_is_named_and_counted(kind: Kind, place: Path, tmp_path: Path) -> None:
    kind.damage(place, KEYS[5], SCENES[KEYS[5]])
    with pytest.raises(RejectedError, match=r"1 of 14 pairs is bad") as refused:
        packed(kind.open(place), tmp_path / "strict")
    assert not (tmp_path / "strict" / "manifest.json").exists()
    summary = packed(kind.open(place), tmp_path / "out", skip=True)
    ((_, key, reason),) = summary.rejects
    assert reason in str(refused.value)
    assert (key, summary.pairs, summary.rows) == (KEYS[5], len(KEYS), len(KEYS) - 1)
    packed(kind.open(place), tmp_path / "again", skip=True, workers=3)
    assert same(tmp_path / "out", tmp_path / "again"), reason
    kind.write(place, SCENES)
    packed(kind.open(place), tmp_path / "out")
    assert rows_of(tmp_path / "out") == expected(SCENES)


def test_a_row_that_crashes_a_worker_costs_itself_alone(kind: Kind, shared: Path, tmp_path: Path) -> None:
    source, pool = kind.open(shared), InProcess(1, 60)
    make_target(tmp_path / "out")
    prepare_target(tmp_path / "out")
    spec = make_plan(request_of(source, tmp_path / "out", shard_size=1 << 20), pool=pool).specs[0]
    assert len(spec.pieces) == len(KEYS)
    with watched(source) as loaded:
        receipt = build_shard(spec, source, tmp_path / "out", crashed={5: "crashed the decoder (SIGSEGV)"})
    assert [(reject.key, reject.reason) for reject in receipt.rejects] == [(KEYS[5], "crashed the decoder (SIGSEGV)")]
    assert sorted(loaded) == list(receipt.keys) == [key for key in KEYS if key != KEYS[5]]


def test_a_key_that_occurs_twice_is_refused_before_work(kind: Kind, shared: Path, tmp_path: Path) -> None:
    source = kind.open(shared)
    refs = list(source.rows())
    refs.append(refs[0]._replace(key=KEYS[3]))
    with watched(source) as loaded, pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(source), "rows", lambda _: iter(refs))
        with pytest.raises(InputError, match=f"{KEYS[3]}: has more than one row"):
            packed(source, tmp_path / "out")
    assert loaded == []
    assert not (tmp_path / "out").exists()


@pytest.mark.long(short=lambda case: case["when"] == WHEN[tuple(KINDS).index(case["kind"]) % len(WHEN)])
@pytest.mark.parametrize("when", WHEN)
def test_a_source_that_changes_while_it_is_read_is_found(kind: Kind, place: Path, tmp_path: Path, when: str) -> None:
    """At the latest by the next build: no row that was read then is believed to be one of the source as it is now."""
    source, now = kind.open(place), scenes_of({**SEEDS, KEYS[2]: 300, KEYS[11]: 400})
    load, loads = type(source).load, Counter[str]()

    def changing(self: Any, ref: RowRef) -> Loaded:
        loaded = load(self, ref) if when == "after" else None
        loads[ref.key] += 1
        if ref.key == KEYS[6] and loads[ref.key] == 2:  # the first time it is in a sample
            kind.write(place, now)
        return loaded or load(self, ref)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(source), "load", changing)
        try:
            summary = packed(source, tmp_path / "out", skip=True)
            assert summary.rows + len(summary.rejects) == len(KEYS)
        except (LostFileError, TooManyRejectsError):  # of a file that is another one now: nothing is published
            assert not (tmp_path / "out" / "manifest.json").exists()
    packed(kind.open(place), tmp_path / "out")
    packed(kind.open(place), tmp_path / "fresh")
    assert same(tmp_path / "out", tmp_path / "fresh")
    assert rows_of(tmp_path / "out") == expected(now)


@contextmanager
def watched(source: Source) -> Iterator[list[str]]:
    """Gather the keys of the rows that sources of this class load."""
    load, loaded = type(source).load, list[str]()

    def watching(self: Any, ref: RowRef) -> Loaded:
        loaded.append(ref.key)
        return load(self, ref)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(source), "load", watching)
        yield loaded
