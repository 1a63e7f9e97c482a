"""A plan in parts: parts read the headers, and the plan has the bytes of one that read all of them itself."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from conftest import SMALL_SHARDS, RawFolder, examples, good, make_raw, run
from hypothesis import given, settings
from hypothesis import strategies as st
from stored_scenes import png
from test_build_parts import kill_in

from packer import plan_pack, plan_part
from packer.plan import check_heads as check_heads_module
from packer.plan import header_blocks
from packer.plan.header_blocks import HeaderBlocks
from packer.publish.target import STAMPS
from packer.recipe.plan_folder import PLAN

pytestmark = pytest.mark.usefixtures("in_process")
OPTIONS = ("--quiet", "--on-bad", "skip", "--size", "native", *SMALL_SHARDS)


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> RawFolder:
    """Pairs of three splits. The headers of two pairs are bad."""
    raw = make_raw(tmp_path_factory.mktemp("raw") / "city", {"train": 20, "val": 11, "test": 1})
    (raw.path / "val/images/street_003.png").write_bytes(b"")
    (raw.path / "train/masks/street_007.png").write_bytes(png(np.zeros((5, 5), np.uint8)))
    return raw


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[None]:
    """Blocks of three rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(header_blocks, "BLOCK_ROWS", 3)
        yield


@pytest.fixture(scope="module")
def whole(raw: RawFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plan of one process."""
    folder = tmp_path_factory.mktemp("plan") / "whole"
    good("plan", *OPTIONS, raw.path, folder)
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def part(raw: RawFolder, plan: Path, name: str) -> int:
    """Run a part; return the number of rows whose headers it has read."""
    return int(json.loads(good("plan", *OPTIONS, "--json", "--part", name, raw.path, plan).stdout)["rows"])


def refusal(result: Result) -> str:
    """Return the stderr of a command that must fail."""
    assert result.exit_code in (1, 2), result.output
    return result.stderr


class StoppedError(Exception):
    """Stands for the end of a process."""


def stopped_part(raw: RawFolder, plan: Path, name: str, blocks: int) -> None:
    """Run a part that ends without a word when it has written this number of blocks."""
    usual, calls = HeaderBlocks.write, list[object]()

    def write(self: HeaderBlocks, *arguments: Any) -> None:
        if len(calls) == blocks:
            raise StoppedError
        calls.append(arguments)
        usual(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HeaderBlocks, "write", write)
        with suppress(StoppedError):
            run("plan", *OPTIONS, "--part", name, raw.path, plan)


@settings(max_examples=examples(15))
@given(
    st.integers(1, 13), st.randoms(use_true_random=False), st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3)))
)
def test_the_plan_is_that_of_one_process(
    raw: RawFolder, whole: Path, count: int, dice: Any, stops: list[tuple[int, int]]
) -> None:
    """Parts in any order, some stopped at any block before, one twice, none reading a header that is known."""
    with TemporaryDirectory() as temporary:
        plan = Path(temporary) / "plan"
        for number, blocks in stops:
            stopped_part(raw, plan, f"{number % count + 1}/{count}", blocks)
        names = [f"{number}/{count}" for number in range(1, count + 1)]
        dice.shuffle(names)
        for name in names:
            part(raw, plan, name)
        assert part(raw, plan, names[0]) == 0
        with pytest.MonkeyPatch.context() as patch:
            asked = []
            read = check_heads_module.read_sizes

            def read_sizes(found_rows: Any, fields: Any, side: Any, numbers: Any, *rest: Any) -> Any:
                asked.extend(numbers.tolist())
                return read(found_rows, fields, side, numbers, *rest)

            patch.setattr(check_heads_module, "read_sizes", read_sizes)
            good("plan", *OPTIONS, raw.path, plan)
        assert len(asked) == 2, "only bad headers are read again: their reasons name files"
        assert files(plan) == files(whole)


def test_parts_of_which_some_are_missing(raw: RawFolder, whole: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan"
    for name in ("1/4", "3/4"):
        part(raw, plan, name)
    error = refusal(run("plan", *OPTIONS, raw.path, plan))
    assert "these parts have not read all of their headers: 2/4, 4/4; run packer plan --part" in error
    assert not (plan / PLAN).exists()
    for name in ("2/4", "4/4"):
        part(raw, plan, name)
    good("plan", *OPTIONS, raw.path, plan)
    assert files(plan) == files(whole)


def test_a_part_is_killed(raw: RawFolder, whole: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan"
    part(raw, plan, "2/2")
    arguments = ("plan", *OPTIONS, "--part", "1/2", "--workers", "1", raw.path, plan)
    kill_in("packer.plan.header_blocks", "write_stamps", 0, *arguments)
    assert run("plan", *OPTIONS, raw.path, plan).exit_code == 1
    part(raw, plan, "1/2")
    good("plan", *OPTIONS, raw.path, plan)
    assert files(plan) == files(whole)


@pytest.mark.parametrize("change", ["options", "version", "a new file", "a damaged block"])
def test_parts_of_something_else_are_refused(
    raw: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    plan, copy = tmp_path / "plan", RawFolder(tmp_path / "raw", {}, {})
    shutil.copytree(raw.path, copy.path)
    part(copy, plan, "1/1")
    options: tuple[str, ...] = OPTIONS
    expected = "delete this folder, and run all parts again"
    if change == "options":
        options = (*OPTIONS, "--alpha", "drop")
    elif change == "version":
        monkeypatch.setattr(header_blocks, "VERSION", "0.0.1")
    elif change == "a new file":
        for folder in ("images", "masks"):
            shutil.copy(copy.path / f"train/{folder}/street_000.png", copy.path / f"train/{folder}/street_000_b.png")
    else:
        block = next((plan / STAMPS).glob("train-*"))
        block.write_bytes(block.read_bytes()[:-1])
        expected = "have not read all of their headers: 1/1"
    assert expected in refusal(run("plan", *options, copy.path, plan))


def test_a_file_that_changed_since_is_read_again(raw: RawFolder, tmp_path: Path) -> None:
    copy = RawFolder(tmp_path / "raw", {}, {})
    shutil.copytree(raw.path, copy.path)
    part(copy, tmp_path / "plan", "1/1")
    picture = copy.path / "train/images/street_001.png"
    picture.write_bytes(b"no picture")
    os.utime(picture, ns=(1, 1))
    for name in ("plan", "whole"):
        good("plan", *OPTIONS, copy.path, tmp_path / name)
    assert files(tmp_path / "plan") == files(tmp_path / "whole")


@pytest.mark.parametrize("options", [("--reuse", "out"), ("--dry-run",), ("--trust", "digest")])
def test_options_that_a_part_has_no_use_for(raw: RawFolder, tmp_path: Path, options: tuple[str, ...]) -> None:
    result = run("plan", *OPTIONS, "--part", "1/2", *options, raw.path, tmp_path / "plan")
    assert "--part: only reads headers" in refusal(result)
    assert not (tmp_path / "plan").exists()


@pytest.mark.parametrize("name", ["0/2", "3/2", "1", "x/y"])
def test_a_part_that_is_none(raw: RawFolder, tmp_path: Path, name: str) -> None:
    assert "--part: expected a part such as 3/16" in refusal(
        run("plan", *OPTIONS, "--part", name, raw.path, tmp_path / "plan")
    )


def test_a_folder_of_stamps_that_no_part_wrote_stays(raw: RawFolder, tmp_path: Path) -> None:
    note = tmp_path / "plan" / STAMPS / "note.txt"
    note.parent.mkdir(parents=True)
    note.write_text("mine")
    for options in ((), ("--part", "1/1")):
        assert "holds stamps" in refusal(run("plan", *OPTIONS, *options, raw.path, tmp_path / "plan"))
    assert note.read_text() == "mine"


def test_from_python_with_a_pack_to_reuse(raw: RawFolder, tmp_path: Path) -> None:
    options: dict[str, Any] = {"on_bad": "skip", "size": "native", "workers": 1}
    good("build", "--quiet", "--on-bad", "skip", "--size", "native", raw.path, tmp_path / "out")
    sha256 = plan_pack(raw.path, tmp_path / "whole", reuse=tmp_path / "out", **options)
    assert sum(plan_part(raw.path, tmp_path / "plan", name, **options) for name in ("1/2", "2/2")) > 0
    assert plan_part(raw.path, tmp_path / "plan", "2/2", **options) == 0, "it has read them already"
    assert plan_pack(raw.path, tmp_path / "plan", reuse=tmp_path / "out", **options) == sha256
    assert files(tmp_path / "plan") == files(tmp_path / "whole")
