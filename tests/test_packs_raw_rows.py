"""The raw files of a row, decoded again: equal to what is stored, or the reason in words; nothing else is read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import HANG, RawFolder, make_raw, make_varied_raw, pack, pack_from, python, write_png
from test_workers import HOSTILE

from packer import Rows, build_pack
from packer.config.last_build import NAME
from packer.packs import raw_rows
from packer.packs.raw_rows import RawRows, difference
from packer.publish.target import STAMPS
from packer.shards.stamps import load_stamps, write_stamps
from packer.sources.files import files_below
from readers.contract.fields import Field, picture_field
from readers.pack import Pack

pytestmark = pytest.mark.usefixtures("in_process")
IMAGE = "train/images/street_001.png"


def opened(out: Path) -> RawRows:
    pack = Pack.open(out)
    pack.select([field.name for field in pack.manifest.fields])
    return RawRows(pack)


@pytest.fixture
def raw(tmp_path: Path) -> RawFolder:
    return make_raw(tmp_path / "raw", {"train": 3})


@pytest.fixture
def out(raw: RawFolder, tmp_path: Path) -> Path:
    return pack(raw.path, tmp_path / "out", "--size", "16x16", "--labels", "index")


@pytest.mark.parametrize(
    ("options", "labels"),
    [
        (("--size", "16x20", "--fit", "letterbox"), "onehot"),
        (("--size", "16x20", "--fit", "tile", "--format", "arrow"), "index"),
        (("--fit", "native", "--format", "lmdb"), "onehot"),
        (("--size", "16x20", "--image-dtype", "float16", "--format", "hdf5"), "index"),
    ],
)
def test_unchanged_files_give_the_stored_rows(options: tuple[str, ...], labels: str, tmp_path: Path) -> None:
    raw = make_varied_raw(tmp_path / "raw", {"train": [(24, 36), (40, 28)]})
    rows = opened(pack(raw.path, tmp_path / "out", *options, "--labels", labels))
    pack_ = Pack.open(tmp_path / "out")
    for row in range(pack_.manifest.rows):
        found = rows.row(row)
        assert (found.problem, found.notes) == ("", ())
        assert {name: each.pixels for name, each in found.differences.items()} == {"image": 0, "label": 0}
        shard, inside = pack_.table.locate(row)
        key = pack_.shard(shard).key(inside).partition("@")[0]
        for name, scene in (
            ("image", np.moveaxis(raw.images["train", key], -1, 0)),
            ("label", raw.labels["train", key]),
        ):
            pixels = found.as_it_is[name][1]
            assert pixels.shape == scene.shape
            assert "float16" in options or np.array_equal(pixels, scene)
            stored = pack_.shard(shard).row(found.again[name][0], inside)
            assert np.array_equal(found.again[name][1], stored)


def test_rows_of_a_pack_are_read_again(raw: RawFolder, tmp_path: Path) -> None:
    pack(raw.path, tmp_path / "first", "--fit", "native", "--labels", "index")
    found = opened(pack_from(tmp_path / "first", tmp_path / "out", "--size", "12x18", "--labels", "onehot")).row(1)
    assert found.problem == ""
    assert {each.pixels for each in found.differences.values()} == {0}
    assert np.array_equal(np.moveaxis(found.as_it_is["image"][1], 0, -1), raw.images["train", "street_001"])


def test_a_row_that_its_pack_has_no_more_is_named(raw: RawFolder, tmp_path: Path) -> None:
    first = pack(raw.path, tmp_path / "first", "--fit", "native", "--labels", "index")
    out = pack_from(first, tmp_path / "out", "--size", "12x18", "--labels", "onehot")
    (stamps,) = (each.load() for each in load_stamps(out))
    write_stamps(out, replace(stamps, text=stamps.text.replace("/1", "/3")))
    assert f"/3: is not a row of {first}" in opened(out).row(1).problem
    write_png(raw.path / IMAGE, raw.images["train", "street_001"] ^ 8)
    pack(raw.path, first, "--fit", "native", "--labels", "index")
    assert f"/0: is not a row of {first} any more; that pack was built again" in opened(out).row(0).problem


def test_changed_pixels_are_counted(raw: RawFolder, tmp_path: Path) -> None:
    rows = opened(pack(raw.path, tmp_path / "out", "--labels", "index", "--size", "24x36"))
    image = raw.images["train", "street_001"].copy()
    image[:2, :3, 1] ^= 8
    write_png(raw.path / IMAGE, image)
    found = rows.row(1)
    assert found.notes == (f"{IMAGE}: was changed since it was packed",)
    assert found.differences["image"] == raw_rows.PixelDifference(6, 8.0)
    assert found.differences["label"] == raw_rows.PixelDifference(0, None)
    assert rows.row(0).differences["image"].pixels == 0
    write_png(raw.path / IMAGE, raw.images["train", "street_001"])
    assert rows.row(1).notes == ()


def replaced(out: Path, part: str) -> None:
    """Have the stamps of a pack name another file as the image of row 1."""
    (stamps,) = (each.load() for each in load_stamps(out))
    assert IMAGE in stamps.text
    write_stamps(out, replace(stamps, text=stamps.text.replace(IMAGE, part)))


def linked(out: Path, raw: Path) -> None:
    (raw.parent / "secret.png").write_bytes((raw / IMAGE).read_bytes())
    (raw / IMAGE).unlink()
    (raw / IMAGE).symlink_to(raw.parent / "secret.png")


def linked_folder(out: Path, raw: Path) -> None:
    (raw / "train" / "images").rename(raw.parent / "elsewhere")
    (raw / "train" / "images").symlink_to(raw.parent / "elsewhere")


def in_a_circle(out: Path, raw: Path) -> None:
    (raw / IMAGE).unlink()
    (raw / IMAGE).symlink_to(raw / IMAGE)


def as_pipe(out: Path, raw: Path) -> None:
    (raw / IMAGE).unlink()
    os.mkfifo(raw / IMAGE)


def without(name: str) -> Callable[[Path, Path], None]:
    def remove(out: Path, raw: Path) -> None:
        for path in [out / name] if (out / name).is_file() else (out / name).iterdir():
            path.unlink()

    return remove


def other_recipe(out: Path, raw: Path) -> None:
    (stamps,) = (each.load() for each in load_stamps(out))
    write_stamps(out, replace(stamps, source="webdataset"))


def from_a_url(out: Path, raw: Path) -> None:
    (out / NAME).write_text('raw = "s3://bucket/raw"\n')


REFUSED: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "deleted": (lambda out, raw: (raw / IMAGE).unlink(), f"{IMAGE}: is not there any more"),
    "moved": (lambda out, raw: raw.rename(raw.parent / "moved"), "raw: the raw folder cannot be reached"),
    "broken": (lambda out, raw: (raw / IMAGE).write_bytes(b"\x89PNG\r\n\x1a\n"), f"{IMAGE}: "),
    "empty": (lambda out, raw: (raw / IMAGE).write_bytes(b""), f"{IMAGE}: "),
    "unreadable": (as_pipe, f"{IMAGE}: is not a regular file"),
    "absolute": (lambda out, raw: replaced(out, str(raw / IMAGE)), "is not a path below the raw folder"),
    "up": (lambda out, raw: replaced(out, "train/../../secret.png"), "is not a path below the raw folder"),
    "link": (linked, f"{IMAGE}: is a link that leads out of the raw folder"),
    "folder": (linked_folder, "is a link that leads out of the raw folder"),
    "circle": (in_a_circle, f"{IMAGE}: cannot be read ("),
    "no stamps": (without(STAMPS), "the pack has no stamps of this row"),
    "no settings": (without(NAME), "does not say what it was built from"),
    "other source": (other_recipe, "'webdataset'"),
    "bucket": (from_a_url, "only those on this machine are read again"),
    "archive": (lambda out, raw: (out / NAME).write_text('from = "rows.tar"\n'), "only rows of folders and packs"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_files_that_must_not_or_cannot_be_read_are_named(case: str, out: Path, raw: RawFolder) -> None:
    deed, words = REFUSED[case]
    deed(out, raw.path)
    found = opened(out).row(1)
    assert words in found.problem
    assert (found.as_it_is, found.again, found.differences) == ({}, {}, {})


def test_large_files_and_pictures_are_not_read(
    out: Path, raw: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw_rows, "MOST_BYTES", 24 * 36 * 4 - 1)
    found = opened(out).row(1)
    assert (found.as_it_is, found.notes) == ({}, ("its own size is too large to be shown",))
    assert found.differences["image"].pixels == 0
    monkeypatch.setattr(files_below, "MOST_BYTES", 100)
    assert "more than are read here" in opened(out).row(1).problem


def test_rows_of_a_program_are_not_read_again(tmp_path: Path) -> None:
    pixels = {"image": np.zeros((4, 4, 3), np.uint8), "label": np.zeros((4, 4), np.uint8)}
    build_pack(Rows(["a"], lambda key: pixels), tmp_path / "out", classes=1, labels="index", workers=1)
    assert opened(tmp_path / "out").row(0).problem == (
        "the rows came from a program in Python, so only a build can read them again"
    )


def test_nothing_stays_behind(out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    before = sorted(path.name for path in out.rglob("*"))
    assert opened(out).row(2).problem == ""
    assert not list((tmp_path / "scratch").iterdir())
    assert sorted(path.name for path in out.rglob("*")) == before


@pytest.mark.parametrize(
    ("ours", "stored", "wanted"),
    [
        ([[1, 2]], [[1, 5]], (1, 3.0)),
        ([[250, 0]], [[0, 255]], (2, 255.0)),
        ([[np.nan, 1.0]], [[np.nan, 1.0]], (0, 0.0)),
        ([[np.nan, 1.0]], [[2.0, 1.0]], (1, 0.0)),
    ],
)
def test_differences(ours: Any, stored: Any, wanted: tuple[int, float]) -> None:
    kind = "<f4" if np.isnan(ours).any() else "|u1"
    field: Field = picture_field("image", kind, (1, 2), ("gray",))
    found = difference(field, np.array([ours], kind), np.array([stored], kind))
    assert (found.pixels, found.largest) == wanted


PROGRAM = """
import json, sys
from packer.packs.raw_rows import RawRows
from readers.pack import Pack
pack = Pack.open(__import__("pathlib").Path(sys.argv[1]))
pack.select(["image", "label"])
rows = RawRows(pack, 1)
print(json.dumps([rows.row(row).problem for row in range(pack.manifest.rows)]))
"""


def test_a_decoder_that_crashes_or_hangs_ends_alone(tmp_path: Path) -> None:
    """The last row shows that the process goes on, and so do its workers."""
    raw = make_raw(tmp_path / "raw", {"train": 4})
    out = pack(raw.path, tmp_path / "out", "--labels", "index")
    for number, deed in enumerate(("segv", "hang", "large")):
        path = raw.path / f"train/images/street_{number:03d}.png"
        path.write_bytes(path.read_bytes() + f"!{deed}".encode())
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(HOSTILE)
    done = python(
        "-c",
        PROGRAM,
        out,
        env={**os.environ, "PYTHONPATH": f"{tmp_path / 'site'}{os.pathsep}{Path(raw_rows.__file__).parents[2]}"},
        timeout=HANG,
    )
    files = [f"train/images/street_{number:03d}.png or train/masks/street_{number:03d}.png" for number in range(3)]
    assert json.loads(done.stdout) == [
        f"{files[0]}: crashed the decoder (SIGSEGV)",
        f"{files[1]}: took longer than 1 seconds",
        f"{files[2]}: needs more memory than there is",
        "",
    ]
