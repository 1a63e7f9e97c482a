"""A plan as files has the specs of the plan in memory, on any machine; one that was changed or made up is refused."""

from __future__ import annotations

import hashlib
import importlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import SMALL_SHARDS, RawFolder, make_varied_raw, pack
from numpy.typing import NDArray
from stored_scenes import KINDS, scenes_of

from packer.errors import InputError, RejectedError, TargetError, UsageError
from packer.plan import write_plan as writing
from packer.plan.make_plan import make_plan
from packer.plan.plan import Plan
from packer.plan.request import request_of
from packer.plan.write_plan import PlanWriter, write_plan
from packer.recipe.piece import PieceTable
from packer.recipe.plan_folder import PLAN, RECORD, SHARDS, SIZES, PlanFolder
from packer.recipe.ref_table import RefTable
from packer.recipe.row_ref import RowRef
from packer.sources.portable import check_portable, moved
from packer.sources.reopen import reopen
from packer.sources.rows import Rows
from packer.workers.in_process import InProcess
from readers.contract.errors import DamagedError

FORMS: dict[str, dict[str, Any]] = {
    "one size": {"size": (16, 24)},
    "native": {"size": "native", "fit": "native"},
    "tiles": {"size": (8, 8), "fit": "tile"},
}
SIZES_OF_ALL = {"train": [(24, 36), (8, 8), (40, 16), (9, 30), (24, 36), (17, 17)], "val": [(24, 36), (8, 9)]}


def planned(raw: Path, out: Path, **options: Any) -> Plan:
    return make_plan(request_of(raw, out, **{"shard_size": 4000, **options}), pool=InProcess(1, 60))


def texts(plan: Plan) -> list[str]:
    return [spec.to_text() for spec in plan.specs]


def specs_of(folder: PlanFolder) -> list[str]:
    return [folder.spec(number).to_text() for number in range(len(folder))]


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> RawFolder:
    """Pictures of many sizes, two without a label."""
    raw = make_varied_raw(tmp_path_factory.mktemp("raw") / "city", SIZES_OF_ALL)
    for name in ("train/masks/street_001.png", "val/masks/street_000.png"):
        (raw.path / name).unlink()
    return raw


@pytest.fixture(params=FORMS)
def plan(request: pytest.FixtureRequest, raw: RawFolder, tmp_path: Path) -> Plan:
    return planned(raw.path, tmp_path / "plan", missing="skip", **FORMS[request.param])


def test_the_specs_are_those_of_the_plan_in_memory(plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "MOST_BYTES", 200)  # so that there are several files of rows
    folder = write_plan(plan, tmp_path / "plan")
    assert len(folder) == len(plan.specs) > 3
    assert len(folder.facts.rows_files) > 1
    assert specs_of(folder) == texts(plan)
    assert [int(weight) for weight in folder.records["weight"]] == [spec.weight for spec in plan.specs]
    facts = folder.facts
    assert (facts.recipe, facts.splits, facts.sizes) == (plan.recipe, plan.found_rows.refs.splits, plan.sizes)
    assert (facts.rows, facts.pieces) == (plan.pairs, plan.pieces)
    again = PlanFolder.open(tmp_path / "plan", folder.sha256)
    assert again.facts == facts
    other = write_plan(plan, tmp_path / "other")
    assert other.sha256 == folder.sha256, "the same plan has the same name"


def test_tiles_of_a_picture_may_be_in_several_shards(raw: RawFolder, tmp_path: Path) -> None:
    plan = planned(raw.path, tmp_path / "plan", missing="skip", shard_size=900, **FORMS["tiles"])
    folder = write_plan(plan, tmp_path / "plan")
    assert (folder.records["skip"] > 0).any()
    assert specs_of(folder) == texts(plan)


def test_reused_shards_have_their_fingerprint(raw_folder: RawFolder, tmp_path: Path) -> None:
    out = pack(raw_folder.path, tmp_path / "out", *SMALL_SHARDS, "--trust", "digest")
    plan = planned(raw_folder.path, out, shard_size=30_000, trust="digest")
    folder = write_plan(plan, tmp_path / "plan")
    found = [folder.fingerprint(number) for number in range(len(folder))]
    assert found == [plan.reused[number].fingerprint for number in range(len(plan.specs))]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("rows", "objects") and "store" not in kind])
def test_rows_of_every_kind_are_read_elsewhere(kind: str, tmp_path: Path) -> None:
    """The files were copied to another path, as rsync copies them: same size and mtime, another ctime."""
    here, there = tmp_path / "here" / "rows", tmp_path / "there" / "rows"
    here.parent.mkdir()
    KINDS[kind].write(here, scenes_of({"a": 1, "b": 2, "c": 3, "d": 4}))
    classes = None if kind == "pack" else "4"
    request = request_of(KINDS[kind].open(here), tmp_path / "plan", classes=classes, labels="index")
    folder = write_plan(make_plan(request, pool=InProcess(1, 60)), tmp_path / "plan")
    shutil.copytree(here.parent, there.parent, copy_function=shutil.copy2)
    shutil.rmtree(here.parent)
    raw = there.parent / Path(folder.facts.raw).relative_to(here.parent)
    again = reopen(moved(folder.facts.source, folder.facts.raw, raw))
    loaded = [again.load(piece.ref) for number in range(len(folder)) for piece in folder.spec(number).pieces]
    assert [row.bad for row in loaded] == [None] * 4


def test_an_archive_that_changed_after_planning_is_named(tmp_path: Path) -> None:
    KINDS["webdataset"].write(tmp_path / "rows", scenes_of({"a": 1, "b": 2}))
    source = KINDS["webdataset"].open(tmp_path / "rows")
    request = request_of(source, tmp_path / "plan", classes="4", labels="index")
    folder = write_plan(make_plan(request, pool=InProcess(1, 60)), tmp_path / "plan")
    for path in filter(Path.is_file, (tmp_path / "rows", *(tmp_path / "rows").rglob("*"))):
        path.write_bytes(path.read_bytes() + bytes(512))
    loaded = reopen(folder.facts.source).load(folder.spec(0).pieces[0].ref)
    assert "changed" in str(loaded.bad)


MODULE = """
import numpy as np
def load(key):
    return {"image": np.full((8, 8, 3), int(key), np.uint8), "label": np.zeros((8, 8), np.uint8)}
"""


def test_functions_are_named_and_nothing_is_unpickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plan_rows_module.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    load = importlib.import_module("plan_rows_module").load
    options: dict[str, Any] = {"classes": "1", "labels": "index", "size": (8, 8)}

    def write(rows: Rows, name: str) -> PlanFolder:
        request = request_of(rows, tmp_path / name, **options)
        return write_plan(make_plan(request, pool=InProcess(1, 60)), tmp_path / name)

    text = write(Rows(["1", "2"], load), "plan").facts.source
    assert "plan_rows_module:load" in text
    check_portable(text)
    assert reopen(text).load(RowRef("all", "2", ("2[image]", "2[label]"))).bad is None
    with pytest.raises(UsageError, match="top level of a module"):
        write(Rows(["1", "2"], partial(load)), "other")
    with pytest.raises(UsageError, match="come from functions"):
        moved(text, "", tmp_path)
    with pytest.raises(UsageError, match="nothing in a plan is unpickled"):
        check_portable(Rows(["1"], partial(load)).to_text())


@pytest.fixture(scope="module")
def finished(raw: RawFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "plan"
    return write_plan(planned(raw.path, folder, missing="skip", **FORMS["tiles"]), folder).folder


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "plan"))


def change(folder: Path, **facts: Any) -> None:
    """Change what plan.json says."""
    document = json.loads((folder / PLAN).read_text())
    (folder / PLAN).write_text(json.dumps({**document, **facts}))


def change_records(folder: Path, spoil: Callable[[NDArray[Any]], object]) -> None:
    """Change the records, and make their digest right again: this plan was made up."""
    data = (folder / SHARDS).read_bytes()
    start = data.index(b"\n") + 1
    records = np.frombuffer(data, RECORD, -1, start).copy()
    spoil(records)
    (folder / SHARDS).write_bytes(data[:start] + records.tobytes())
    change(folder, records=hashlib.sha256(records.tobytes()).hexdigest())


def put(name: str, shard: int, value: object) -> Callable[[NDArray[Any]], None]:
    def spoil(records: NDArray[Any]) -> None:
        records[name][shard] = value

    return spoil


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (put("begin", 0, 2**64 - 1), "not within their file"),
        (put("bytes", 1, 2**63), "not within their file"),
        (put("file", 0, 9), "a file of rows is missing"),
        (put("rows", 0, 0), "has no rows"),
        (put("pieces", 0, 2**32 - 1), "has no rows, or more than"),
        (put("skip", 1, 2**32 - 1), "has not the pieces of its rows"),
        (put("pieces", 0, 1), "pieces, not"),
        (put("row", 1, 10**15), "one after the other"),
        (put("split", 0, 7), "the splits are not in order"),
        (put("split", -1, 0), "the splits have not the rows"),
        (put("fields", 0, 1 << 20), "unknown fields"),
        (put("fingerprint", 0, b"../../etc/passwd"), "32 hex digits"),
    ],
)
def test_records_that_lead_elsewhere_are_refused(
    folder: Path, spoil: Callable[[NDArray[Any]], object], words: str
) -> None:
    change_records(folder, spoil)
    with pytest.raises(DamagedError, match=words):
        PlanFolder.open(folder)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"shards": 10**15}, "bytes, not"),
        ({"rows_files": [5]}, "bytes, not 5 as planned"),
        ({"rows_files": []}, "expected 1 to"),
        ({"splits": [{"name": "../x", "rows": 8}]}, "name of another split"),
        ({"splits": [{"name": "all", "rows": 10**12}]}, "bytes, not"),
        ({"pieces": 3}, "pieces, not 3"),
        ({"records": "0" * 64}, "SHA-256"),
        ({"version": 4}, "expected 3"),
        ({"source": "[]"}, "expected the text of a source"),
        ({"surprise": 1}, "is not known"),
        ({"recipe": {}}, "is missing"),
        ({"overlap": 8}, "less than the size of a tile"),
    ],
)
def test_a_plan_that_was_made_up_is_refused(folder: Path, facts: dict[str, Any], words: str) -> None:
    if "overlap" in facts:
        facts = {"recipe": {**json.loads((folder / PLAN).read_text())["recipe"], **facts}}
    change(folder, **facts)
    with pytest.raises(DamagedError, match=words):
        PlanFolder.open(folder)


def test_a_changed_file_is_named(folder: Path) -> None:
    number = 1
    for name in ("rows-00000.txt", SIZES):
        path, data = folder / name, (folder / name).read_bytes()
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        opened = PlanFolder.open(folder)
        with pytest.raises(DamagedError, match="are not those that were planned"):
            opened.spec(len(opened) - 1)
        path.write_bytes(data[:-1])
        with pytest.raises(DamagedError, match=f"{name}: has"):
            PlanFolder.open(folder)
        path.write_bytes(data)
    assert PlanFolder.open(folder).spec(number).pieces
    with pytest.raises(DamagedError, match=r"is plan .*, not 000"):
        PlanFolder.open(folder, "0" * 64)
    (folder / PLAN).unlink()
    with pytest.raises(InputError, match="is not a finished plan"):
        PlanFolder.open(folder)


@pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/passwd", "a/../../b.png", ".."])
def test_paths_that_lead_out_of_raw_are_refused(raw: RawFolder, tmp_path: Path, path: str) -> None:
    plan = planned(raw.path, tmp_path / "plan", missing="skip", size=(16, 24))
    ref = plan.found_rows.refs[0]
    refs = RefTable.of([ref._replace(parts=(path, *ref.parts[1:])), *plan.found_rows.refs[1:]])
    pieces = PieceTable(refs, np.zeros((len(refs), 2), np.uint32), plan.recipe.geometry, range(1))
    hostile = replace(
        plan, specs=(replace(plan.specs[0], pieces=pieces),), found_rows=replace(plan.found_rows, refs=refs)
    )
    with PlanWriter(tmp_path, plan.recipe, 1) as writer:
        writer.add(hostile.specs[0])
        writer.finish()
    folder = write_plan(plan, tmp_path / "plan").folder
    for name in (SHARDS, SIZES, "rows-00000.txt"):
        shutil.copy(tmp_path / name, folder)
    splits = [{"name": ref.split, "rows": 1}]
    change(folder, shards=1, pieces=1, splits=splits, records=writer.digest, rows_files=writer.rows_files)
    with pytest.raises(DamagedError, match="is not a path below RAW"):
        PlanFolder.open(folder).spec(0)


def test_a_plan_is_never_changed(plan: Plan, tmp_path: Path) -> None:
    write_plan(plan, tmp_path / "plan")
    with pytest.raises(TargetError, match="holds a plan, which is never changed"):
        write_plan(plan, tmp_path / "plan")
    (tmp_path / "plan" / PLAN).unlink()
    assert specs_of(write_plan(plan, tmp_path / "plan")) == texts(plan), "one that was begun is begun again"
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    with pytest.raises(TargetError, match=r"holds thesis\.tex"):
        write_plan(plan, tmp_path / "full")


def test_nothing_is_written_if_a_build_would_stop_at_once(raw_folder: RawFolder, tmp_path: Path) -> None:
    raw = Path(shutil.copytree(raw_folder.path, tmp_path / "raw"))
    (raw / "train/images/street_003.png").write_bytes(b"no picture")
    with pytest.raises(RejectedError):
        write_plan(planned(raw, tmp_path / "plan"), tmp_path / "plan")
    assert not (tmp_path / "plan").exists()
