"""The laws of every source, with sources that are written here: whatever gives the rows, the pack is the same."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pytest
from conftest import RawFolder, make_raw, run
from drills.published import same
from numpy.typing import NDArray

from packer import ValuesField, build_pack, diff_pack, repair_pack
from packer.building import Summary, build
from packer.config.effective import from_python
from packer.decoding.file_types import read_header
from packer.errors import InputError, RejectedError, UsageError
from packer.pairs.find import find_pairs
from packer.plan.make_plan import make_plan
from packer.plan.request import request_of
from packer.recipe.row_ref import RowRef
from packer.recipe.source import UNKNOWN, Heads, Loaded, Source
from packer.sources.files.folder import FolderSource
from packer.sources.reopen import KINDS, reopen
from packer.workers.in_process import InProcess
from readers import open_dataset
from readers.contract.classes import ClassTable
from readers.contract.receipt import Receipt

ROWS = 23 + 9


@dataclass(frozen=True)
class Remembered(Source):
    """The files of a folder in memory, from the last row to the first. It counts what it is asked for."""

    rows_: tuple[RowRef, ...]
    files: dict[str, bytes]
    templates: tuple[str, ...] = ("", "")
    tools: tuple[str, ...] = ()
    kind: str = "remembered"
    width: int = 2
    version: Callable[[RowRef], int] = lambda ref: UNKNOWN
    identified: bool = False
    asked: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, folder: FolderSource) -> Remembered:
        rows = tuple(folder.rows())
        files = {path: (folder.raw / path).read_bytes() for ref in rows for path in ref.parts}
        return cls(rows, files, folder.templates)

    def rows(self) -> Iterator[RowRef]:
        return reversed(self.rows_)

    def heads(self, refs: Sequence[RowRef]) -> Iterator[Heads]:
        for ref in refs:
            self.asked["heads"] += 1
            image, label = (self.files[path] for path in ref.parts)
            yield (read_header(BytesIO(image)), read_header(BytesIO(label))) if label else f"{ref.parts[1]}: is gone"

    def states(self, refs: Sequence[RowRef]) -> NDArray[np.int64]:
        return np.array([[self.version(ref)] * self.width for ref in refs], np.int64).reshape(-1, self.width)

    def identities(self, refs: Sequence[RowRef]) -> Iterator[tuple[str, ...] | None]:
        return (self._load(ref).identities if self.identified else None for ref in refs)

    def load(self, ref: RowRef) -> Loaded:
        self.asked["load"] += 1
        return self._load(ref)

    def _load(self, ref: RowRef) -> Loaded:
        data = tuple(self.files[path] for path in ref.parts)
        if data[-1] == b"unreadable":
            return Loaded(data[:1], (f"{len(data[0])}", ""), f"{ref.parts[1]}: cannot be read")
        return Loaded(data, tuple(f"{len(each)} bytes" for each in data))

    def to_text(self) -> str:
        REMEMBERED[self.kind] = self
        return json.dumps({"kind": self.kind})


REMEMBERED: dict[str, Source] = {}
"""The sources that are opened again by their kind. Sources of programs are opened from their text alone."""


@pytest.fixture(autouse=True)
def known_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("made")
    module.Known = SimpleNamespace(from_json=lambda facts: REMEMBERED[facts["kind"]])
    monkeypatch.setitem(sys.modules, "packer.sources.made", module)
    for kind in ("remembered", "other"):
        monkeypatch.setitem(KINDS, kind, "made.Known")


@pytest.fixture
def folder(raw_folder: RawFolder) -> FolderSource:
    pairing = find_pairs(raw_folder.path)
    return FolderSource(raw_folder.path, pairing.pairs, (pairing.image_template, pairing.label_template))


def packed_from(raw: Path, out: Path, source: Source | None = None, *, skip: bool = False) -> Summary:
    """Pack the rows of a source, by default those of the folder. `raw` has the class table."""
    pool = InProcess(1, 60)
    options: dict[str, Any] = {"shard_size": 30_000, "on_bad": "skip" if skip else "fail"}
    if source is not None:
        options["classes"] = raw / "class_dict.csv"
    request = request_of(source or raw, out, **options)
    return build(make_plan(request, pool=pool), lambda rows: None, pool)


def test_a_source_refuses_what_it_does_not_say_it_can(folder: FolderSource, tmp_path: Path) -> None:
    """A new kind of source writes none of these refusals."""
    source = Remembered.of(folder)
    for option, words in (
        ({"axis": 0}, "--axis 0: is for scans"),
        ({"volumes": True}, "--volumes: rows of the kind remembered are pictures; scans, TIFF and Rows have volumes"),
        ({"annotations": "{key}.json"}, "rows that are not files"),
        ({"fields": [ValuesField("depth")]}, "--field: rows of the kind remembered have an image and a label only"),
    ):
        with pytest.raises((UsageError, TypeError), match=words):
            build_pack(source, tmp_path / "out", classes=3, workers=1, **option)
    with pytest.raises(TypeError, match="rows of the kind remembered are only read at once"):
        source.load_lines(source.rows_[0])
    with pytest.raises(TypeError, match="rows of the kind remembered have sizes of their own"):
        source.of_size((8, 8), scales=True)
    with pytest.raises(TypeError, match="rows of the kind remembered have types of their own"):
        source.like([], [])
    with pytest.raises(InputError, match="rows of the kind remembered are not read again here; only a build reads"):
        source.check_parts(source.rows_[0].parts)
    assert (source.gives_lines, source.gives_volumes, source.is_painted, source.gives_arrays) == (False,) * 4
    assert source.sizes_are_known
    assert source.types_are_known


def test_what_only_looks_like_a_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"expected a folder or a source, such as Rows.*; found SimpleNamespace"):
        build_pack(SimpleNamespace(rows=list), tmp_path / "out", classes=3)


def test_what_decides_a_row_is_part_of_the_recipe(folder: FolderSource, tmp_path: Path) -> None:
    source = Remembered.of(folder)
    packed_from(folder.raw, tmp_path / "plain", source)
    packed_from(folder.raw, tmp_path / "ruled", replace(source, tools=("rule 2",)))
    assert not same(tmp_path / "plain", tmp_path / "ruled")


def test_a_row_with_a_bad_head_is_named_before_work(folder: FolderSource, tmp_path: Path) -> None:
    source = Remembered.of(folder)
    source.files[source.rows_[0].parts[1]] = b""
    with pytest.raises(RejectedError, match=r"1 of 32 pairs is bad .*\n  train/masks/street_000\.png: is gone"):
        packed_from(folder.raw, tmp_path / "out", source)
    assert source.asked["heads"] == ROWS
    assert not (tmp_path / "out").exists()


def test_a_row_that_cannot_be_loaded_is_a_reject_with_what_was_read_of_it(folder: FolderSource, tmp_path: Path) -> None:
    source = Remembered.of(folder)
    ref = source.rows_[3]

    class Fails(Remembered):
        def heads(self, refs: Sequence[RowRef]) -> Iterator[Heads]:
            return folder.heads(refs)

    source.files[ref.parts[1]] = b"unreadable"
    summary = packed_from(folder.raw, tmp_path / "out", Fails(source.rows_, source.files), skip=True)
    assert summary.rejects == (("train", ref.key, f"{ref.parts[1]}: cannot be read"),)
    receipts = map(Receipt.load, (tmp_path / "out").glob("shards/*.receipt.json"))
    (read,) = [
        row for receipt in receipts for row in receipt.sources if receipt.split == "train" and row.key == ref.key
    ]
    assert read.identities == (str(len(source.files[ref.parts[0]])), "")


def test_a_source_without_states_is_loaded_each_time_and_the_pack_stays(folder: FolderSource, tmp_path: Path) -> None:
    source = Remembered.of(folder)
    packed_from(folder.raw, tmp_path / "fresh", source)
    packed_from(folder.raw, tmp_path / "out", source)
    before = source.asked["load"]
    assert packed_from(folder.raw, tmp_path / "out", source).reused == 0
    assert source.asked["load"] >= before + ROWS
    assert same(tmp_path / "fresh", tmp_path / "out")


def test_identities_save_loading_where_states_are_unknown(folder: FolderSource, tmp_path: Path) -> None:
    source = replace(Remembered.of(folder), identified=True)
    packed_from(folder.raw, tmp_path / "out", source)
    source.asked.clear()
    assert packed_from(folder.raw, tmp_path / "out", source).reused == ROWS
    assert source.asked["load"] == 16, "the sample"


@pytest.mark.parametrize("width", [1, 2, 7])
def test_only_the_shards_of_rows_with_another_state_are_loaded(
    folder: FolderSource, tmp_path: Path, width: int
) -> None:
    source = replace(Remembered.of(folder), version=lambda ref: 1, width=width)
    packed_from(folder.raw, tmp_path / "out", source)
    source.asked.clear()
    assert packed_from(folder.raw, tmp_path / "out", source).reused == ROWS
    assert source.asked == {}
    changed = source.rows_[5]
    now = replace(source, version=lambda ref: 1 + (ref == changed))
    assert 0 < packed_from(folder.raw, tmp_path / "out", now).reused < ROWS
    assert source.asked["heads"] == 1


@pytest.mark.parametrize("other", [{"kind": "other"}, {"width": 3}])
def test_states_of_another_kind_or_width_prove_nothing(
    folder: FolderSource, tmp_path: Path, other: dict[str, object]
) -> None:
    source = replace(Remembered.of(folder), version=lambda ref: 1)
    packed_from(folder.raw, tmp_path / "out", source)
    assert packed_from(folder.raw, tmp_path / "out", replace(source, **other)).reused == 0  # type: ignore[arg-type]


def test_a_source_is_opened_once_for_all_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 20})
    opened: list[str] = []

    def counted(text: str) -> Source:
        opened.append(text)
        return reopen(text)

    monkeypatch.setattr("packer.workers.tasks.reopen", counted)
    assert packed_from(raw.path, tmp_path / "out").manifest.splits[0].shards > 2
    assert len(opened) == 1


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("train", "a"), ("train", "b"), ("train", "a")], "train/a: has more than one row"),
        ([("train", "a"), ("train", "b\n")], "has control characters"),
        ([("train", "a"), ("train", "")], "is empty"),
        ([("../train", "a")], "is not the name of a split"),
        ([("all", "a"), ("val", "a")], "is not the name of a split"),
        ([], "has no rows"),
    ],
)
def test_names_that_no_pack_can_hold_are_refused_before_work(
    folder: FolderSource, tmp_path: Path, rows: list[tuple[str, str]], message: str
) -> None:
    refs = tuple(RowRef(split, key, ("image.png", "label.png")) for split, key in rows)
    with pytest.raises(InputError, match=message):
        packed_from(folder.raw, tmp_path / "out", Remembered(refs, {}))
    assert not (tmp_path / "out").exists()


def test_the_functions_take_a_source_in_the_place_of_the_folder(folder: FolderSource, tmp_path: Path) -> None:
    table, out = folder.raw / "class_dict.csv", tmp_path / "out"
    build_pack(folder.raw, tmp_path / "folder", shard_size=30_000)
    summary = build_pack(folder, out, classes=table, shard_size=30_000)
    assert (summary.rows, same(out, tmp_path / "folder")) == (ROWS, True)
    assert diff_pack(out, folder).is_empty
    shard = next(out.glob("shards/*.npy"))
    content = shard.read_bytes()
    shard.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(UsageError, match="does not say what it was built from"):
        repair_pack(out)
    assert repair_pack(out, folder).summary is not None
    assert (shard.read_bytes() == content, same(out, tmp_path / "folder")) == (True, True)


def test_a_source_refuses_the_options_of_folders_and_needs_classes(folder: FolderSource, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--split-exact: is for the files of a folder; for rows of the kind"):
        build_pack(folder, tmp_path / "out", split="80/20", split_exact=True)
    with pytest.raises(
        InputError, match=r"^no class table; .* --classes FILE, with a name in each line, or classes=\["
    ):
        build_pack(folder, tmp_path / "out")
    for wrong, message in ((["a", "a"], "'a' is not a name, or occurs twice"), ([], "0 names"), ([1], "1 is not")):
        with pytest.raises(UsageError, match=f"--classes: {message}"):
            build_pack(folder, tmp_path / "out", classes=wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"such as Rows\(keys, load\); found list"):
        build_pack([1, 2], tmp_path / "out")  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


def test_the_option_that_the_command_names_for_classes_works(tmp_path: Path) -> None:
    """It named `--classes cell,wall`, which the command takes for the path of a file."""
    names = tmp_path / "names.txt"
    names.write_text("cell\nwall\n")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["image"], file["label"] = np.zeros((2, 4, 4, 3), np.uint8), np.ones((2, 4, 4), np.uint8)
    source = ("--from", tmp_path / "a.h5", "--image", "image", "--label", "label")
    assert "--classes FILE, with a name in each line" in run("build", *source, tmp_path / "out").stderr
    assert run("build", "--classes", names, *source, tmp_path / "out").exit_code == 0
    assert open_dataset(tmp_path / "out").classes.names == ("cell", "wall")


def test_classes_may_be_a_list_of_names() -> None:
    table = from_python({"classes": ["cell", "wall"]})["classes"]
    assert isinstance(table, ClassTable)
    assert [(known.name, known.values) for known in table.classes] == [("cell", (0,)), ("wall", (1,))]
