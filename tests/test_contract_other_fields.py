"""Packs with fields that the packer does not write yet: the contract allows them, and readers deliver them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import errors_of, run
from numpy.typing import NDArray

from packer.shards.formats import writer
from readers import DamagedError, RequestError, VersionError, open_dataset
from readers.contract.classes import ClassTable, SegClass
from readers.contract.fields import Field, classes_field, picture_field
from readers.contract.kinds import BITS, IDS, INDEX, MULTILABEL, VALUES
from readers.contract.manifest import GENERATIONS, MANIFEST, SHARDS, Manifest, Split
from readers.contract.parts import Part
from readers.contract.shard_table import RECORD, field_bits, table_header, table_path
from readers.contract.statistics import no_rows

SIZE = 5, 7
ROWS = 6
CLASSES = ClassTable((SegClass("cell"), SegClass("wall")))
PARTS = ClassTable(tuple(SegClass(f"part{number}") for number in range(9)))
FIELDS = (
    picture_field("scan", "<u2", SIZE, ("gray",)),
    classes_field("label", INDEX, CLASSES, SIZE),
    Field("instance", IDS, INDEX, "<u4", SIZE),
    Field("depth", VALUES, INDEX, "<f2", SIZE, fill="nan"),
    Field("parts", MULTILABEL, BITS, "|u1", (2, *SIZE), classes=PARTS),
)


def made_up(field: Field) -> NDArray[Any]:
    rng = np.random.default_rng(len(field.name))
    numbers = rng.integers(0, 2 if field.name == "label" else 200, (ROWS, *field.planes, *SIZE)).astype(field.dtype)
    if field.dtype[1] == "f":
        numbers[:, 0] = np.nan
    return numbers


def written(
    out: Path, storage: str, fields: Sequence[Field] = FIELDS, lacking: Sequence[str] = ()
) -> dict[str, NDArray[Any]]:
    """Write a pack of one shard with these fields, and return its columns.

    If some are `lacking`, a second shard has as many rows without them. The columns have padding there.
    """
    arrays = {field.name: made_up(field) for field in fields}
    shards = [fields, *([[field for field in fields if field.name not in lacking]] if lacking else [])]
    for folder in (SHARDS, GENERATIONS):
        (out / folder).mkdir(parents=True)
    records = np.zeros(len(shards), RECORD)
    for number, stored in enumerate(shards):
        keys = np.array([b"%d" % (row + ROWS * number) for row in range(ROWS)])
        stem = out / SHARDS / f"all-{str(number) * 32}"
        writer(storage).write(
            stem, {**{field.name: arrays[field.name] for field in stored}, "key": keys}, tuple(stored)
        )
        bits = field_bits([field.name for field in fields], [field.name for field in stored])
        records[number] = (ROWS * (number + 1), 0, bits, 0, str(number).encode() * 32, b"")
    table = table_header(len(shards)) + records.tobytes()
    digest = hashlib.sha256(table).hexdigest()
    table_path(out, digest).write_bytes(table)
    parts = tuple(Part(tuple(field.name for field in stored), ROWS, 1) for stored in shards)
    split = Split("all", ROWS * len(shards), len(shards), 0, parts, no_rows(fields))
    known = tuple(replace(field, optional=field.name in lacking) for field in fields)
    (out / MANIFEST).write_text(Manifest(1, "", storage, known, (split,), 0, digest).to_text())
    if not lacking:
        return arrays
    fills = {field.name: np.full_like(arrays[field.name], field.fill_number) for field in fields}
    return {
        name: np.concatenate([column, fills[name] if name in lacking else column]) for name, column in arrays.items()
    }


def same(found: torch.Tensor, wanted: NDArray[Any]) -> bool:
    return bool(found.numpy().dtype == wanted.dtype and found.numpy().tobytes() == wanted.tobytes())


def test_every_kind_is_delivered_as_it_is_stored(storage: str, tmp_path: Path) -> None:
    arrays = written(tmp_path / "out", storage)
    dataset = open_dataset(tmp_path / "out")
    assert [field.name for field in dataset.fields] == [field.name for field in FIELDS]
    assert dataset.classes == CLASSES
    for row in range(ROWS):
        assert all(same(part, arrays[name][row]) for part, name in zip(dataset[row], arrays, strict=True))
    (batch,) = dataset.loader(ROWS)
    assert all(same(part, arrays[name]) for part, name in zip(batch, arrays, strict=True))
    (label,) = open_dataset(tmp_path / "out", fields=("label",), label="onehot")[0]
    assert np.array_equal(label.numpy().argmax(0), arrays["label"][0])


def test_a_crop_is_padded_with_the_fill_of_each_field(tmp_path: Path) -> None:
    arrays = written(tmp_path / "out", "npy")
    fields = ("label", "instance", "depth", "parts")
    (batch,) = open_dataset(tmp_path / "out", fields=fields).loader(ROWS, crop=(SIZE[0] + 2, SIZE[1]))
    for part, name, fill in zip(batch, fields, (255, 0, np.nan, 0), strict=True):
        column = part.numpy()
        for row in column:
            lines = np.moveaxis(row, -2, 0)
            assert sum(np.array_equal(line, np.full_like(line, fill), equal_nan=True) for line in lines) >= 2
        assert column.dtype == arrays[name].dtype


def test_a_pack_without_labels_is_read(tmp_path: Path) -> None:
    arrays = written(tmp_path / "out", "npy", FIELDS[:1])
    dataset = open_dataset(tmp_path / "out")
    assert same(dataset[3][0], arrays["scan"][3])
    assert (dataset.label, len(dataset.classes)) == (None, 0)
    with pytest.raises(RequestError, match="the field 'label' is not read"):
        open_dataset(tmp_path / "out", label="index")
    assert run("info", tmp_path / "out").exit_code == 0


def test_rows_without_a_field_are_delivered_with_its_fill(storage: str, tmp_path: Path) -> None:
    arrays = written(tmp_path / "out", storage, lacking=("label", "depth"))
    dataset = open_dataset(tmp_path / "out")
    order = list(range(0, 2 * ROWS, 3))
    assert len(dataset) == 2 * ROWS
    assert [dataset.key(row) for row in order] == list(map(str, order))
    for part, name in zip(dataset.__getitems__(order).batch, arrays, strict=True):  # type: ignore[attr-defined]
        assert same(part, arrays[name][order])
    for batch in dataset.loader(5, shuffle=True, seed=1, crop=SIZE, drop_behind=True):
        assert len(batch) == len(FIELDS)
    ((cropped,),) = open_dataset(tmp_path / "out", fields=("label",)).loader(2 * ROWS, crop=(3, 4), output="numpy")
    assert (cropped[ROWS:] == 255).all()
    assert (cropped[:ROWS] < 2).all()
    ((planes,),) = open_dataset(tmp_path / "out", fields=("label",), label="onehot").loader(2 * ROWS, output="numpy")
    assert not planes[ROWS:].any()
    assert (planes[:ROWS].sum(1) == 1).all()


@pytest.mark.parametrize("column", ["fields", "zero"])
def test_a_shard_whose_fields_are_not_those_of_its_part_is_refused(tmp_path: Path, column: str) -> None:
    """The manifest and the table are whole, and say different things."""
    out = tmp_path / "out"
    written(out, "npy", lacking=("label",))
    manifest = Manifest.load(out)
    records = np.load(table_path(out, manifest.table))
    records[column][1] = 31
    table = table_header(2) + records.tobytes()
    digest = hashlib.sha256(table).hexdigest()
    table_path(out, digest).write_bytes(table)
    (out / MANIFEST).write_text(replace(manifest, table=digest).to_text())
    dataset = open_dataset(out)
    assert len(dataset[0]) == len(FIELDS)
    with pytest.raises(DamagedError, match="run packer verify"):
        dataset[ROWS]


def test_a_label_of_another_kind_has_one_form(tmp_path: Path) -> None:
    written(tmp_path / "out", "npy", (FIELDS[0], replace(FIELDS[4], name="label")))
    assert open_dataset(tmp_path / "out").label == "bits"
    with pytest.raises(RequestError, match=r"of the kind multilabel, delivered as .planes. or .bits."):
        open_dataset(tmp_path / "out", label="onehot")


def test_an_unknown_encoding_is_refused_when_its_field_is_asked_for(tmp_path: Path) -> None:
    """The other fields are read."""
    fields = (FIELDS[0], FIELDS[1])
    arrays = written(tmp_path / "out", "npy", fields)
    manifest = Manifest.load(tmp_path / "out")
    manifest = replace(manifest, fields=(fields[0], replace(fields[1], encoding="webp")))
    (tmp_path / "out" / MANIFEST).write_text(manifest.to_text())
    with pytest.raises(VersionError, match=r"the field 'label' is stored as 'webp'.*update segpack"):
        open_dataset(tmp_path / "out")
    assert same(open_dataset(tmp_path / "out", fields=("scan",))[0][0], arrays["scan"][0])


def test_a_pack_that_no_build_could_have_made_is_refused_as_a_source(tmp_path: Path) -> None:
    """Its first field is not a picture, its label has no classes, or a field is encoded."""
    fields = {
        "first": (FIELDS[1], "its field label is of the kind classes, not picture"),
        "label": (replace(FIELDS[2], name="label"), "its field label is of the kind ids, not classes"),
        "coded": (replace(FIELDS[2], encoding="fractal"), "its field instance is encoded as fractal"),
    }
    for name, (field, words) in fields.items():
        both = (field, FIELDS[0]) if name == "first" else (FIELDS[0], field)
        written(tmp_path / name, "npy", [replace(each, encoding="raw", tile=None) for each in both])
        manifest = replace(Manifest.load(tmp_path / name), fields=both)
        (tmp_path / name / MANIFEST).write_text(manifest.to_text())
        assert words in errors_of(2, "build", "--from", tmp_path / name, tmp_path / "other")
