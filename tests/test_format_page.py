"""FORMAT.md is enough: the golden packs are read and checked with json, hashlib, zlib, numpy and blake3 alone."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blake3 import blake3
from conftest import REPO, SMALL_SHARDS, RawFolder, pack
from golden import GOLDEN
from numpy.typing import NDArray

LABELS = ("onehot", "index")


def canonical(document: Any) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def blake3_of(data: bytes) -> str:
    digest: str = blake3(data).hexdigest()
    return digest


def shards(pack: Path) -> list[dict[str, Any]]:
    """Return the receipts in row order, after checking each against the table, the table and the manifest."""
    document = json.loads((pack / "manifest.json").read_bytes())
    checksum = document.pop("checksum")
    assert sha256(canonical(document)) == checksum
    assert (pack / "generations" / f"{document['generation']:06d}.json").read_bytes() == (
        pack / "manifest.json"
    ).read_bytes()
    table = pack / "generations" / f"shards-{document['table'][:32]}.npy"
    assert sha256(table.read_bytes()) == document["table"]
    records = np.load(table)
    assert records.dtype.itemsize == 120
    splits = [split["name"] for split in document["splits"] for _ in range(split["shards"])]
    names = [field["name"] for field in document["fields"]]
    parts = {split["name"]: split["parts"] for split in document["splits"]}
    receipts, rows = [], 0
    for split, record in zip(splits, records, strict=True):
        stem = f"{split}-{record['fingerprint'].decode()}"
        data = (pack / "shards" / f"{stem}.receipt.json").read_bytes()
        assert sha256(data) == record["receipt"].decode()
        receipt = json.loads(data)
        part = next(part for part in parts[split] if part["fields"] == receipt["fields"])
        count = len(receipt["crc32"]["image"])
        part["rows"] -= count
        part["shards"] -= 1
        assert record["fields"] == sum(2 ** names.index(name) for name in receipt["fields"])
        assert record["zero"] == 0
        facts = [
            sha256(canonical(document["recipe"])),
            split,
            receipt["fields"],
            receipt["sources"],
            receipt["rejects"],
            receipt["notes"],
        ]
        assert sha256(canonical(facts))[:32] == receipt["fingerprint"] == record["fingerprint"].decode()
        for file in receipt["files"]:
            content = (pack / "shards" / (stem + file["suffix"])).read_bytes()
            assert (len(content), blake3_of(content)) == (file["bytes"], file["blake3"])
        rows += count
        assert record["end"] == rows
        assert record["bytes"] == sum(file["bytes"] for file in receipt["files"])
        receipts.append(receipt)
    assert not any(part["rows"] or part["shards"] for each in parts.values() for part in each)
    assert rows == sum(split["rows"] for split in document["splits"])
    return receipts


@pytest.mark.parametrize(
    "pack", [f"{storage}-{form}" for storage in ("arrow", "hdf5", "lmdb", "npy") for form in LABELS]
)
def test_every_checksum_is_as_the_page_describes(pack: str) -> None:
    assert len(shards(GOLDEN / pack)) == 3


@pytest.mark.parametrize("form", LABELS)
def test_the_checksums_of_rows_are_as_the_page_describes(form: str) -> None:
    pack = GOLDEN / f"npy-{form}"
    for receipt in shards(pack):
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
            for shard in shards(GOLDEN / "npy-index")
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


def programs() -> dict[str, str]:
    """Return the programs of the page: one that begins, one for each format, and one that ends."""
    page = (REPO / "readers" / "contract" / "FORMAT.md").read_text()
    begin, arrays, arrow, lmdb, end = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    stacked, flat = arrays.split("\n\n\n")
    load = 'return h5py.File(f"{stem}.h5")[name]'
    assert load in stacked
    hdf5 = f"import h5py\ndef load(name):\n    {load}\n{flat}"
    return {
        storage: begin + program + end
        for storage, program in {"npy": arrays, "hdf5": hdf5, "arrow": arrow, "lmdb": lmdb}.items()
    }


def read_by_the_page(out: Path, receipt: dict[str, Any], row: int) -> list[NDArray[Any]]:
    """Return the fields of a row as the programs of the page read them."""
    document = json.loads((out / "manifest.json").read_bytes())
    fields = []
    for field in document["fields"]:
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
    for receipt in shards(out):
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
