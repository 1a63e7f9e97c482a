"""The laws of every source, with sources that are written here: whatever gives the rows, the pack is the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import RawFolder
from drills.published import same

from packer.build import build
from packer.errors import InputError
from packer.plan.make_plan import make_plan
from packer.plan.request import Request
from packer.recipe.row_ref import RowRef
from packer.recipe.source import Source
from packer.sources.folder import FolderSource
from packer.sources.open_source import SourceOptions
from packer.workers.in_process import InProcess


@dataclass(frozen=True)
class Backwards:
    """The rows of a folder, from the last to the first."""

    refs: tuple[RowRef, ...]
    templates: tuple[str, ...]
    tools: tuple[str, ...] = ()

    def rows(self) -> Iterator[RowRef]:
        return reversed(self.refs)


def packed_from(raw: Path, out: Path, source: Source | None = None) -> FolderSource | Source:
    """Pack the rows of a source, by default those of the folder. Return the source."""
    engine = InProcess(1, 60)
    request = Request(raw, out, shard_bytes=30_000, source=SourceOptions(given=source))
    plan = make_plan(request, engine=engine)
    assert build(plan, lambda rows: None, engine).rows == plan.pieces
    return plan.found.source


def test_any_order_of_rows_gives_the_same_pack(raw_folder: RawFolder, tmp_path: Path) -> None:
    folder = packed_from(raw_folder.path, tmp_path / "folder")
    backwards = Backwards(tuple(folder.rows()), folder.templates)
    packed_from(raw_folder.path, tmp_path / "backwards", backwards)
    assert same(tmp_path / "folder", tmp_path / "backwards")


def test_what_decides_a_row_is_part_of_the_recipe(raw_folder: RawFolder, tmp_path: Path) -> None:
    folder = packed_from(raw_folder.path, tmp_path / "folder")
    ruled = Backwards(tuple(folder.rows()), folder.templates, ("rule 2",))
    packed_from(raw_folder.path, tmp_path / "ruled", ruled)
    assert not same(tmp_path / "folder", tmp_path / "ruled")


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
        packed_from(raw_folder.path, tmp_path / "out", Backwards(refs, ("", "")))
    assert not (tmp_path / "out").exists()
