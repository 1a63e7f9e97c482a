"""An image and a label whose headers name other places in the world are a bad pair."""

from __future__ import annotations

import json
import os
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import errors_of, good, json_of, run
from drills.volumes import nifti
from hypothesis import given
from hypothesis import strategies as st

from packer.decoding.decode import header_of
from packer.decoding.grid import Grid, other_place
from packer.errors import BadPair
from packer.shards.file_headers import HeaderJudge
from packer.sources.volumes.volume import Volume
from readers import open_dataset
from readers.contract import giant
from readers.contract.place import NIFTI, System

pytestmark = pytest.mark.usefixtures("in_process")

UTM, DEGREES = (1, 1, 0, 2, 1024, 0, 1, 1, 3072, 0, 1, 32633), (1, 1, 0, 2, 1024, 0, 1, 2, 2048, 0, 1, 4326)
SIDES = (6, 5, 4)
SFORM = (-1, 0, 0, 90, 0, -1, 0, 126, 0, 0, 2, -72)
FLIPPED = (1, 0, 0, 86, 0, -1, 0, 126, 0, 0, 2, -72)


def geo_tiff(value: int, order: str = "<", **tags: Any) -> bytes:
    """Return a gray TIFF of 12 x 8 pixels with these tags: texts, whole numbers as shorts, and doubles."""
    entries: dict[int, tuple[int, int, bytes]] = {}
    for tag, numbers in ((256, 12), (257, 8), (258, 8), (259, 1), (262, 1), (273, 8), (277, 1), (278, 8), (279, 96)):
        entries[tag] = 3, 1, struct.pack(order + "H", numbers)
    for name, numbers in tags.items():
        if isinstance(numbers, bytes):
            entries[int(name[1:])] = 2, len(numbers), numbers
        else:
            kind, letter = (12, "d") if isinstance(numbers[0], float) else (3, "H")
            entries[int(name[1:])] = kind, len(numbers), struct.pack(f"{order}{len(numbers)}{letter}", *numbers)
    start = 8 + 96 + 2 + 12 * len(entries) + 4
    table, after = b"", b""
    for tag, (kind, count, content) in sorted(entries.items()):
        inline = content.ljust(4, b"\0") if len(content) <= 4 else struct.pack(order + "I", start + len(after))
        after += content if len(content) > 4 else b""
        table += struct.pack(order + "HHI", tag, kind, count) + inline
    head = (b"II" if order == "<" else b"MM") + struct.pack(order + "HI", 42, 104)
    return head + bytes([value]) * 96 + struct.pack(order + "H", len(entries)) + table + bytes(4) + after


def at(x: float = 5e5, y: float = 4e6, side: float = 10.0, keys: tuple[int, ...] = UTM, **tags: Any) -> bytes:
    """Return a GeoTIFF whose upper left corner is at a point."""
    return geo_tiff(0, t33550=(side, side, 0.0), t33922=(0.0, 0.0, 0.0, x, y, 0.0), t34735=keys, **tags)


def with_place(data: bytes, sform: tuple[float, ...] = (), qform: tuple[float, ...] = ()) -> bytes:
    """Return a NIfTI-1 file with a matrix, and with a quaternion, an offset and the sides of a voxel."""
    head = bytearray(data)
    struct.pack_into("<hh", head, 252, bool(qform), bool(sform))
    struct.pack_into("<12f", head, 280, *(sform or (0,) * 12))
    struct.pack_into("<6f", head, 256, *(qform or (0,) * 6)[:6])
    struct.pack_into("<4f", head, 76, *(qform or (0,) * 10)[6:])
    return bytes(head)


SAME = {
    "no place of the image": (geo_tiff(0), at()),
    "no place of the label": (at(), geo_tiff(0)),
    "the same": (at(), at()),
    "noise": (at(), at(5e5 + 0.9, 4e6 - 0.9)),
    "no system": (at(), at(keys=(1, 1, 0, 0))),
    "a system without a code": (at(), at(keys=(1, 1, 0, 2, 1024, 0, 1, 1, 3072, 0, 1, 32767))),
    "a matrix": (
        at(),
        geo_tiff(0, t34264=(10.0, 0.0, 0.0, 5e5, 0.0, -10.0, 0.0, 4e6, *[0.0] * 7, 1.0), t34735=UTM),
    ),
    "the centre of a pixel": (at(), at(5e5 + 5, 4e6 - 5, keys=(1, 1, 0, 3, *UTM[4:8], 1025, 0, 1, 2, *UTM[8:]))),
    "another order of bytes": (geo_tiff(0, "<", t33550=(2.0,) * 3, t33922=(1.0,) * 6),) * 2,
    "pixels that are only counted": (at(), geo_tiff(0, t33550=(1.0, 1.0, 0.0), t33922=(0.0,) * 6)),
    "no usable transform": (at(), at(side=0.0, keys=(1, 1, 0, 0))),
    "a number that is none": (at(), at(float("nan"), keys=(1, 1, 0, 0))),
}
OTHER = {
    "another system": (at(), at(15.0, 36.1, 1e-4, DEGREES), "is in EPSG:32633, its label l.tif in EPSG:4326"),
    "a pixel aside": (at(), at(5e5 + 10), r"has its pixel \(0, 0\) at \(500000, 4000000\), its label l.tif at"),
    "a tenth of a pixel": (at(), at(5e5 + 1.2), r".* at \(500001.2, 4000000\), by their headers"),
    "another size of pixels": (at(), at(side=10.2), r"has its pixel \(0, 7\) at"),
    "half a pixel": (at(), at(keys=(1, 1, 0, 3, *UTM[4:8], 1025, 0, 1, 2, *UTM[8:])), r".* at \(499995, 4000005\)"),
    "upside down": (
        at(),
        geo_tiff(0, t34264=(10.0, 0.0, 0.0, 5e5, 0.0, 10.0, 0.0, 4e6 - 70, *[0.0] * 7, 1.0), t34735=UTM),
        r"has its pixel \(0, 0\)",
    ),
}


@pytest.mark.parametrize("case", SAME)
def test_pictures_at_the_same_place_or_without_one_are_a_pair(case: str) -> None:
    image, label = (header_of(data) for data in SAME[case])
    assert not other_place("i.tif", image.grid, "l.tif", label.grid, "label")


@pytest.mark.parametrize("case", OTHER)
def test_pictures_at_other_places_are_none(case: str) -> None:
    image, label, words = OTHER[case]
    found = other_place("i.tif", header_of(image).grid, "l.tif", header_of(label).grid, "label")
    assert re.match(f"i.tif {words}", found)


@given(st.integers(0, 300), st.binary(min_size=1, max_size=9))
def test_a_damaged_geotiff_has_a_place_or_none(start: int, damage: bytes) -> None:
    data = at()
    broken = data[: 104 + start] + damage + data[104 + start + len(damage) :]
    try:
        grid = header_of(broken).grid
    except BadPair:
        return
    words = other_place("a", grid, "b", header_of(data).grid, "label")
    assert not words or words.startswith(("a has", "a is in"))


def test_pairs_of_files_at_other_places_are_bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = tmp_path / "raw"
    for name, image, label in (
        ("a", at(), at()),
        ("b", at(), at(5e5 + 40)),
        ("c", at(), at(15.0, 36.1, 1e-4, DEGREES)),
    ):
        for folder, data in (("images", image), ("labels", label)):
            (raw / folder).mkdir(parents=True, exist_ok=True)
            (raw / folder / f"{name}.tif").write_bytes(data)
    errors = errors_of(1, "build", "--classes", 2, raw, tmp_path / "out")
    assert "images/b.tif: has its pixel (0, 0) at (500000, 4000000), its label labels/b.tif at (500040" in errors
    assert "images/c.tif: is in EPSG:32633, its label labels/c.tif in EPSG:4326; bring one" in errors
    assert "labels/b.tif at (500040" in run("probe", raw).stdout
    for more in ((), ("--size", "native", "--encode", "image=tiles:16", "--encode", "label=tiles:16"), ("--volumes",)):
        with monkeypatch.context() as patched:
            patched.setattr(giant, "GIANT", 0)
            skipped = run(
                "build", "--json", "--classes", 2, "--on-bad", "skip", *more, raw, tmp_path / f"out{len(more)}"
            )
        rejects = {each["key"]: each["reason"] for each in json.loads(skipped.stdout)["rejects"]}
        assert rejects.keys() == {"b", "c"}
        assert "labels/b.tif at (500040, 4000000), by their headers" in rejects["b"]
        assert "in EPSG:4326" in rejects["c"]
        assert "pack them nevertheless: --place ignore" in rejects["c"]
        out = tmp_path / f"ignored{len(more)}"
        with monkeypatch.context() as patched:
            patched.setattr(giant, "GIANT", 0)
            ignored = good("build", "--json", "--classes", 2, "--place", "ignore", *more, raw, out)
        assert json.loads(ignored.stdout)["note_totals"] == {"rows of fields at different places, by their headers": 2}
        rows = open_dataset(out)
        assert len(rows) == 3
        if "--volumes" not in more:
            place = rows.place(1)
            assert place is not None
            assert place.at(0, 0) == (5e5, 4e6), "the place of the image counts"
    (raw / "labels/b.tif").write_bytes(at(5e5 + 0.5))
    (raw / "labels/c.tif").write_bytes(geo_tiff(0))
    assert run("build", "--classes", 2, raw, tmp_path / "out").exit_code == 0
    assert len(open_dataset(tmp_path / "out")) == 3


def test_a_pack_knows_whether_places_were_ignored(tmp_path: Path) -> None:
    """A build that checks again finds what a build before it ignored, although no file changed; and the reverse."""
    raw, out = tmp_path / "raw", tmp_path / "out"
    for name, label in (("a", at()), ("b", at(5e5 + 40))):
        for folder, data in (("images", at()), ("labels", label)):
            (raw / folder).mkdir(parents=True, exist_ok=True)
            (raw / folder / f"{name}.tif").write_bytes(data)
            os.utime(raw / folder / f"{name}.tif", (0, 0))
    options = ("--json", "--classes", 2, "--on-bad", "skip")
    for place, bad in (("check", 1), ("ignore", 0), ("check", 1), ("ignore", 0)):
        assert len(json_of("build", *options, "--place", place, raw, out)["rejects"]) == bad
        assert len(open_dataset(out)) == 2 - bad
        again = json_of("build", *options, "--place", place, raw, out)
        assert again["reused_rows"] == 2 - bad


def test_a_field_at_another_place_is_bad(tmp_path: Path) -> None:
    for folder, data in (("images", at()), ("labels", at()), ("height", at(5e5 + 40))):
        (tmp_path / "raw" / folder).mkdir(parents=True)
        (tmp_path / "raw" / folder / "a.tif").write_bytes(data)
    pairs = ("--image", "images/{key}", "--label", "labels/{key}", "--classes", 2)
    field = ("--field", "h=values:height/{key}")
    refused = run("build", *pairs, *field, tmp_path / "raw", tmp_path / "out")
    assert "its file height/a.tif at (500040, 4000000)" in refused.stderr
    for folder in ("images", "labels", "height"):
        (tmp_path / "raw" / folder / "b.tif").write_bytes(at())
    skipped = run("build", "--json", *pairs, *field, "--on-bad", "skip", tmp_path / "raw", tmp_path / "out")
    assert [each["key"] for each in json.loads(skipped.stdout)["rejects"]] == ["a"]


@pytest.mark.parametrize("volumes", [True, False])
@pytest.mark.parametrize("how", ["flipped", "quaternion"])
def test_a_volume_at_another_place_than_its_label_is_bad(tmp_path: Path, volumes: bool, how: str) -> None:
    numbers = nifti(np.zeros(SIDES, np.uint8))
    turned = (0.0, 0.0, 1.0, 90, 126, -72, 1, 1, 1, 2)  # half a turn around the third axis: SFORM
    moved = (*turned[:3], 91, *turned[4:])
    labels = {"flipped": with_place(numbers, FLIPPED), "quaternion": with_place(numbers, (), moved)}
    for name, label in (("a", with_place(numbers, (), turned)), ("b", labels[how]), ("c", numbers)):
        for folder, data in (("imagesTr", with_place(numbers, SFORM)), ("labelsTr", label)):
            (tmp_path / "raw" / folder).mkdir(parents=True, exist_ok=True)
            (tmp_path / "raw" / folder / f"{name}.nii").write_bytes(data)
    options = (*(("--volumes",) if volumes else ()), "--image-range", "0,9", "--classes", 2)
    errors = errors_of(1, "build", "--from", tmp_path / "raw", *options, tmp_path / "out")
    where = "(86, 126, -72)" if how == "flipped" else "(91, 126, -72)"
    part = "" if volumes else "[0]"
    assert f"imagesTr/b.nii{part}: has its pixel (0, 0, 0) at (90, 126, -72)" in errors
    assert f"labelsTr/b.nii{part} at {where}" in errors
    assert "/a.nii" not in errors
    assert "/c.nii" not in errors


def test_the_grid_of_nifti_2(tmp_path: Path) -> None:
    head = bytearray(nifti(np.zeros(SIDES, np.uint8), 2))
    struct.pack_into("<ii", head, 344, 0, 2)
    struct.pack_into("<12d", head, 400, *SFORM)
    (tmp_path / "a.nii").write_bytes(head)
    expected = Grid(SIDES, (("sform", tuple(map(float, SFORM))),), System(NIFTI))
    assert Volume.open(tmp_path / "a.nii").grid == expected


def test_two_volumes_compare_what_both_have(tmp_path: Path) -> None:
    """A volume may have a place in a scanner and another in an atlas."""
    numbers = nifti(np.zeros(SIDES, np.uint8))
    scanner, atlas = (0.0, 0.0, 0.0, 1, 2, 3, 1, 1, 1, 1), SFORM
    for name, data in (("both", with_place(numbers, atlas, scanner)), ("one", with_place(numbers, (), scanner))):
        (tmp_path / f"{name}.nii").write_bytes(data)
    both, one = (Volume.open(tmp_path / f"{name}.nii").grid for name in ("both", "one"))
    assert not other_place("both", both, "one", one, "label")
    assert not other_place("one", one, "both", both, "label")


@pytest.mark.parametrize("is_giant", [False, True])
def test_a_value_for_no_data_is_a_finding(tmp_path: Path, is_giant: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pixels of -9999 were packed like others, and no line said so."""
    if is_giant:
        monkeypatch.setattr(giant, "GIANT", 0)
    for name, no_data in (("a", b"-9999\0"), ("b", b"-9999 \0"), ("c", b"")):
        for folder, text in (("images", no_data), ("labels", b"255\0"), ("height", b"nan\0")):
            (tmp_path / "raw" / folder).mkdir(parents=True, exist_ok=True)
            (tmp_path / "raw" / folder / f"{name}.tif").write_bytes(geo_tiff(1, t42113=text))
    pairs = ("--image", "images/{key}", "--label", "labels/{key}", "--size", "native", "--encode", "image=tiles:16")
    tiles = ("--encode", "label=tiles:16", "--encode", "h=tiles:16")
    field, raw = '{"name": "h", "kind": "values", "from": "height/{key}"', tmp_path / "raw"
    built = good("build", "--json", *pairs, *tiles, "--classes", 2, "--field", field + "}", raw, tmp_path / "out")
    found = [each["accept"] for each in json.loads(built.stdout)["findings"] if each["kind"] == "no-data"]
    assert found == ["no-data:image=-9999", "no-data:label=255"]
    assert json.loads(built.stdout)["note_totals"]["files of image that name -9999 as no data"] == 2
    assert "values that files name for no data, and that are packed like others (2): image=-9999" in built.stderr
    probed = json_of("probe", "--json", raw)["findings"]
    assert {"no-data:image=-9999", "no-data:label=255"} <= {each["accept"] for each in probed}
    probed = json_of("probe", "--json", "--classes", 2, "--ignore", 255, raw)["findings"]
    assert "no-data:label=255" not in [each["accept"] for each in probed]
    handled = ("--classes", 2, "--ignore", 255, "--field", field + ', "invalid": 0}', "--fail-on", "no-data")
    errors = errors_of(6, "build", *pairs, *tiles, *handled, raw, tmp_path / "out")
    assert "no-data:image=-9999" in errors
    assert "label=255" not in errors
    assert run("build", *pairs, *tiles, *handled, "--accept", "no-data", raw, tmp_path / "out").exit_code == 0


def test_a_pack_of_a_version_that_counted_no_values_for_no_data_is_repaired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw, out = tmp_path / "raw", tmp_path / "out"
    for split in ("train", "val"):
        for folder in ("images", "labels"):
            (raw / split / folder).mkdir(parents=True)
            (raw / split / folder / "a.tif").write_bytes(geo_tiff(1, t42113=b"-9999\0"))
    with monkeypatch.context() as older:
        older.setattr(HeaderJudge, "_no_data", lambda judge, headers: {})
        assert run("build", "--quiet", "--classes", 2, raw, out).exit_code == 0
    next(out.glob("shards/val-*.image.npy")).unlink()
    assert "generation 2," in good("repair", "--quiet", out).stdout
    assert run("verify", out).exit_code == 0
    next(out.glob("shards/val-*.image.npy")).unlink()
    assert "generation 2," in run("repair", "--quiet", out).stdout
