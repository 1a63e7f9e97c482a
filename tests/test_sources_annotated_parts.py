"""Parts of a build from annotations, on machines that have no index of the file of COCO, or another file."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import run, without_workers
from drills.outline_days import make_outlined
from drills.published import same
from scenes.outlines import COCO, FILE, LABELME, OPTIONS, read_outlines, write_outlines
from test_build_parts import good, parts
from test_engines import dask_cluster

from packer.sources.annotated.indexed_files import IndexedFiles
from packer.sources.annotated.kept_indexes import forget_indexes
from packer.sources.file_states import state_of

SMALL = ("--quiet", "--shard-size", "8KB")


@pytest.fixture(params=[LABELME, COCO])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def planned(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., object]], Path]:
    """Plan a build, copy the raw files to another machine by a function, and return the folder of that machine."""

    def copied(copy: Callable[..., object]) -> Path:
        make_outlined(tmp_path / "raw", kind, 9)
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        good("plan", *SMALL, *OPTIONS[kind], tmp_path / "raw", tmp_path / "plan")
        good("build", *SMALL, *OPTIONS[kind], tmp_path / "raw", tmp_path / "whole")
        (tmp_path / "other").mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "other"))
        shutil.copytree(tmp_path / "raw", tmp_path / "other/raw", copy_function=copy)
        shutil.rmtree(tmp_path / "raw")
        return tmp_path / "other"

    return copied


def test_a_part_is_built_on_a_machine_without_the_index(
    planned: Callable[[Callable[..., object]], Path], kind: str, tmp_path: Path
) -> None:
    other = planned(shutil.copy2)
    parts(tmp_path / "plan", tmp_path / "out", ["2/2", "1/2"], "--raw", other / "raw")
    good("commit", "--quiet", "--plan", tmp_path / "plan", tmp_path / "out")
    assert same(tmp_path / "out", tmp_path / "whole")
    assert [len(list(other.glob("segpack-*/*")))] == [int(kind == COCO)]
    forget_indexes()
    assert not list(other.glob("segpack-*/*"))


def test_a_worker_leaves_no_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers end without deleting anything, so an index of theirs stayed for a day."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    make_outlined(tmp_path / "raw", COCO, 3)
    files = IndexedFiles(tmp_path / "raw", {FILE: state_of(f"{tmp_path}/raw/{FILE}")})
    assert len(files.index(FILE)) == 3
    assert not list(tmp_path.glob("segpack-*/*"))


@pytest.mark.parametrize("kind", [COCO], indirect=True)
@pytest.mark.parametrize("change", ["time", "content"])
def test_a_machine_with_another_file_makes_no_row(
    planned: Callable[[Callable[..., object]], Path], tmp_path: Path, change: str
) -> None:
    raw = planned(shutil.copy2) / "raw"
    if change == "content":
        outlines = read_outlines(raw, COCO)
        outlines.names.append("bus")
        write_outlines(raw, COCO, outlines)
    else:
        (raw / FILE).touch()
    with without_workers():
        failed = run(
            "build-part", "--quiet", "--plan", tmp_path / "plan", "--part", "1/1", "--raw", raw, tmp_path / "out"
        )
    assert failed.exit_code == 1
    assert f"{FILE}: is not the file that was planned, or lost its time when it was copied" in failed.stderr
    assert not (tmp_path / "out/manifest.json").exists()


@pytest.mark.long
def test_dask_builds_from_annotations(kind: str, tmp_path: Path) -> None:
    """Its workers find no index, because the process that planned has a temporary folder of its own."""
    raw = tmp_path / "raw"
    make_outlined(raw, kind, 9)
    good("build", *SMALL, *OPTIONS[kind], raw, tmp_path / "whole")
    with dask_cluster() as cluster, pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(tmp_path))
        built = run("build", *SMALL, *OPTIONS[kind], "--engine", cluster.url, raw, tmp_path / "out")
    assert built.exit_code == 0, built.stderr
    assert same(tmp_path / "out", tmp_path / "whole")
