"""Indexes of COCO files in the temporary folder: damaged, stale, impossible to keep; and files that change."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest
from test_sources_coco_builds import OBJECTS, box, coco_folder, images

from packer.errors import BadPair, InputError
from packer.sources.annotated.indexed_files import IndexedFiles
from packer.sources.annotated.kept_indexes import index_folder
from packer.sources.annotated.listed_pictures import without_picture
from packer.sources.file_states import state_of

FILE = "instances_train2017.json"
PARTS = [f"{FILE}#{name}.png" for name in "abc"]


@pytest.fixture
def raw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return coco_folder(tmp_path / "raw")


def facts(raw: Path) -> object:
    files = IndexedFiles.at(raw, [FILE])
    pictures = [(files.digest(part), files.size(part), files.read(part)[1]) for part in PARTS]
    return files.categories, files.counts, files.notes, pictures


def kept(raw: Path) -> Path:
    folder = index_folder(f"{raw}/{FILE}", state_of(f"{raw}/{FILE}"))
    assert folder is not None
    return folder


@pytest.mark.parametrize("is_young", [False, True])
def test_no_byte_of_an_index_is_trusted(raw: Path, is_young: bool) -> None:
    """A byte that changed gave another number of objects, another size, missing pictures, or a traceback."""
    if not is_young:
        os.utime(raw / FILE, (0, 0))
    before = facts(raw)
    for path in sorted(kept(raw).iterdir()):
        good = path.read_bytes()
        for at in {0, 9, len(good) // 3, len(good) // 2, len(good) - 1}:
            path.write_bytes(good[:at] + bytes([good[at] ^ 0x31]) + good[at + 1 :])
            assert facts(raw) == before, (path.name, at)
            assert path.read_bytes() == good


@pytest.mark.parametrize("is_young", [False, True])
def test_an_index_that_may_be_of_another_file_is_not_trusted(
    raw: Path, monkeypatch: pytest.MonkeyPatch, is_young: bool
) -> None:
    """A file that changes twice within a tick of the clock has the same state. Some file systems keep no ctime."""
    if is_young:
        monkeypatch.setattr("packer.sources.annotated.kept_indexes.MIN_FILE_AGE", 2 * 10**9)
    state = state_of(f"{raw}/{FILE}")
    monkeypatch.setattr("packer.sources.annotated.indexed_files.state_of", lambda path: state)
    before = facts(raw)
    coco_folder(raw, annotations=OBJECTS[1:])
    if not is_young:  # a build that was killed made the index
        monkeypatch.setattr("packer.sources.annotated.kept_indexes._made_here", {})
    assert facts(raw) != before


@pytest.mark.parametrize("name", ["mkdtemp", "gettempdir"])
def test_an_index_that_cannot_be_kept_stops_nothing(raw: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def full(*_: object, **__: object) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = facts(raw)
    monkeypatch.setattr(f"tempfile.{name}", full)
    assert facts(raw) == before


def test_a_file_that_changed_is_not_listed_again_for_each_row(raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = IndexedFiles.at(raw, [FILE])
    shutil.rmtree(kept(raw))
    coco_folder(raw, annotations=OBJECTS[1:])
    asked = list[str]()
    monkeypatch.setattr("packer.sources.annotated.indexed_files.index_of", lambda file: asked.append(file.name))
    late = IndexedFiles(raw, planned.states)
    for part in PARTS:
        with pytest.raises(BadPair, match="changed after its rows were listed; build again"):
            late.read(part)
    assert asked == []


@pytest.mark.parametrize("text", ["", "[" * 5000, '{"images": [7]}'])
def test_a_file_that_changes_while_it_is_listed_ends_the_plan(raw: Path, text: str) -> None:
    """The names of pictures that are not there are read again. Instead of the file's item there was something else."""
    coco_folder(raw, images=images({7: "a.png", 5: "gone.png"}), annotations=[box(1, 7, 3, 0, 0)])
    files = IndexedFiles.at(raw, [FILE])
    (raw / FILE).write_text(text)
    with pytest.raises(InputError, match="changed after its rows were listed; build again"):
        list(without_picture(files, PARTS[:1]))
    (raw / FILE).unlink()
    with pytest.raises(InputError, match="cannot be read"):
        list(without_picture(files, PARTS[:1]))
