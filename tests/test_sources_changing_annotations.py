"""Annotation files and pictures that become something else between the plan and the build: bad rows with a reason."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import run, without_workers
from drills.outline_days import make_outlined
from scenes.outlines import COCO, FILE, IMAGES, LABELME, OPTIONS
from test_build_parts import good

from packer.annotations.list_pictures import index_of
from packer.annotations.picture_index import PictureIndex
from packer.errors import InputError
from packer.sources.annotated.indexed_files import IndexedFiles


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        os.chdir(path.parent)  # the name of a socket is short
        listener.bind(path.name)


FORMS: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "folder": Path.mkdir,
    "loop": _loop,
    "nothing": lambda path: None,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "socket": _socket,
    "empty": Path.touch,
}


def _become(path: Path, form: str) -> None:
    path.unlink()
    FORMS[form](path)


def _failure(tmp_path: Path) -> str:
    """Build a part of a plan, and return why this machine cannot."""
    with without_workers():
        failed = run("build-part", "--quiet", "--plan", tmp_path / "plan", "--part", "1/1", tmp_path / "out")
    assert failed.exit_code == 1
    assert "the plan has read it, so its pair is not bad" in failed.stderr
    assert "report this" not in failed.stderr
    return failed.stderr


def _restore(path: Path, data: bytes) -> None:
    if path.is_dir():
        path.rmdir()
    path.unlink(missing_ok=True)
    path.write_bytes(data)


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Plan a build of a kind, forget its indexes, and return the raw folder."""

    def planned(kind: str) -> Path:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        make_outlined(tmp_path / "raw", kind, 9)
        good("plan", "--quiet", *OPTIONS[kind], tmp_path / "raw", tmp_path / "plan")
        (tmp_path / "other").mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "other"))
        return tmp_path / "raw"

    return planned


@pytest.mark.parametrize(("kind", "suffix"), [(LABELME, ".json"), (LABELME, ".png"), (COCO, ".png")])
def test_a_file_that_became_something_else_fails_the_machine(
    plan: Callable[[str], Path], tmp_path: Path, kind: str, suffix: str
) -> None:
    path = min((plan(kind) / IMAGES).glob(f"*{suffix}"))
    for form in FORMS:
        before = path.read_bytes()
        _become(path, form)
        assert f"{IMAGES}/{path.name}: " in _failure(tmp_path)
        _restore(path, before)


@pytest.mark.parametrize("form", FORMS)
def test_a_file_of_coco_that_became_something_else_fails_the_machine(
    plan: Callable[[str], Path], tmp_path: Path, form: str
) -> None:
    _become(plan(COCO) / FILE, form)
    assert f"{FILE}: is not the file that was planned" in _failure(tmp_path)


@pytest.mark.parametrize("form", [form for form in FORMS if form != "empty"])
def test_a_file_of_coco_that_is_replaced_while_it_is_planned_is_named(tmp_path: Path, form: str) -> None:
    make_outlined(tmp_path / "raw", COCO, 3)
    _become(tmp_path / "raw" / FILE, form)
    with pytest.raises(InputError, match=rf"{FILE}: (is not a regular file|cannot be read)"):
        IndexedFiles.at(tmp_path / "raw", [FILE])


@pytest.mark.parametrize("more", [b" ", b"\n{}"])
def test_a_file_that_grows_while_it_is_listed_ends_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: bytes
) -> None:
    make_outlined(tmp_path / "raw", COCO, 3)
    path = tmp_path / "raw" / FILE

    def growing(file: object) -> PictureIndex:
        found = index_of(file)  # type: ignore[arg-type]
        with path.open("ab") as end:
            end.write(more)
        return found

    monkeypatch.setattr("packer.sources.annotated.indexed_files.index_of", growing)
    with pytest.raises(InputError, match="changed after its rows were listed; build again"):
        IndexedFiles.at(tmp_path / "raw", [FILE])
