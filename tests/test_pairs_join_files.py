"""Very many files give the pairs and the messages that few files give, and no object for each."""

from __future__ import annotations

import shutil
import tracemalloc
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_pairs_find import touch
from test_pairs_match_folders import TREES

from packer.errors import PackError
from packer.pairs import files, join_files
from packer.pairs.files import FileNames, RawFiles
from packer.pairs.fold_file import FoldFile
from packer.pairs.folds import Folds
from packer.pairs.join_files import JoinedFiles
from packer.pairs.join_table import JoinedTable
from packer.pairs.pairing_rules import PairingRules
from packer.pairs.split_by_hash import Shares
from packer.plan import find_rows as find_rows_module
from packer.plan.find_rows import find_rows
from packer.plan.request import request_of
from packer.recipe import ref_table
from packer.recipe.ref_table import RefTable
from packer.recipe.row_ref import RowRef
from packer.spill import long_text, sorted_lines
from packer.spill.long_text import LongText
from packer.spill.sorted_lines import SortedLines

PLAIN = ["images/train/a", "images/val/b", "masks/train/a", "masks/val/b", "notes", "images/train/é", "masks/train/é"]
HALVES = Shares.parse("50/50")
SPLITS = [PairingRules(split=HALVES), PairingRules(split=HALVES, split_by="key")]
RULES = [
    PairingRules(),
    PairingRules(missing="skip"),
    PairingRules(missing="keep"),
    PairingRules("images/{split}/{key}", "masks/{split}/{key}"),
    PairingRules("images/{split}/{key}", "masks/*/{key}"),
    PairingRules("{key}.png", "{key}_L.png"),
    PairingRules("images/{key}", "train_labels/{key}", missing="keep"),
    PairingRules("images/{key}", has_label=False),
    PairingRules("images/{split}/{key}", "masks/{split}/{key}", split=Folds.of(2)),
    PairingRules("images/{key}", "masks/{key}", split=Folds.of(2)),
    PairingRules("images/{key}", "masks/{key}", split=FoldFile(Path("f.json"), {"train/a": "fold0"}, ())),
    PairingRules(split=HALVES),
    PairingRules("images/{key}", "masks/{key}", split=HALVES),
    PairingRules("images/{city}/{key}", "masks/{city}/{key}", split=HALVES, split_by="city"),
    PairingRules("images/{key}", has_label=False, split=HALVES, split_by="town"),
]


@pytest.fixture
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any number of files is many, and few names are objects at the same time."""
    for module, name, value in (
        (find_rows_module, "MANY_FILES", 0),
        (files, "JOINED", 3),
        (sorted_lines, "AT_ONCE", 4),
        (sorted_lines, "SAMPLED", 2),
        (long_text, "IN_MEMORY", 50),
    ):
        monkeypatch.setattr(module, name, value)


def found(raw: Path, rules: PairingRules, only: tuple[str, ...]) -> object:
    """Return everything that is found in a folder, or the error."""
    try:
        search = replace(request_of(raw, raw / "images/out").rows, pairing=rules, only=only)
        rows = find_rows(search, raw / "images/out")
    except PackError as error:
        return type(error), str(error)
    return list(rows.refs), rows.layout, rows.missing, rows.notes, rows.source, list(map(str, rows.problems))


@given(
    st.one_of(TREES, st.permutations(PLAIN).map(lambda paths: [f"{path}.png" for path in paths])),
    st.sampled_from(RULES),
    st.sampled_from([(), (), (), ("train",)]),
)
@pytest.mark.usefixtures("few_at_once")
def test_many_files_are_paired_as_few_are(
    tmp_path_factory: pytest.TempPathFactory, paths: list[str], rules: PairingRules, only: tuple[str, ...]
) -> None:
    raw = tmp_path_factory.mktemp("raw")
    touch(raw, *paths)
    many = found(raw, rules, only)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(find_rows_module, "MANY_FILES", 1 << 60)
        assert many == found(raw, rules, only)
    shutil.rmtree(raw)


@given(
    st.permutations(PLAIN).map(lambda paths: [f"{path}.png" for path in paths]),
    st.lists(st.tuples(*[st.sampled_from([*PLAIN, "images/no", unicodedata.normalize("NFD", PLAIN[-2])])] * 2)),
    st.sampled_from(["image,label", "image,label,split", "image,label,split,key", "image,label,key", "label,image"]),
    st.sampled_from(["{}.png", "./{}.png", "{}.png", "{}"]),
    st.sampled_from([PairingRules(), PairingRules(missing="keep"), PairingRules(missing="skip"), *SPLITS]),
    st.sampled_from([(), (), (), ("train",)]),
)
@pytest.mark.usefixtures("few_at_once")
def test_tables_of_many_files_are_read_as_those_of_few(
    tmp_path_factory: pytest.TempPathFactory,
    paths: list[str],
    cells: list[tuple[str, str]],
    heading: str,
    form: str,
    rules: PairingRules,
    only: tuple[str, ...],
) -> None:
    raw = tmp_path_factory.mktemp("raw")
    touch(raw, *paths)
    columns = heading.split(",")
    others = [["train" if image < label else "", image[-1]] for image, label in cells]
    given_rows = [[*map(form.format, row), *more][: len(columns)] for row, more in zip(cells, others, strict=True)]
    (raw / "pairs.csv").write_text("\n".join([heading, *map(",".join, given_rows)]))
    rules = replace(rules, pairs=raw / "pairs.csv")
    many = found(raw, rules, only)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(find_rows_module, "MANY_FILES", 1 << 60)
        assert many == found(raw, rules, only)
    shutil.rmtree(raw)


@pytest.mark.usefixtures("few_at_once")
def test_a_table_without_a_problem_is_joined(tmp_path: Path) -> None:
    """The test above would pass if all files were matched together."""
    names = [f"{number:02}" for number in range(30)]
    touch(tmp_path, *(f"{kind}/{name}.png" for kind in ("a", "b") for name in names))
    table = tmp_path / "pairs.csv"
    table.write_text("\n".join(f"a/{name}.png,b/{name}.png" for name in reversed([*names, "30"])))
    joined = JoinedTable(PairingRules(pairs=table), tmp_path, files.find_files(tmp_path))
    assert [key for _, key, _ in joined.rows()] == [f"a/{name}" for name in reversed(names)]
    missing = ["pairs.csv:1: there is no file a/30.png", "pairs.csv:1: there is no file b/30.png"]
    assert list(map(str, joined.missing)) == missing


@pytest.mark.usefixtures("few_at_once")
def test_pairs_without_a_problem_are_joined(tmp_path: Path) -> None:
    """The test above would pass if all files were matched together."""
    touch(tmp_path, *(f"{side}/{split}/{n}.png" for side in ("images", "masks") for split in "ab" for n in range(9)))
    for rules in (RULES[3], PairingRules("images/{split}/{key}", has_label=False), RULES[-3]):
        joined = join_files.join_files(files.find_files(tmp_path), rules)
        assert isinstance(joined, JoinedFiles)
        rows = list(joined.rows())
        splits = {"train", "val"} if rules.split else {"a", "b"}
        assert (len(rows), rows == sorted(rows), joined.splits) == (18, not rules.split, splits)
    grouped = join_files.join_files(files.find_files(tmp_path), RULES[-2])
    assert isinstance(grouped, JoinedFiles)
    assert {split for split, _, _ in grouped.rows()} == {HALVES.split_of("a"), HALVES.split_of("b")}
    assert any("the split train gets 0 of 18 pairs" in note for note in grouped.notes)
    for path in ("images/a/3.png", "masks/b/7.png"):
        (tmp_path / path).unlink()
    joined = join_files.join_files(files.find_files(tmp_path), PairingRules(missing="skip"))
    assert isinstance(joined, JoinedFiles)
    assert len(list(joined.rows())) == 16
    assert [str(problem) for problem in joined.missing] == [
        "images/b/7.png: has no label",
        "masks/a/3.png: has no image",
    ]


@given(st.lists(st.lists(st.text("aé\ud800 ", max_size=4), min_size=1, max_size=9), max_size=9))
@pytest.mark.usefixtures("few_at_once")
def test_lines_are_sorted(parts: list[list[str]]) -> None:
    lines = SortedLines()
    for part in parts:
        lines.add(part)
    assert list(lines) == sorted(line for part in parts for line in part)


def names_of(files_of_a_folder: Sequence[str]) -> FileNames:
    names = FileNames(LongText())
    for first in range(0, len(files_of_a_folder), 1000):
        names.add(files_of_a_folder[first : first + 1000])
    return names


@pytest.mark.parametrize(
    "pairs", [pytest.param(20_000, marks=pytest.mark.short), pytest.param(40_000, marks=pytest.mark.long)]
)
@pytest.mark.parametrize("rules", [PairingRules(), PairingRules("images/*/{key}", "masks/*/{key}", split=HALVES)])
def test_pairing_many_files_takes_few_bytes_for_each(
    rules: PairingRules, pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name, value in (
        (find_rows_module, "MANY_FILES", 0),
        (files, "JOINED", 1 << 10),
        (sorted_lines, "AT_ONCE", 1 << 10),
        (long_text, "IN_MEMORY", 1 << 16),
        (ref_table, "CHUNK", 1 << 10),
    ):
        monkeypatch.setattr(module, name, value)
    stems = [f"street_{7_919 * number % pairs:012d}.png" for number in range(pairs)]
    tracemalloc.start()
    try:
        raw = RawFiles({"images/train/": names_of(stems), "masks/train/": names_of(stems)})
        joined = join_files.join_files(raw, rules)
        assert isinstance(joined, JoinedFiles)
        table = RefTable.of(RowRef(*row) for row in joined.rows())
        highest = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(table) == sum(table.splits.values()) == pairs
    assert set(table.splits) == ({"train", "val"} if rules.split else {"train"})
    assert highest < 150 * pairs, "it was 840 bytes a pair"
