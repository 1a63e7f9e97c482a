"""FORMAT.md is enough: packs with fields of every kind are read and checked by a program that was written from it."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import zlib
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
import pytest
from any_pack import FIELDS, Row, encoded, tiled, volumes, write_any_pack
from conftest import REPO, SMALL_SHARDS, RawFolder, pack
from golden import GOLDEN
from numpy.typing import NDArray
from page_reader import blake3_of, packed_keys, read_manifest, read_receipts, read_rows, statistics

LABELS = ("onehot", "index")
Rows = dict[tuple[str, str], Row]


@pytest.mark.parametrize(
    "pack", [f"{storage}-{form}" for storage in ("arrow", "hdf5", "lmdb", "npy") for form in LABELS]
)
def test_every_checksum_is_as_the_page_describes(pack: str) -> None:
    assert len(read_receipts(GOLDEN / pack)) == 3
    assert len(list(read_rows(GOLDEN / pack))) == 7


@pytest.fixture(
    scope="module",
    params=[*itertools.product((False, True), (FIELDS, encoded(), tiled())), (True, volumes())],
    ids=["one size", "zstd", "tiles", "native", "native zstd", "native tiles", "volumes"],
)
def made(request: pytest.FixtureRequest, storage: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Rows]:
    """A pack with fields of every kind and form, parts, a reject and a note, and what was written to it."""
    out = tmp_path_factory.mktemp("made") / storage
    return out, write_any_pack(out, storage, *request.param)


@pytest.mark.long(every=4)
def test_rows_of_every_kind_are_as_the_page_describes(made: tuple[Path, Rows]) -> None:
    out, written = made
    assert [(split, key) for split, key, _ in read_rows(out)] == list(written)
    for split, key, fields in read_rows(out):
        row = written[split, key]
        assert list(fields) == list(row)
        assert all(fields[name].shape == row[name].shape for name in row)
        assert all(fields[name].tobytes() == row[name].tobytes() for name in row)


@pytest.mark.long(every=4)
def test_statistics_and_parts_are_as_the_page_describes(made: tuple[Path, Rows]) -> None:
    out, _ = made
    document, rows = read_manifest(out), list(read_rows(out))
    for split in document["splits"]:
        mine = [fields for name, _, fields in rows if name == split["name"]]
        for field in document["fields"]:
            found = [fields[field["name"]] for fields in mine if field["name"] in fields]
            assert statistics(field, found) == split["statistics"][field["name"]]
        names = [field["name"] for field in document["fields"]]
        order = [sum(2 ** -names.index(name) for name in part["fields"]) for part in split["parts"]]
        assert order == sorted(set(order), reverse=True)


@pytest.mark.long(every=4)
def test_the_pages_programs_read_every_kind(made: tuple[Path, Rows]) -> None:
    out, written = made
    for receipt in read_receipts(out)[1::2]:
        for number, key in enumerate(packed_keys(receipt)):
            row = written[receipt["split"], key]
            found = read_by_the_page(out, receipt, number)
            assert [each.tobytes() for each in found] == [each.tobytes() for each in row.values()]
            assert [each.shape for each in found] == [each.shape for each in row.values()]


@pytest.mark.parametrize("form", LABELS)
def test_the_checksums_of_rows_are_as_the_page_describes(form: str) -> None:
    pack = GOLDEN / f"npy-{form}"
    for receipt in read_receipts(pack):
        stem = pack / "shards" / f"{receipt['split']}-{receipt['fingerprint']}"
        image, label, key = (np.load(f"{stem}.{name}.npy") for name in ("image", "label", "key"))
        sums = {
            name: [zlib.crc32(row.tobytes()) for row in rows] for name, rows in (("image", image), ("label", label))
        }
        assert sums == receipt["crc32"]
        assert [name.decode() for name in key] == [source[0] for source in receipt["sources"]]
        raw = GOLDEN / "raw" / receipt["split"]
        for name, image_digest, label_digest in receipt["sources"]:
            assert blake3_of((raw / "images" / f"{name}.png").read_bytes()) == image_digest
            assert blake3_of((raw / "labels" / f"{name}.png").read_bytes()) == label_digest


def test_shards_end_as_the_page_describes() -> None:
    document = json.loads((GOLDEN / "npy-index" / "manifest.json").read_bytes())
    row = sum(int(np.dtype(field["dtype"]).itemsize * np.prod(field["shape"])) for field in document["fields"])
    wanted = max(1, document["recipe"]["shard_bytes"] // row)
    least, most = max(1, wanted // 2), 2 * wanted
    for split in ("train", "val"):
        parts = [
            [source[0] for source in shard["sources"]]
            for shard in read_receipts(GOLDEN / "npy-index")
            if shard["split"] == split
        ]
        keys, cuts = [key for part in parts for key in part], []
        while keys:
            hashes = [
                int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big") for key in keys[:most]
            ]
            hit = [index for index in range(least - 1, len(hashes)) if hashes[index] < 2**64 // wanted]
            low = min(range(least - 1, most), key=hashes.__getitem__) if len(keys) >= most else len(keys) - 1
            end = (hit[0] if hit else low) + 1
            cuts.append(keys[:end])
            keys = keys[end:]
        assert cuts == parts


@cache
def programs() -> dict[str, CodeType]:
    """Return the compiled programs of the page: one that begins, one for each format, and one that ends."""
    page = (REPO / "readers" / "contract" / "FORMAT.md").read_text()
    begin, arrays, arrow, lmdb, end = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    stacked, flat = arrays.split("\n\n\n")
    load = 'return h5py.File(f"{stem}.h5")[name]'
    assert load in stacked
    hdf5 = f"import h5py\ndef load(name):\n    {load}\n{flat}"
    return {
        storage: compile(begin + program + end, "FORMAT.md", "exec")
        for storage, program in {"npy": arrays, "hdf5": hdf5, "arrow": arrow, "lmdb": lmdb}.items()
    }


def read_by_the_page(out: Path, receipt: dict[str, Any], row: int) -> list[NDArray[Any]]:
    """Return the fields of a row as the programs of the page read them."""
    document = json.loads((out / "manifest.json").read_bytes())
    fields = []
    for field in document["fields"]:
        if field["name"] not in receipt["fields"]:
            continue
        stem = out / "shards" / f"{receipt['split']}-{receipt['fingerprint']}"
        variables: dict[str, Any] = {"stem": stem, "row": row, "field": field}
        exec(programs()[document["storage"]], variables)  # noqa: S102 - our own page
        fields.append(variables["numbers"])
    return fields


@pytest.mark.parametrize("labels", ["onehot", "index"])
def test_the_pages_programs_read_every_row(storage: str, labels: str, raw_folder: RawFolder, tmp_path: Path) -> None:
    out = pack(raw_folder.path, tmp_path / "out", "--format", storage, "--labels", labels, *SMALL_SHARDS)
    compare(out, raw_folder, labels == "onehot")


def test_the_pages_programs_read_native_rows(native: Path, varied_raw: RawFolder) -> None:
    compare(native, varied_raw, json.loads((native / "manifest.json").read_bytes())["fields"][1]["form"] == "onehot")


def compare(out: Path, raw: RawFolder, onehot: bool) -> None:
    """Compare what the programs of the page read with the raw files."""
    read = []
    for receipt in read_receipts(out):
        for row in range(len(receipt["crc32"]["image"])):
            picture, label = read_by_the_page(out, receipt, row)
            sample = receipt["split"], receipt["sources"][row][0]
            index = raw.labels[sample]
            assert np.array_equal(picture.transpose(1, 2, 0), raw.images[sample])
            assert np.array_equal(label, np.arange(4)[:, None, None] == index if onehot else index)
            for name, numbers in (("image", picture), ("label", label)):
                assert zlib.crc32(numbers.tobytes()) == receipt["crc32"][name][row]
            read.append(sample)
    assert read == sorted(raw.images)
