"""Notes: what a source noticed about a row that is packed nevertheless is in the receipt and named by the build."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conftest import RawFolder, good, make_raw, run, write_png
from drills.published import same
from scenes.tiny import age

from packer import verify_pack
from packer.packs.generations import receipt_paths
from packer.recipe.row_ref import RowRef
from packer.recipe.source import Loaded
from packer.sources.files.folder import FolderSource
from packer.workers.in_process import InProcess
from readers.contract.manifest import Manifest
from readers.contract.receipt import MOST_NOTE, Note, Receipt
from readers.contract.receipt_facts import MOST_NOTES, AllReceipts, Notes

TEXTS = {
    "train/street_003": ("2 polygons cover no pixel",),
    "train/street_007": ("1 polygon lies outside", "", "2 holes"),
    "val/street_001": ("zwei\nZeilen \x9b1m",),
}
EXPECTED = [
    ("train", "street_003", "2 polygons cover no pixel"),
    ("train", "street_007", "1 polygon lies outside; 2 holes"),
    ("val", "street_001", "zwei?Zeilen ?1m"),
]


@pytest.fixture
def raw(tmp_path: Path) -> RawFolder:
    raw = make_raw(tmp_path / "raw", {"train": 12, "val": 4})
    age(raw.path)
    return raw


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[str, ...]]:
    """The notes that the folder of the commands below gives for rows, by split and key."""
    notes = dict(TEXTS)
    read = FolderSource.load

    def load(source: FolderSource, ref: RowRef) -> Loaded:
        return read(source, ref)._replace(notes=notes.get(f"{ref.split}/{ref.key}", ()))

    monkeypatch.setattr("packer.workers.run.POOL", InProcess)
    monkeypatch.setattr(FolderSource, "load", load)
    return notes


def built(raw: Path, out: Path, *options: object) -> Any:
    form = ("--shard-size", "8KB", "--labels", "index")
    return json.loads(good("build", "--json", "--quiet", *form, *options, raw, out).stdout)


def named(answer: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(note["split"], note["key"], note["note"]) for note in answer["notes"]]


def stored(out: Path) -> list[tuple[str, str, str]]:
    """Return the notes in the receipts of the current generation."""
    receipts = map(Receipt.load, receipt_paths(out, Manifest.load(out)))
    return [(receipt.split, *note) for receipt in receipts for note in receipt.notes]


def test_notes_are_in_the_receipts_and_in_the_answer(
    raw: RawFolder, texts: dict[str, tuple[str, ...]], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    answer = built(raw.path, out)
    assert (answer["noted_rows"], named(answer), stored(out)) == (3, EXPECTED, EXPECTED)
    assert verify_pack(out, deep=True) == []
    done = run("build", "--shard-size", "8KB", "--labels", "index", raw.path, out)
    assert "note      train/street_007: 1 polygon lies outside; 2 holes\n" in done.stderr
    assert "0 left out, 3 with a note, 16 reused" in done.stdout


def test_reused_shards_keep_their_notes_and_a_changed_row_its_new_ones(
    raw: RawFolder, texts: dict[str, tuple[str, ...]], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    built(raw.path, out)
    again = built(raw.path, out)
    assert (again["reused_rows"], again["generation"], named(again)) == (16, 1, EXPECTED)
    write_png(raw.path / "train/images/street_003.png", 255 - raw.images["train", "street_003"])
    texts["train/street_003"], texts["train/street_000"] = (), ("not read again, so not noticed",)
    later = built(raw.path, out)
    assert (0 < later["reused_rows"] < 16, later["generation"]) == (True, 2)
    del texts["train/street_000"]
    built(raw.path, tmp_path / "fresh")
    assert stored(out) == stored(tmp_path / "fresh") == EXPECTED[1:]
    assert same(out, tmp_path / "fresh")


def test_other_notes_make_another_shard_and_the_published_one_stays(
    raw: RawFolder, texts: dict[str, tuple[str, ...]], tmp_path: Path
) -> None:
    """A source should not do this. The receipts of the generation before are not written over all the same."""
    out = tmp_path / "out"
    built(raw.path, out)
    before = {path: path.read_bytes() for path in receipt_paths(out, Manifest.load(out))}
    texts.clear()
    shutil.rmtree(out / "stamps")
    assert built(raw.path, out)["generation"] == 2
    assert stored(out) == []
    assert {path: path.read_bytes() for path in before} == before


def test_a_rejected_row_has_no_note(raw: RawFolder, texts: dict[str, tuple[str, ...]], tmp_path: Path) -> None:
    (raw.path / "train/masks/street_003.png").write_bytes(b"no picture")
    answer = built(raw.path, tmp_path / "out", "--on-bad", "skip")
    assert [reject["key"] for reject in answer["rejects"]] == ["street_003"]
    assert named(answer) == EXPECTED[1:]


def test_all_tiles_of_a_picture_have_its_note_and_it_is_named_once(
    raw: RawFolder, texts: dict[str, tuple[str, ...]], tmp_path: Path
) -> None:
    answer = built(raw.path, tmp_path / "out", "--fit", "tile", "--size", "12x18")
    assert (answer["noted_rows"], named(answer)) == (3, EXPECTED)
    assert set(Counter(key.split("@")[0] for _, key, _ in stored(tmp_path / "out")).values()) == {4}


def test_the_rows_of_a_pack_keep_their_notes(raw: RawFolder, texts: dict[str, tuple[str, ...]], tmp_path: Path) -> None:
    built(raw.path, tmp_path / "out")
    done = run("build", "--json", "--quiet", "--from", tmp_path / "out", tmp_path / "copy", "--format", "arrow")
    assert named(json.loads(done.stdout)) == stored(tmp_path / "copy") == EXPECTED


def test_a_note_is_cut_and_the_first_ones_are_named(raw: RawFolder, tmp_path: Path) -> None:
    assert Loaded((), (), notes=("x" * MOST_NOTE,)).note == "x" * MOST_NOTE
    assert Loaded((), (), notes=("x" * MOST_NOTE, "y")).note == "x" * (MOST_NOTE - 1) + "…"
    assert Loaded((), ()).note == ""
    notes = tuple(Note(f"{number:03}", "text") for number in range(MOST_NOTES + 7))
    receipt = Receipt("all", "", "npy", "", ("image",), (), (), notes, (), {"image": ()}, (), {})
    receipts = AllReceipts()
    for shard in range(2):
        receipts.add(shard, receipt)
    assert receipts.notes == Notes(2 * len(notes), tuple(("all", note.key, "text") for note in notes[:MOST_NOTES]))
