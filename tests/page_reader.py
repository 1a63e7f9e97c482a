"""A reader of packs written from FORMAT.md alone, with nothing of this project: Arrow files need pyarrow, other formats
only bytes. Its sums are of Python's own whole numbers."""

from __future__ import annotations

import ast
import hashlib
import json
import struct
import zlib
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import simplejpeg
import zstandard
from blake3 import blake3
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]
RECORD = struct.Struct("<QQII32s64s")
UNITS = {"<f2": 24, "<f4": 149}


def canonical(document: Any) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def blake3_of(data: bytes) -> str:
    digest: str = blake3(data).hexdigest()
    return digest


# --- the manifest, the table, the receipts ---


def read_manifest(out: Path) -> dict[str, Any]:
    """Return the manifest, after its checksum, its text and its copy were compared."""
    data = (out / "manifest.json").read_bytes()
    document: dict[str, Any] = json.loads(data)
    assert data.decode() == json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    assert (out / "generations" / f"{document['generation']:06d}.json").read_bytes() == data
    assert (
        sha256(canonical({key: value for key, value in document.items() if key != "checksum"})) == document["checksum"]
    )
    return document


def read_table(out: Path, document: dict[str, Any]) -> list[tuple[Any, ...]]:
    data = (out / "generations" / f"shards-{document['table'][:32]}.npy").read_bytes()
    assert sha256(data) == document["table"]
    header, start = npy_header(data)
    assert header["shape"] == ((len(data) - start) // 120,)
    return list(RECORD.iter_unpack(data[start:]))


def read_receipts(out: Path) -> list[dict[str, Any]]:
    """Return the receipts in row order. Each is compared with the table, the manifest and its files."""
    document = read_manifest(out)
    names = [field["name"] for field in document["fields"]]
    places = [(split, part) for split in document["splits"] for part in split["parts"] for _ in range(part["shards"])]
    receipts, rows, size = [], 0, 0
    for (split, part), record in zip(places, read_table(out, document), strict=True):
        end, length, fields, zero, fingerprint, digest = record
        stem = out / "shards" / f"{split['name']}-{fingerprint.decode()}"
        data = Path(f"{stem}.receipt.json").read_bytes()
        assert sha256(data) == digest.decode()
        receipt = json.loads(data)
        assert data.decode() == json.dumps(receipt, indent=0, ensure_ascii=False) + "\n"
        assert receipt["fields"] == part["fields"] == [name for bit, name in enumerate(names) if fields >> bit & 1]
        assert (zero, receipt["split"], receipt["storage"]) == (0, split["name"], document["storage"])
        facts = [sha256(canonical(document["recipe"])), *(receipt[key] for key in FACTS if key in receipt)]
        assert sha256(canonical(facts))[:32] == receipt["fingerprint"] == fingerprint.decode()
        assert facts[0] == receipt["recipe"]
        for file in receipt["files"]:
            content = Path(f"{stem}{file['suffix']}").read_bytes()
            assert (len(content), blake3_of(content)) == (file["bytes"], file["blake3"])
        rows, size = rows + len(packed_keys(receipt)), size + length
        assert (end, length) == (rows, sum(file["bytes"] for file in receipt["files"]))
        receipts.append(receipt)
    assert (rows, size) == (sum(split["rows"] for split in document["splits"]), document["bytes"])
    return receipts


FACTS = ("split", "fields", "sources", "rejects", "notes", "counts", "places")
"""The parts of a receipt that its fingerprint is of, after that of the recipe."""


def packed_keys(receipt: dict[str, Any]) -> list[str]:
    """Return the keys of the rows. There is a checksum for each field of each of them."""
    rejected = {key for key, _ in receipt["rejects"]}
    keys = [key for key, *_ in receipt["sources"] if key not in rejected]
    assert list(receipt["crc32"]) == receipt["fields"]
    assert {len(sums) for sums in receipt["crc32"].values()} == {len(keys)}
    assert len(keys) + len(rejected) == len(receipt["sources"])
    noted = [key for key, _ in receipt["notes"]]
    assert noted == [key for key in keys if key in noted]
    return keys


# --- shards: each format gives its columns by name, as one stored row after the other ---


def npy_header(data: bytes) -> tuple[dict[str, Any], int]:
    assert data[:8] == b"\x93NUMPY\x01\x00"
    (length,) = struct.unpack_from("<H", data, 8)
    assert (10 + length) % 64 == 0
    header: dict[str, Any] = ast.literal_eval(data[10 : 10 + length].decode())
    assert header["fortran_order"] is False
    return header, 10 + length


def npy_columns(stem: str) -> Arrays:
    columns: Arrays = {}
    for path in Path(stem).parent.glob(f"{Path(stem).name}.*.npy"):
        data = path.read_bytes()
        header, start = npy_header(data)
        columns[path.name.split(".")[-2]] = np.frombuffer(data[start:], header["descr"]).reshape(header["shape"])
    return columns


def hdf5_columns(stem: str) -> Arrays:
    data = Path(f"{stem}.h5").read_bytes()
    superblock = struct.Struct("<8s4B4Q")
    magic, *numbers, length, root = superblock.unpack_from(data)
    assert (magic, numbers) == (b"\x89HDF\r\n\x1a\n", [2, 8, 8, 0, 0, 2**64 - 1])
    assert (length, hashlittle(data[:44])) == (len(data), struct.unpack_from("<I", data, 44)[0])
    columns: Arrays = {}
    for kind, content in _messages(data, root):
        if kind == 6:
            name = content[3 : 3 + content[2]].decode()
            columns[name] = _hdf5_dataset(data, struct.unpack("<Q", content[3 + content[2] :])[0])
    return columns


def _messages(data: bytes, position: int) -> Iterator[tuple[int, bytes]]:
    magic, version, one, length = struct.unpack_from("<4sBBH", data, position)
    end = position + 8 + length
    assert (magic, version, one) == (b"OHDR", 2, 1)
    assert hashlittle(data[position:end]) == struct.unpack_from("<I", data, end)[0]
    position += 8
    while position < end:
        kind, length = struct.unpack_from("<BH", data, position)
        yield kind, data[position + 4 : position + 4 + length]
        position += 4 + length


def _hdf5_dataset(data: bytes, position: int) -> NDArray[Any]:
    messages = dict(_messages(data, position))
    assert sorted(messages) == [1, 3, 5, 8]
    dimensions = messages[1][1]
    shape = struct.unpack_from(f"<{dimensions}Q", messages[1], 4)
    letter = {0x10: "u", 0x11: "f", 0x13: "S"}[messages[3][0]]
    (size,) = struct.unpack_from("<I", messages[3], 4)
    letter = "i" if letter == "u" and messages[3][1] == 8 else letter
    start, length = struct.unpack_from("<QQ", messages[8], 2)
    assert length < 4096 or start % 4096 == 0
    return np.frombuffer(data[start : start + length], f"<{letter}{size}").reshape(shape)


def hashlittle(data: bytes) -> int:
    """Return the hash of lookup3.c, starting with 0."""
    most = 2**32 - 1
    a = b = c = 0xDEADBEEF + len(data) & most
    blocks = [data[start : start + 12] for start in range(0, len(data), 12)]
    for number, block in enumerate(blocks):
        first, second, third = struct.unpack("<3I", block.ljust(12, b"\0"))
        a, b, c = a + first & most, b + second & most, c + third & most
        if number < len(blocks) - 1:
            for turn in (4, 6, 8, 16, 19, 4):
                a = (a - c & most) ^ _turned(c, turn)
                c = c + b & most
                a, b, c = b, c, a
        else:
            for turn in (14, 11, 25, 16, 4, 14, 24):
                c = (c ^ b) - _turned(b, turn) & most
                a, b, c = b, c, a
    return b


def _turned(number: int, bits: int) -> int:
    return (number << bits | number >> 32 - bits) & 2**32 - 1


def arrow_columns(stem: str) -> Arrays:
    import pyarrow as pa

    table = pa.ipc.open_file(f"{stem}.arrow").read_all()
    columns: Arrays = {}
    for name in table.column_names:
        chunks = table[name].chunks
        if name == "key":
            columns[name] = np.array([key.encode() for key in table[name].to_pylist()])
        elif isinstance(table.schema.field(name).type, pa.FixedShapeTensorType):
            columns[name] = np.concatenate([chunk.to_numpy_ndarray() for chunk in chunks])
        elif name == "size":
            sides = table.schema.field(name).type.list_size
            columns[name] = np.concatenate([chunk.flatten().to_numpy().reshape(-1, sides) for chunk in chunks])
        elif table.schema.field(name).type == pa.large_binary():
            rows = table[name].to_pylist()
            columns[name] = np.frombuffer(b"".join(rows), "u1")
            columns[f"{name}_end"] = np.cumsum([len(row) for row in rows])
        else:
            columns[name] = np.concatenate([chunk.flatten().to_numpy() for chunk in chunks])
            lengths = np.concatenate([np.diff(chunk.offsets.to_numpy()) for chunk in chunks])
            columns[f"{name}_end"] = np.cumsum(lengths)
    return columns


def lmdb_columns(stem: str) -> Arrays:
    values = dict(_lmdb_values(Path(f"{stem}.lmdb").read_bytes()))
    layout = json.loads(values.pop(b"layout"))
    assert list(values) == [b"%08d" % row for row in range(len(values))]
    names = [name for name in layout if name not in ("size", "length", "key")]
    rows: dict[str, list[Any]] = {name: [] for name in (*names, "size", "key")}
    for value in values.values():
        sides = layout["size"]["shape"][0] if "length" in layout else 0
        end = 4 * sides + 8 * len(names) if sides else 0
        if sides:
            assert layout["length"]["offset"] == 4 * sides
            rows["size"].append(struct.unpack_from(f"<{sides}I", value))
        for number, name in enumerate(names):
            part, begin = layout[name], -(-end // 64) * 64
            count = prod(part["shape"]) if "length" not in layout else 0
            length = (
                count * np.dtype(part["dtype"]).itemsize or struct.unpack_from("<Q", value, 4 * sides + 8 * number)[0]
            )
            assert part["offset"] == (None if "length" in layout else begin)
            end = begin + length
            rows[name].append(np.frombuffer(value[begin:end], part["dtype"]))
        rows["key"].append(value[-(-end // 64) * 64 :].rstrip(b"\0"))
    columns: Arrays = {"key": np.array(rows["key"])}
    for name in names:
        columns[name] = np.concatenate(rows[name])
        if None in layout[name]["shape"]:
            columns[f"{name}_end"] = np.cumsum([len(row) for row in rows[name]])
        else:
            columns[name] = columns[name].reshape(len(values), *layout[name]["shape"])
    return columns | ({"size": np.array(rows["size"])} if rows["size"] else {})


def _lmdb_values(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    (page_size,) = struct.unpack_from("<I", data, 40)
    metas = []
    for position in (0, page_size):
        magic, version = struct.unpack_from("<II", data, position + 16)
        assert (magic, version) == (0xBEEFC0DE, 1)
        (root,) = struct.unpack_from("<Q", data, position + 40 + 48 + 40)
        (transaction,) = struct.unpack_from("<Q", data, position + 40 + 96 + 8)
        metas.append((transaction, root))
    yield from _lmdb_page(data, page_size, max(metas)[1])


def _lmdb_page(data: bytes, page_size: int, page: int) -> Iterator[tuple[bytes, bytes]]:
    position = page * page_size
    number, _, flags, lower, _ = struct.unpack_from("<QHHHH", data, position)
    assert number == page
    for pointer in struct.unpack_from(f"<{(lower - 16) // 2}H", data, position + 16):
        node = position + pointer
        low, high, more, length = struct.unpack_from("<HHHH", data, node)
        key, start, size = data[node + 8 : node + 8 + length], node + 8 + length, low | high << 16
        if flags & 1:
            yield from _lmdb_page(data, page_size, low | high << 16 | more << 32)
        elif more & 1:
            begin = struct.unpack_from("<Q", data, start)[0] * page_size + 16
            yield key, data[begin : begin + size]
        else:
            yield key, data[start : start + size]


COLUMNS: dict[str, Callable[[str], Arrays]] = {
    "npy": npy_columns,
    "hdf5": hdf5_columns,
    "arrow": arrow_columns,
    "lmdb": lmdb_columns,
}


def flat(field: dict[str, Any]) -> bool:
    return field["encoding"] != "raw" or None in field["shape"]


def read_rows(out: Path) -> Iterator[tuple[str, str, Arrays]]:
    """Yield the split and the key of each row of a pack, and its fields, in order."""
    document = read_manifest(out)
    for receipt in read_receipts(out):
        columns = COLUMNS[document["storage"]](str(out / "shards" / f"{receipt['split']}-{receipt['fingerprint']}"))
        native = None in document["fields"][0]["shape"]
        mine = [field for field in document["fields"] if field["name"] in receipt["fields"]]
        ends = [f"{field['name']}_end" for field in mine if flat(field)]
        sizes = ["size"] if native or (document["storage"] == "lmdb" and ends) else []
        assert set(columns) == {"key", *receipt["fields"], *ends, *sizes}
        for row, key in enumerate(packed_keys(receipt)):
            assert columns["key"][row].decode() == key
            fields: Arrays = {}
            for field in document["fields"]:
                name, shape = field["name"], field["shape"]
                if name not in receipt["fields"]:
                    continue
                if native:
                    own = shape.count(None)
                    shape = [*shape[:-own], *map(int, columns["size"][row])]
                stored = columns[name]
                assert stored.dtype == np.dtype("u1" if field["encoding"] != "raw" else field["dtype"])
                if flat(field):
                    begins = [0, *map(int, columns[f"{name}_end"])]
                    stored = stored[begins[row] : begins[row + 1]]
                else:
                    stored = stored[row]
                assert zlib.crc32(stored.tobytes()) == receipt["crc32"][name][row]
                fields[name] = numbers_of(field, stored, tuple(shape))
            yield receipt["split"], key, fields


def numbers_of(field: dict[str, Any], stored: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return the numbers of a row. The tiles of a row in tiles follow each other with zeros between them."""
    if not field["encoding"].startswith("tiles"):
        return unpacked(field["encoding"], field["dtype"], stored, shape)
    tile = field["tile"]
    planes, sides = shape[: -len(tile)], shape[-len(tile) :]
    corners = list(product(*(range(0, side, length) for side, length in zip(sides, tile, strict=True))))
    ends = struct.unpack_from(f"<{len(corners)}Q", stored.tobytes())
    numbers: NDArray[Any] = np.empty(shape, field["dtype"])
    before = 8 * len(corners)
    for corner, end in zip(corners, ends, strict=True):
        start = (before + 63) // 64 * 64
        assert start < end
        assert not stored[before:start].any()
        area = tuple(slice(at, min(at + length, side)) for at, length, side in zip(corner, tile, sides, strict=True))
        encoding = {"tiles": "raw", "tiles-zstd": "zstd", "tiles-jpeg": "jpeg"}[field["encoding"]]
        part = (*planes, *(cut.stop - cut.start for cut in area))
        numbers[(*[slice(None)] * len(planes), *area)] = unpacked(encoding, field["dtype"], stored[start:end], part)
        before = end
    assert before == stored.size
    return numbers


def unpacked(encoding: str, dtype: str, stored: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    if encoding == "zstd":
        stored = np.frombuffer(zstandard.decompress(stored.tobytes()), dtype)
    if encoding == "jpeg":
        stored = simplejpeg.decode_jpeg(stored.tobytes(), "GRAY" if shape[0] == 1 else "RGB").transpose(2, 0, 1)
    numbers = stored.view(dtype)
    assert numbers.size == prod(shape)
    return numbers.reshape(shape)


# --- statistics ---


def statistics(field: dict[str, Any], rows: list[NDArray[Any]]) -> dict[str, Any]:
    """Return the statistics of the rows of a field, as the manifest should have them."""
    kind, fill = field["kind"], field["fill"]
    if kind in ("picture", "values"):
        bands = len(field["bands"] or "1")
        lists = [row.reshape(bands, -1).tolist() for row in rows]
        columns = [[number for row in lists for number in row[band]] for band in range(bands)]
        if kind == "values":
            known = [[number for number in numbers if number == number and number != fill] for numbers in columns]
            more = {"numbers": len(known[0]), "invalid": len(columns[0]) - len(known[0])}
        else:
            known, more = columns, {"numbers": len(columns[0])}
        unit = 2 ** UNITS.get(field["dtype"], 0)
        whole = [[int(Fraction(number) * unit) for number in numbers] for numbers in known]
        sums = {"sums": [str(sum(numbers)) for numbers in whole]}
        return {**more, **sums, "squares": [str(sum(number**2 for number in numbers)) for numbers in whole]}
    if kind == "ids":
        return {"numbers": sum(row.size for row in rows), "empty": sum(int((row == 0).sum()) for row in rows)}
    planes = [planes_of(field, row) for row in rows]
    counts = [each.reshape(len(each), -1).sum(1).tolist() for each in planes]
    classes = range(len(field["classes"]["classes"]))
    return {
        "classes": [sum(count[number] for count in counts) for number in classes],
        "rows": [sum(count[number] > 0 for count in counts) for number in classes],
        "areas": [
            sum(each[0].size for each, count in zip(planes, counts, strict=True) if count[number]) for number in classes
        ],
        "ignored": sum(int((each.sum(0) == 0).sum()) for each in planes),
    }


def planes_of(field: dict[str, Any], row: NDArray[Any]) -> NDArray[np.int64]:
    """Return a plane for each class, with 1 where a pixel is in it."""
    numbers, count = row.astype(np.int64), len(field["classes"]["classes"])
    if field["form"] == "index":
        assert set(np.unique(numbers).tolist()) <= {*range(count), np.iinfo(row.dtype).max}
        return np.stack([numbers == number for number in range(count)]).astype(np.int64)
    if field["form"] == "bits":
        return np.stack([numbers[number // 8] >> number % 8 & 1 for number in range(count)])
    return numbers
