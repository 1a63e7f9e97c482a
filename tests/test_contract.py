"""The format: a manifest, a receipt and a table are refused unless everything in them fits."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from conftest import REPO, RawFolder, pack
from hypothesis import given
from hypothesis import strategies as st

from packer.shards.receipt_on_disk import content_fingerprint
from readers import DamagedError, ManifestError, NoPackError, VersionError, open_dataset
from readers.contract.json_entry import Entry, JsonProblem, fingerprint
from readers.contract.manifest import MANIFEST, Manifest
from readers.contract.onehot import collapse, expand
from readers.contract.receipt import SUFFIX, Note, Receipt, Reject, RowInput, ShardFile
from readers.contract.shard_table import table_path
from readers.contract.statistics import ClassStatistics
from readers.pack import Pack

SCHEMA = json.loads((REPO / "docs" / "manifest.schema.json").read_text())


def parts(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of the first split."""
    found: list[dict[str, Any]] = document["splits"][0]["parts"]
    return found


def known(document: dict[str, Any], field: str = "label") -> dict[str, Any]:
    """Return the statistics of a field in the first split."""
    found: dict[str, Any] = document["splits"][0]["statistics"][field]
    return found


def table(document: dict[str, Any]) -> dict[str, Any]:
    """Return the class table of the label."""
    classes: dict[str, Any] = document["fields"][1]["classes"]
    return classes


def native(document: dict[str, Any], *planes: int) -> None:
    """Give image and label so many planes and native sizes."""
    for field, count in zip(document["fields"], planes, strict=True):
        field["shape"] = [count, None, None]


def sealed(document: dict[str, Any]) -> str:
    """Return a document as the text of a manifest, with the right checksum."""
    document = {key: value for key, value in document.items() if key != "checksum"}
    document["checksum"] = fingerprint(document)
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def test_a_manifest_is_written_and_read_unchanged(packed: Path) -> None:
    text = (packed / MANIFEST).read_text()
    manifest = Manifest.load(packed)
    assert manifest.to_text() == text
    assert Manifest.from_text(text, "") == manifest
    assert manifest == Manifest.load(packed, generation=1)


def test_a_manifest_fits_its_published_schema(packed: Path, packed_index: Path) -> None:
    for out in (packed, packed_index):
        document = json.loads((out / MANIFEST).read_text())
        jsonschema.validate(document, SCHEMA)
        for change in ({"extra": 1}, {"storage": "zip"}, {"table": "../x"}, {"generation": 0}):
            with pytest.raises(jsonschema.ValidationError):
                jsonschema.validate(document | change, SCHEMA)


def test_the_manifest_is_small_whatever_the_number_of_shards(packed: Path) -> None:
    assert Manifest.load(packed).shards >= 3
    assert "fingerprint" not in (packed / MANIFEST).read_text()


FIELD_BREAKS: list[tuple[str, int, dict[str, Any], str]] = [
    ("bad dtype", 0, {"dtype": "|O"}, "dtype: expected one of |u1, <u2, <i2, <f2, <f4"),
    ("bad shape", 0, {"shape": [3, -1, 4]}, "shape.1: expected a whole number"),
    ("flat shape", 0, {"shape": [3]}, "shape: expected 3 numbers"),
    ("a native shape of two numbers", 0, {"shape": [3, None]}, "shape: expected 3 numbers"),
    ("half a native size", 0, {"shape": [3, None, 7]}, "shape: expected null for height and width, both or neither"),
    ("any number of planes", 0, {"shape": [None, None, None]}, "shape: expected null"),
    (
        "huge shape",
        0,
        {"shape": [3, 2**40, 2**40]},
        "shape: a row of 3626777458843887524118528 bytes is over the limit",
    ),
    ("too many planes", 1, {"shape": [9, 24, 36]}, "shape: 9 planes, 4 classes"),
    ("sizes differ", 1, {"shape": [4, 24, 37]}, "shape: image (3, 24, 36) and label (4, 24, 37) differ in size"),
    ("a name of a column", 1, {"name": "key"}, "name: expected up to 32 of a-z"),
    ("a name that ends as ends do", 1, {"name": "label_end"}, "name: expected up to 32 of a-z"),
    ("a path as a name", 1, {"name": "../label"}, "name: expected up to 32 of a-z"),
    ("unknown kind", 1, {"kind": "boxes"}, "kind: expected one of picture, classes, ids, values, multilabel"),
    ("a form of another kind", 1, {"form": "bits"}, "form: expected one of index, onehot"),
    ("a dtype of another form", 1, {"dtype": "<u2"}, "dtype: expected one of |u1, found '<u2'"),
    ("no bands", 0, {"bands": []}, "bands: expected 1 to 512 names"),
    ("bands of null", 0, {"bands": None}, "bands: is missing"),
    ("other bands", 0, {"bands": ["gray"]}, "shape: 3 planes, 1 bands"),
    ("a band without a name", 0, {"bands": ["red", "", "blue"]}, "bands: expected 1 to 512 names of 1 to 64"),
    ("bands of a label", 1, {"bands": ["red"]}, "bands: expected null"),
    ("a label without classes", 1, {"classes": None}, "classes: is missing"),
    ("dates that do not fit", 0, {"times": 2}, "times: expected dates of equally many bands of a picture, found 2"),
    ("one date", 0, {"times": 1}, "times: expected a whole number from 2"),
    ("dates of a label", 1, {"times": 4}, "times: expected dates of pictures only"),
    ("a fill beyond the type", 0, {"fill": 256}, "fill: expected a number of |u1, found 256"),
    ("another fill", 1, {"fill": 1}, "fill: expected 0, found 1"),
    ("a fill that is a text", 0, {"fill": "nan"}, "fill: expected a number of |u1, found 'nan'"),
    ("a fill that is true", 0, {"fill": False}, "fill: expected a number or a text, found False"),
    ("another range", 0, {"range": [0, 1]}, "range: expected [0, 255]"),
    ("range of a label", 1, {"range": [0, 255]}, "range: expected null"),
    ("the first field is optional", 0, {"optional": True}, "optional: expected false"),
    ("optional as a number", 1, {"optional": 0}, "optional: expected true or false"),
    ("encoding of two words", 1, {"encoding": "run length"}, "encoding: expected the name of an encoding"),
    ("a label as JPEG", 1, {"encoding": "jpeg"}, "encoding: expected a picture of |u1 with 1 or 3 bands"),
    ("a tile of raw rows", 1, {"tile": [8, 8]}, "tile: expected null"),
    ("tiles without a size", 1, {"encoding": "tiles"}, "tile: expected a number for each side"),
    ("a tile of three sides", 1, {"encoding": "tiles", "tile": [8, 8, 8]}, "tile: expected a number for each side"),
    ("a label in tiles of JPEG", 1, {"encoding": "tiles-jpeg", "tile": [8, 8]}, "encoding: expected a picture of |u1"),
]
Change = Callable[[list[dict[str, Any]]], object]
PART_BREAKS: list[tuple[str, Change, str]] = [
    ("rows of parts", lambda p: p[0].update(rows=1), "rows: expected the sum over its parts"),
    ("shards of parts", lambda p: p[0].update(shards=9), "shards: expected the sum over its parts"),
    ("a part of nothing", lambda p: p.append({**p[0], "rows": 0, "shards": 0}), "parts.1.shards: expected a whole"),
    ("the same part twice", lambda p: p.append({**p[0], "rows": 0}), "parts: expected different parts"),
    ("17 parts", lambda p: p.extend([p[0]] * 16), "parts: expected at most 16, found 17"),
    ("an unknown field of a part", lambda p: p[0].update(fields=["image", "depth"]), "parts.0.fields: expected fields"),
    ("fields in another order", lambda p: p[0].update(fields=["label", "image"]), "parts.0.fields: expected fields"),
    (
        "a label that is not optional",
        lambda p: p[0].update(fields=["image"]),
        "parts.0.fields: 'label' is not optional",
    ),
]
BREAKS: list[tuple[str, Callable[[dict[str, Any]], object], str]] = [
    ("missing key", lambda d: d.pop("storage"), "storage: is missing"),
    ("unknown key", lambda d: d.update(extra=1), "extra: is not known to this version"),
    ("wrong kind", lambda d: d.update(bytes="many"), "bytes: expected a whole number, found str"),
    ("negative", lambda d: d.update(bytes=-1), "bytes: expected a whole number from 0"),
    ("true is not a number", lambda d: d.update(bytes=True), "bytes: expected a whole number"),
    ("unknown storage", lambda d: d.update(storage="zarr"), "storage: expected one of arrow, hdf5, lmdb, npy"),
    ("path as split", lambda d: d["splits"][0].update(name="../etc"), "splits.0.name: expected letters"),
    ("same split twice", lambda d: d["splits"][1].update(name="train"), "splits: expected different names"),
    ("all and others", lambda d: d["splits"][1].update(name="all"), "splits: expected different names"),
    *(
        (name, lambda d, number=number, change=change: d["fields"][number].update(change), f"fields.{number}.{message}")
        for name, number, change, message in FIELD_BREAKS
    ),
    ("a native image alone", lambda d: d["fields"][0].update(shape=[3, None, None]), "differ in size"),
    ("native planes", lambda d: native(d, 3, 5), "fields.1.shape: 5 planes, 4 classes"),
    ("many native planes", lambda d: native(d, 2**41, 4), "fields.0.shape: 2199023255552 planes, 3 bands"),
    ("no fields", lambda d: d.update(fields=[]), "fields: expected 1 to 32 names, each once, found 0"),
    ("same field twice", lambda d: d["fields"][1].update(name="image"), "fields: expected 1 to 32 names, each once"),
    ("33 fields", lambda d: d.update(fields=[{**d["fields"][0], "name": f"a{n}"} for n in range(33)]), "found 33"),
    (
        "bad colour",
        lambda d: table(d)["classes"][0].update(colour="red"),
        "fields.1.classes.classes.0.colour: expected",
    ),
    ("no classes", lambda d: table(d).update(classes=[]), "fields.1.classes.classes: expected 1 to"),
    ("a table next to the fields", lambda d: d.update(classes=table(d)), "classes: is not known to this version"),
    (
        "counts",
        lambda d: known(d).update(classes=[1], rows=[1], areas=[1]),
        "label: expected classes, rows, areas, ignored for 4 bands",
    ),
    ("areas", lambda d: known(d).update(areas=[1]), "splits.0.statistics.label: expected lists of one length"),
    (
        "bands",
        lambda d: known(d, "image").update(sums=["1"], squares=["1"]),
        "image: expected numbers, sums, squares for 3 bands or classes, found numbers, sums, squares for 1 bands",
    ),
    ("sums", lambda d: known(d, "image").update(sums=[1] * 3), "splits.0.statistics.image.sums.0: expected a text"),
    ("negative", lambda d: known(d, "image").update(squares=["-1"] * 3), "image.squares.0: is less than this count"),
    (
        "too few squares",
        lambda d: known(d, "image").update(squares=["0"] * 3),
        "image.squares.0: is less than this count",
    ),
    ("digits", lambda d: known(d, "image").update(sums=["0", "-0", "0"]), "image.sums.1: expected a whole number"),
    ("other kind", lambda d: known(d, "image").update(invalid=0), "found numbers, invalid, sums, squares for 3"),
    (
        "no field",
        lambda d: d["splits"][0]["statistics"].pop("image"),
        "expected statistics of image, label, found label",
    ),
    *(
        (name, lambda d, change=change: change(parts(d)), f"splits.0.{message}")
        for name, change, message in PART_BREAKS
    ),
    ("path as table", lambda d: d.update(table="../../etc/passwd"), "table: expected 64 hex digits"),
    ("other format", lambda d: d.update(format="zip"), "expected 'segpack' version 2, found 'zip'"),
]


@pytest.fixture(scope="module")
def manifest_text(raw_folder: RawFolder, tmp_path_factory: pytest.TempPathFactory) -> str:
    return (pack(raw_folder.path, tmp_path_factory.mktemp("manifest") / "out") / MANIFEST).read_text()


@pytest.fixture
def document(manifest_text: str) -> dict[str, Any]:
    """A manifest, to be changed."""
    return dict(json.loads(manifest_text))


@pytest.mark.parametrize(("change", "message"), [row[1:] for row in BREAKS], ids=[row[0] for row in BREAKS])
def test_a_broken_manifest_is_refused_and_the_value_named(
    document: dict[str, Any], change: Callable[[dict[str, Any]], object], message: str
) -> None:
    change(document)
    with pytest.raises(ManifestError) as caught:
        Manifest.from_text(sealed(document), "manifest.json")
    assert message in str(caught.value)


PLAIN = {"name": "more", "fill": 0, "range": None, "optional": True, "encoding": "raw", "tile": None, "classes": None}
GRAY = {"kind": "picture", "form": "bands", "dtype": "|u1", "shape": [1, 24, 36], "bands": ["gray"], "range": [0, 255]}
BANDED = {**PLAIN, **GRAY}
BARE = {**PLAIN, "kind": "values", "form": "index", "dtype": "<f2", "shape": [24, 36], "bands": None}
ALLOWED: dict[str, dict[str, Any]] = {
    "gray": BANDED,
    "512 bands": {**BANDED, "dtype": "<i2", "shape": [512, 24, 36], "bands": [*map(str, range(512))], "range": None},
    "a range of floats": {**BANDED, "dtype": "<f4", "range": [-1.5, 2]},
    "padding": {**BANDED, "fill": 114},
    "dates": {**BANDED, "shape": [6, 24, 36], "bands": [*map(str, range(6))], "times": 3},
    "jpeg": {**BANDED, "encoding": "jpeg"},
    "tiles": {**BANDED, "encoding": "tiles-zstd", "tile": [256, 512]},
    "an encoding of later": {**BANDED, "encoding": "webp", "tile": [8, 8]},
    "ids": {**BARE, "kind": "ids", "dtype": "<u4"},
    "values": {**BARE, "fill": -0.5},
    "values with NaN": {**BARE, "fill": "nan"},
    "whole values": {**BARE, "dtype": "<i2", "fill": -32768},
}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "513 bands": ({**BANDED, "shape": [513, 24, 36], "bands": [*map(str, range(513))]}, "bands: expected 1 to 512"),
    "a range that falls": ({**BANDED, "dtype": "<f4", "range": [1, 1]}, "range: expected two numbers"),
    "a range of one": ({**BANDED, "dtype": "<u2", "range": [1]}, "range: expected two numbers"),
    "ids of one byte": ({**BARE, "kind": "ids", "dtype": "|u1"}, "dtype: expected one of <u2, <u4"),
    "filled ids": ({**BARE, "kind": "ids", "dtype": "<u2", "fill": 65535}, "fill: expected 0"),
    "ids with planes": ({**BARE, "kind": "ids", "dtype": "<u2", "shape": [1, 24, 36]}, "shape: expected 2 numbers"),
    "a fill between two floats": ({**BARE, "fill": 0.1}, "fill: expected a number of <f2"),
    "a fill beyond the floats": ({**BARE, "fill": 70000}, "fill: expected a number of <f2"),
    "a fill beyond all": ({**BARE, "fill": 10**400}, "fill: expected a number or a text"),
    "half a fill": ({**BARE, "dtype": "<i2", "fill": 0.5}, "fill: expected a number of <i2"),
    "NaN in whole numbers": ({**BARE, "dtype": "<u2", "fill": "nan"}, "fill: expected a number of <u2"),
    "another text": ({**BARE, "fill": "inf"}, "fill: expected a number of <f2"),
    "classes of values": ({**BARE, "classes": {"classes": []}}, "classes: expected null"),
}


def with_field(document: dict[str, Any], field: dict[str, Any]) -> str:
    """Return the text of a manifest with one more field, its keys in their order."""
    ordered = {key: field[key] for key in document["fields"][0]}
    splits = [
        {**split, "statistics": {**split["statistics"], field["name"]: counted(field)}} for split in document["splits"]
    ]
    return sealed({**document, "fields": [*document["fields"], ordered], "splits": splits})


def counted(field: dict[str, Any]) -> dict[str, Any]:
    """Return the statistics of a field of this kind: of no rows."""
    if field["kind"] == "ids":
        return {"numbers": 0, "empty": 0}
    if field["kind"] == "multilabel":
        nothing = [0] * len(field["classes"]["classes"])
        return {"classes": nothing, "rows": nothing, "areas": nothing, "ignored": 0}
    sums = {"sums": ["0"] * len(field["bands"] or "1"), "squares": ["0"] * len(field["bands"] or "1")}
    return {"numbers": 0, **({"invalid": 0} if field["kind"] == "values" else {}), **sums}


@pytest.mark.parametrize("name", ALLOWED)
def test_every_kind_of_field_is_read_unchanged(document: dict[str, Any], name: str) -> None:
    text = with_field(document, ALLOWED[name])
    manifest = Manifest.from_text(text, "m")
    assert manifest.to_text() == text
    assert manifest.field("more").optional
    assert manifest == Manifest.from_text(text, "m") == copy.deepcopy(manifest)
    jsonschema.validate(json.loads(text), SCHEMA)


@pytest.mark.parametrize("name", REFUSED)
def test_an_impossible_field_is_refused_and_the_value_named(document: dict[str, Any], name: str) -> None:
    change, message = REFUSED[name]
    with pytest.raises(ManifestError) as caught:
        Manifest.from_text(with_field(document, change), "m")
    assert f"fields.2.{message}" in str(caught.value)


def test_parts_are_in_order(document: dict[str, Any]) -> None:
    """Rows with a label come before those without."""
    document["fields"][1]["optional"] = True
    split = document["splits"][0]
    split["parts"].append({"fields": ["image"], "rows": 5, "shards": 2})
    split.update(rows=split["rows"] + 5, shards=split["shards"] + 2)
    manifest = Manifest.from_text(sealed(document), "m")
    assert [part.rows for part in manifest.splits[0].parts] == [split["rows"] - 5, 5]
    jsonschema.validate(json.loads(sealed(document)), SCHEMA)
    split["parts"].reverse()
    with pytest.raises(ManifestError, match=r"splits.0.parts: expected different parts, those with more of the first"):
        Manifest.from_text(sealed(document), "m")


@pytest.mark.parametrize(("form", "count", "planes"), [("planes", 9, 9), ("bits", 8, 1), ("bits", 9, 2)])
def test_overlapping_classes_have_a_plane_or_a_bit_each(
    document: dict[str, Any], form: str, count: int, planes: int
) -> None:
    """The field has a table of its own, other than that of the label."""
    rows = [{**table(document)["classes"][0], "name": f"c{number}"} for number in range(count)]
    classes = {"classes": rows, "ignored_values": [], "ignored_colours": []}
    field = {**BARE, "kind": "multilabel", "form": form, "dtype": "|u1", "classes": classes}
    text = with_field(document, {**field, "shape": [planes, 24, 36]})
    manifest = Manifest.from_text(text, "m")
    assert len(manifest.classes) == 4
    assert len(manifest.fields[2].classes or ()) == count
    with pytest.raises(ManifestError, match=rf"fields.2.shape: {planes + 1} planes, {count} classes"):
        Manifest.from_text(with_field(document, {**field, "shape": [planes + 1, 24, 36]}), "m")


@pytest.mark.parametrize("version", [1, 3])
def test_another_version_is_refused_with_what_to_do(document: dict[str, Any], version: int) -> None:
    """It is not damaged: nothing repairs it, and nothing replaces it."""
    document.update(version=version, more={"field": 1})
    with pytest.raises(VersionError, match=f"version {version} of the format.*build it again into another folder"):
        Manifest.from_text(sealed(document), "m")
    with pytest.raises(ManifestError, match=f"found 'segpack' version {version}"):
        Manifest.from_text(sealed(document).replace('"sky"', '"sea"'), "m")


@pytest.mark.parametrize("more", ['"\\ud800"', "[" * 900 + "]" * 900, "NaN"])
def test_another_version_with_what_no_checksum_can_be_of_is_damage(more: str) -> None:
    text = f'{{"format": "segpack", "version": 3, "checksum": "{"0" * 64}", "more": {more}}}'
    with pytest.raises(ManifestError, match="found 'segpack' version 3"):
        Manifest.from_text(text, "m")


def test_all_problems_are_reported_together(document: dict[str, Any]) -> None:
    document.update(bytes=-1, storage="zip", extra=True)
    document["splits"][0]["rows"] = "x"
    with pytest.raises(ManifestError) as caught:
        Manifest.from_text(sealed(document), "m")
    assert {problem.where for problem in caught.value.problems} == {"bytes", "storage", "extra", "splits.0.rows"}


@pytest.mark.parametrize("text", ["", "[]", "null", "{", "[" * 100_000, '{"format": "segpack", "version": 2}'])
def test_a_text_that_is_not_a_manifest_raises_our_error(text: str) -> None:
    with pytest.raises(ManifestError):
        Manifest.from_text(text, "m")


def test_a_changed_character_breaks_the_checksum(document: dict[str, Any]) -> None:
    text = sealed(document)
    for changed in (text.replace('"sky"', '"sea"'), text + "\n", text.replace("1,", "1, ")):
        assert changed != text
        with pytest.raises(ManifestError, match="checksum"):
            Manifest.from_text(changed, "m")


def test_a_huge_or_garbled_file_is_not_read_as_a_manifest(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_bytes(b" " * (17 << 20))
    with pytest.raises(ManifestError, match="limit"):
        Manifest.load(tmp_path)
    (tmp_path / MANIFEST).write_bytes(b"\xff\xfe{}")
    with pytest.raises(ManifestError, match="UTF-8"):
        Manifest.load(tmp_path)


def test_a_folder_that_is_not_a_pack_is_named_with_the_command_that_fits(packed: Path, tmp_path: Path) -> None:
    raw, empty, begun, above = (tmp_path / name for name in ("raw", "empty", "begun", "above"))
    (raw / "train" / "images").mkdir(parents=True)
    (raw / "train" / "images" / "a.JPG").write_bytes(b"")
    empty.mkdir()
    (tmp_path / "scans").mkdir()
    (tmp_path / "scans" / "a.nii.gz").touch()
    begun.mkdir()
    (begun / ".segpack").touch()
    shutil.copytree(packed, above / "out")
    (tmp_path / "file").touch()
    expected = {
        raw: f"raw pictures.*packer probe {raw}.*packer build {raw} OUT",
        tmp_path / "scans": f"volumes.*packer build --from {tmp_path}/scans OUT",
        empty: f"no packed data set here .*packer build RAW {empty}",
        begun: f"has published nothing.*packer build RAW {begun}",
        above: f"there is one in {above}/out",
        above / "out" / "shards": f"a part of the packed data set {above}/out",
        tmp_path / "file": "is a file",
        tmp_path / "none": "no such folder.*packer build RAW",
    }
    for folder, message in expected.items():
        with pytest.raises(NoPackError, match=message):
            Manifest.load(folder)


def test_a_missing_generation_is_named(packed: Path) -> None:
    with pytest.raises(NoPackError, match=r"000007\.json is missing"):
        Manifest.load(packed, generation=7)


FIELDS = "image", "label"


@given(st.lists(st.lists(st.text(), min_size=3, max_size=3), max_size=3), st.lists(st.text(), max_size=3))
def test_the_text_of_a_receipt_is_json_without_indentation(sources: list[list[str]], looks: list[str]) -> None:
    files = (ShardFile(".image.npy", 7, "0" * 64),)
    rejects = tuple(Reject(*source[:2]) for source in sources)
    rows = tuple(RowInput(*source) for source in sources)
    notes = tuple(Note(*source[1:]) for source in sources)
    known = {"label": ClassStatistics.none(2)}
    sums = {"image": (1, 2), "label": ()}
    receipt = Receipt(
        "train", "0" * 32, "npy", "1" * 32, FIELDS, rows, rejects, notes, files, sums, tuple(looks), known
    )
    text = receipt.to_text()
    assert text == json.dumps(json.loads(text), indent=0, ensure_ascii=False) + "\n"
    assert json.loads(text)["sources"] == sources


def test_a_receipt_is_read_unchanged_and_counts_every_pair(packed: Path) -> None:
    receipts = [Receipt.load(path) for path in packed.glob(f"shards/*{SUFFIX}")]
    assert sum(len(receipt.sources) for receipt in receipts) == 32
    for receipt in receipts:
        assert Receipt.from_text(receipt.to_text(), "") == receipt
        assert receipt.rows == len(receipt.sources)
        assert receipt.bytes == sum(
            (packed / "shards" / (receipt.stem + f.suffix)).stat().st_size for f in receipt.files
        )


WRONG_COUNTS: tuple[object, ...] = ({}, [], {"": 1}, {"a\nb": 1}, {"a": 0}, {"a": True}, {"a": 2**63}, {"a": "1"})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("fingerprint", "../../x"),
        ("split", "a/b"),
        ("files", [{"suffix": "/../../etc/passwd", "bytes": 1, "blake3": "0" * 64}]),
        ("sources", [["a", "b"]]),
        ("rejects", [["a", "b"]]),
        ("crc32", [1]),
        ("crc32", {"image": [1], "label": [1.5]}),
        ("crc32", {"image": [1]}),
        ("crc32", {"image": [], "label": [], "depth": []}),
        ("crc32", {"image": [], "label": []}),
        ("crc32", {"image": [2**32], "label": [1]}),
        ("looks", ["0123abcdflat"]),
        ("notes", [["no such row", "x"]]),
        ("notes", [["a", "b", "c"]]),
        *(("counts", wrong) for wrong in WRONG_COUNTS),
        ("storage", "pickle"),
    ],
)
def test_a_broken_receipt_is_refused(packed: Path, key: str, value: object) -> None:
    document = json.loads(next(packed.glob(f"shards/*{SUFFIX}")).read_text())
    document[key] = value
    with pytest.raises(DamagedError, match=key.rstrip("s")):
        Receipt.from_text(json.dumps(document), "receipt")


def test_notes_are_short_lines_about_packed_rows_in_their_order(packed: Path) -> None:
    receipt = next(Receipt.load(path) for path in packed.glob(f"shards/*{SUFFIX}") if "train" in path.name)
    document = json.loads(receipt.to_text())
    first, second = receipt.keys[:2]
    document["notes"] = [[first, "x" * 500], [second, "2 polygons cover no pixel; ja, 3 µm"]]
    assert Receipt.from_text(json.dumps(document), "").notes == tuple(Note(*note) for note in document["notes"])
    for wrong in (
        [[second, "x"], [first, "x"]],
        [[first, "x"], [first, "x"]],
        *([[first, text]] for text in ("", "x" * 501, "two\nlines", "\x7f", "\x9b31m", "\u2028", "\ud800")),
    ):
        document["notes"] = wrong
        with pytest.raises(DamagedError, match="notes"):
            Receipt.from_text(json.dumps(document), "")


def test_counts_are_in_a_receipt_and_in_its_name(packed: Path) -> None:
    plain = next(Receipt.load(path) for path in packed.glob(f"shards/*{SUFFIX}"))
    counted = replace(plain, counts={"objects painted": 12})
    assert "counts" not in json.loads(plain.to_text())
    assert Receipt.from_text(counted.to_text(), "") == counted
    assert counted.to_text() == json.dumps(json.loads(counted.to_text()), indent=0, ensure_ascii=False) + "\n"
    assert content_fingerprint(counted) != content_fingerprint(plain)


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "pickled", "other dtype", "other rows"])
def test_a_damaged_table_raises_our_error(packed: Path, tmp_path: Path, damage: str) -> None:
    out = tmp_path / "out"
    shutil.copytree(packed, out)
    path = table_path(out, Manifest.load(out).table)
    records = np.load(path)
    if damage == "missing":
        path.unlink()
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:-1])
    elif damage == "pickled":
        np.save(path, np.array([{}], dtype=object), allow_pickle=True)
    elif damage == "other dtype":
        np.save(path, np.zeros(len(records)))
    else:
        records["end"][-1] += 1
        np.save(path, records)
    with pytest.raises(DamagedError, match="shards-"):
        open_dataset(out, split="train")


def test_rows_are_located_as_by_counting(packed: Path) -> None:
    pack = Pack.open(packed)
    expected = [(shard, row) for shard in range(len(pack.table)) for row in range(pack.table.rows(shard))]
    assert [pack.table.locate(row) for row in range(pack.manifest.rows)] == expected


@given(st.data(), st.integers(1, 300), st.integers(1, 5), st.integers(1, 5), st.booleans())
def test_onehot_and_index_are_each_others_inverse(
    data: st.DataObject, classes: int, height: int, width: int, is_volume: bool
) -> None:
    dtype, ignore = ("|u1", 255) if classes <= 255 else ("<u2", 65_535)
    numbers = st.lists(
        st.one_of(st.integers(0, classes - 1), st.just(ignore)), min_size=height * width, max_size=height * width
    )
    index = np.array(data.draw(numbers), dtype).reshape(height, width)
    index = np.stack([index, index[::-1]]) if is_volume else index
    planes = expand(index, classes)
    assert planes.dtype == np.uint8
    assert planes.max() <= 1
    assert np.array_equal(planes.sum(axis=0), index != ignore)
    assert np.array_equal(collapse(planes, dtype), index)


@pytest.mark.parametrize(
    ("take", "good", "bad", "message"),
    [
        (Entry.wholes, [0, 2**63 - 1], True, "expected a whole number from 0 on, found True"),
        (Entry.wholes, [1], 2**63, "expected a whole number from 0 on, found 9223372036854775808"),
        (Entry.shape, [1, None], 0, "expected a whole number from 1 on, or null, found 0"),
        (Entry.numbers, [1, 0.5], float("inf"), "expected a number, found inf"),
        (Entry.numbers, [1], "1", "expected a number, found str '1'"),
        (Entry.texts, ["a"], None, "expected a text, found null"),
        (Entry.lists, [[1]], {}, "expected a list, found dict '{}'"),
    ],
)
def test_each_kind_of_list_names_its_first_wrong_value(take: Any, good: list[Any], bad: Any, message: str) -> None:
    problems: list[JsonProblem] = []
    assert list(take(Entry({"x": good}, "at", problems), "x")) == good
    assert not problems
    assert not take(Entry({"x": [*good, bad, bad]}, "at", problems), "x")
    assert list(map(str, problems)) == [f"at.x.{len(good)}: {message}"]
