"""The laws of every source, with sources that are written here: whatever gives the rows, the pack is the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from conftest import RawFolder
from drills.published import same

from packer.build import build
from packer.errors import InputError, RejectedError
from packer.pairs.find import find_pairs
from packer.plan.make_plan import make_plan
from packer.plan.request import Request
from packer.recipe.row_ref import RowRef
from packer.recipe.source import Heads, Source
from packer.sources.folder import FolderSource
from packer.sources.open_source import SourceOptions
from packer.workers.in_process import InProcess


@dataclass(frozen=True)
class Backwards:
    """The rows of a folder, from the last to the first."""

    folder: FolderSource
    refs: tuple[RowRef, ...]
    tools: tuple[str, ...] = ()
    bad: Mapping[str, str] = field(default_factory=dict)
    """The reasons of bad rows by their key."""

    @property
    def templates(self) -> tuple[str, ...]:
        return self.folder.templates

    def rows(self) -> Iterator[RowRef]:
        return reversed(self.refs)

    def heads(self, refs: Sequence[RowRef]) -> Iterator[Heads]:
        return (self.bad.get(ref.key, heads) for ref, heads in zip(refs, self.folder.heads(refs), strict=True))


def folder_of(raw: RawFolder) -> FolderSource:
    pairing = find_pairs(raw.path)
    return FolderSource(raw.path, pairing.pairs, (pairing.image_template, pairing.label_template))


def packed_from(raw: Path, out: Path, source: Source | None = None) -> None:
    """Pack the rows of a source, by default those of the folder."""
    engine = InProcess(1, 60)
    request = Request(raw, out, shard_bytes=30_000, source=SourceOptions(given=source))
    plan = make_plan(request, engine=engine)
    assert build(plan, lambda rows: None, engine).rows == plan.pieces


def test_any_order_of_rows_gives_the_same_pack(raw_folder: RawFolder, tmp_path: Path) -> None:
    folder = folder_of(raw_folder)
    packed_from(raw_folder.path, tmp_path / "folder")
    packed_from(raw_folder.path, tmp_path / "backwards", Backwards(folder, tuple(folder.rows())))
    assert same(tmp_path / "folder", tmp_path / "backwards")


def test_what_decides_a_row_is_part_of_the_recipe(raw_folder: RawFolder, tmp_path: Path) -> None:
    folder = folder_of(raw_folder)
    packed_from(raw_folder.path, tmp_path / "folder")
    packed_from(raw_folder.path, tmp_path / "ruled", Backwards(folder, tuple(folder.rows()), ("rule 2",)))
    assert not same(tmp_path / "folder", tmp_path / "ruled")


def test_a_row_with_a_bad_head_is_named_before_work(raw_folder: RawFolder, tmp_path: Path) -> None:
    folder = folder_of(raw_folder)
    ref = next(folder.rows())
    source = Backwards(folder, tuple(folder.rows()), bad={ref.key: f"{ref.parts[1]}: is of another kind"})
    with pytest.raises(RejectedError, match=r"2 of 32 pairs are bad .*\n  .*is of another kind"):
        packed_from(raw_folder.path, tmp_path / "out", source)
    assert not (tmp_path / "out").exists()


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
    raw_folder: RawFolder, tmp_path: Path, rows: list[tuple[str, str]], message: str
) -> None:
    refs = tuple(RowRef(split, key, ("image.png", "label.png")) for split, key in rows)
    with pytest.raises(InputError, match=message):
        packed_from(raw_folder.path, tmp_path / "out", Backwards(folder_of(raw_folder), refs))
    assert not (tmp_path / "out").exists()
