"""Hostile packs: each raises our error, in a process that may use little more memory than it has."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import resource
import shutil
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pytest
from conftest import pack, run
from drills.damaged_packs import BROKEN, DAMAGES, FORMS, MISSED, Worker, drill, make_pack, read_all, workers
from drills.hdf5_structure import CONTINUATION, DATASPACE, DATATYPE, LAYOUT, LINK, Structure, fit_checksums, structure
from hypothesis import given
from hypothesis import strategies as st

from packer.packs.verify import verify
from readers import DamagedError, RequestError, open_dataset
from readers.contract.errors import ReadError
from readers.contract.files import blake3_of
from readers.contract.json_entry import fingerprint
from readers.contract.manifest import MANIFEST, STORAGES, Manifest
from readers.contract.receipt import SUFFIX
from readers.contract.shard_table import RECORD, table_header, table_path
from readers.formats.flatbuffer import Table
from readers.pack import Pack

Change = Callable[[Path], object]
HEADROOM = 256 << 20


@contextmanager
def little_memory() -> Iterator[None]:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + HEADROOM, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def opened(out: Path) -> str:
    """Read everything, then verify everything, and return the result or error of both."""
    try:
        with little_memory():
            read_all(Pack.open(out))
        result = "read"
    except ReadError as error:
        result = f"refused: {error}"
    try:
        with little_memory():
            return f"{result}; verified: {verify(out, 1, lambda _: None, deep=True)}"
    except ReadError as error:
        return f"{result}; verified: {error}"


@pytest.fixture(scope="module")
def child() -> Iterator[Worker]:
    worker = Worker(opened)
    yield worker
    worker.close()


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("intact")
    names = {f"{storage}-{form}".removesuffix("-one size"): (storage, form) for storage in STORAGES for form in FORMS}
    return {name: make_pack(folder / name, *made) for name, made in names.items()}


# --- changes of a pack whose own checksums agree afterwards ---


def seal(out: Path, document: dict[str, Any]) -> None:
    document = {key: value for key, value in document.items() if key != "checksum"}
    document["checksum"] = fingerprint(document)
    (out / MANIFEST).write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    shutil.copy(out / MANIFEST, out / "generations" / "000001.json")


def manifest(change: Callable[[dict[str, Any]], object]) -> Change:
    def apply(out: Path) -> None:
        document = json.loads((out / MANIFEST).read_text())
        change(document)
        seal(out, document)

    return apply


def split(**values: object) -> Change:
    """Change the first split, and its only part to fit."""

    def change(document: dict[str, Any]) -> None:
        found = document["splits"][0]
        found.update(values)
        found["parts"][0].update({name: value for name, value in values.items() if name in ("rows", "shards")})

    return manifest(change)


def field(index: int, **values: object) -> Change:
    return manifest(lambda document: document["fields"][index].update(values))


def table(change: Callable[[Any], object]) -> Change:
    """Change records of the shard table, and the rows and the table's name in the manifest to fit them."""

    def apply(out: Path) -> None:
        document = json.loads((out / MANIFEST).read_text())
        header = table_header(document["splits"][0]["shards"])
        old = table_path(out, document["table"])
        records = np.frombuffer(old.read_bytes()[len(header) :], RECORD).copy()
        change(records)
        data = header + records.tobytes()
        document["table"] = hashlib.sha256(data).hexdigest()
        found = document["splits"][0]
        found["rows"] = found["parts"][0]["rows"] = int(records["end"][-1])
        old.unlink()
        table_path(out, document["table"]).write_bytes(data)
        seal(out, document)

    return apply


def rows_of(each: int) -> Change:
    """Set the same number of rows in every shard."""
    return table(lambda records: records["end"].__setitem__(slice(None), each * np.arange(1, len(records) + 1)))


def text(content: bytes) -> Change:
    return lambda out: (out / MANIFEST).write_bytes(content)


def replaced(old: bytes, new: bytes) -> Change:
    """Replace bytes of the manifest and leave its checksum unchanged."""
    return lambda out: (out / MANIFEST).write_bytes((out / MANIFEST).read_bytes().replace(old, new, 1))


def shard_file(out: Path, ending: str) -> Path:
    return min(path for path in (out / "shards").iterdir() if path.name.endswith(ending))


def instead(find: Callable[[Path], Path], make: Callable[[Path], object]) -> Change:
    """Move a file or folder away and put something else in its place."""

    def apply(out: Path) -> None:
        path = find(out)
        path.rename(out.parent / f"moved-{path.name}")
        make(path)

    return apply


def moved_out(path: Path) -> None:
    """Link to the file that was moved out of the pack."""
    out = next(parent for parent in path.parents if parent.name == "out")
    path.symlink_to(out.parent / f"moved-{path.name}")


def of(ending: str) -> Callable[[Path], Path]:
    return lambda out: shard_file(out, ending)


def the_manifest(out: Path) -> Path:
    return out / MANIFEST


def the_table(out: Path) -> Path:
    return table_path(out, Manifest.load(out).table)


def link_to(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


def escape(out: Path) -> None:
    """Make a folder through which a fingerprint of dots and slashes leads out of the pack."""
    (out / "shards" / "all-").mkdir()
    table(lambda records: records["fingerprint"].fill(b"/../../../outside"))(out)
    for path in (out / "shards").glob("all-*.npy"):
        name = path.name.split(".", 1)[1]
        (out.parent / f"outside.{name}").write_bytes(path.read_bytes())


# --- .npy ---


def npy(content: bytes, name: str = ".image.npy") -> Change:
    return lambda out: shard_file(out, name).write_bytes(content)


def npy_header(change: Callable[[str], str], name: str = ".image.npy") -> Change:
    """Change the header and keep the numbers."""

    def apply(out: Path) -> None:
        path = shard_file(out, name)
        data = path.read_bytes()
        length = struct.unpack_from("<H", data, 8)[0]
        head = change(data[10 : 10 + length].decode().rstrip()).encode()
        head += b" " * (-(len(head) + 11) % 64) + b"\n"
        path.write_bytes(data[:8] + struct.pack("<H", len(head)) + head + data[10 + length :])

    return apply


def npy_bytes(content: bytes, name: str = ".image.npy") -> Change:
    """Replace the first bytes behind the header."""

    def change(data: bytearray) -> None:
        start = 10 + struct.unpack_from("<H", data, 8)[0]
        data[start : start + len(content)] = content

    return patched(name, change)


def shape(new: str) -> Change:
    return npy_header(lambda head: head[: head.index("'shape'")] + f"'shape': ({new}), }}")


def all_rows(rows: int) -> Change:
    """Claim the same number of rows in the table, the manifest and the header of the images of the first shard."""

    def apply(out: Path) -> None:
        table(lambda records: records["end"].__setitem__(slice(None), rows))(out)
        for _ in range(len(list((out / "shards").glob("*.image.npy")))):
            npy_header(lambda head: head[: head.index("'shape'")] + f"'shape': ({rows}, 3, 6, 7), }}")(out)

    return apply


def sparse(size: int) -> Change:
    """Make every column of the images a file with a hole of this size, and claim the rows that fit in."""
    rows = size // (3 * 6 * 7)

    def apply(out: Path) -> None:
        rows_of(rows)(out)
        for path in (out / "shards").glob("*.npy"):
            data = path.read_bytes()
            length = struct.unpack_from("<H", data, 8)[0]
            head = data[10 : 10 + length].decode().rstrip()
            many = head[head.index("'shape': (") + 10 :].partition(",")[2]
            new = f"{head[: head.index('(') + 1]}{rows},{many}".encode()
            new += b" " * (-(len(new) + 11) % 64) + b"\n"
            path.write_bytes(data[:8] + struct.pack("<H", len(new)) + new)
            os.truncate(path, 10 + len(new) + size)

    return apply


CODE = "{'descr': __import__('os').system('touch hacked'), 'fortran_order': False, 'shape': (6, 3, 6, 7), }"


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("hacked",)


# --- HDF5 ---


def h5(name: str, make: Callable[[h5py.File, Any], object]) -> Change:
    """Put another object under the name of a dataset; `make` gets its numbers."""

    def apply(out: Path) -> None:
        with h5py.File(shard_file(out, ".h5"), "r+") as file:
            numbers = file[name][:]
            del file[name]
            make(file, numbers)

    return apply


def virtual(file: h5py.File, numbers: Any) -> None:
    layout = h5py.VirtualLayout(numbers.shape, numbers.dtype)
    layout[:] = h5py.VirtualSource("other.h5", "image", numbers.shape)
    file.create_virtual_dataset("image", layout)


def external(file: h5py.File, numbers: Any) -> None:
    file.create_dataset("image", numbers.shape, numbers.dtype, external=[("/etc/passwd", 0, numbers.nbytes)])


def compact(file: h5py.File, numbers: Any) -> None:
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_layout(h5py.h5d.COMPACT)
    kind, space = h5py.h5t.py_create(numbers.dtype), h5py.h5s.create_simple(numbers.shape)
    h5py.h5d.create(file.id, b"image", kind, space, properties)


def libver(low: str, high: str, **options: Any) -> Change:
    """Write the same data sets in another version of the format, or with other options."""

    def apply(out: Path) -> None:
        path = shard_file(out, ".h5")
        with h5py.File(path) as file:
            arrays = {name: file[name][:] for name in file}
        with h5py.File(path, "w", libver=(low, high), **options) as file:
            for name, numbers in arrays.items():
                file[name] = numbers

    return apply


def sealed(change: Callable[[bytearray, Structure], object]) -> Change:
    """Change metadata, and make its checksums fit."""

    def apply(data: bytearray) -> None:
        whole = bytes(data)
        change(data, structure(whole))
        fit_checksums(data, whole)

    return patched(".h5", apply)


def message(kind: int, offset: int, layout: str, *values: int) -> Change:
    """Change numbers of the first message of a type."""
    return sealed(lambda data, found: struct.pack_into(layout, data, found.of(kind)[0].body + offset, *values))


def wrapping(data: bytearray, found: Structure) -> None:
    """Claim rows whose bytes are the right number again modulo 2**64."""
    space, layout = found.of(DATASPACE)[0].body, found.of(LAYOUT)[0].body
    (rows,) = struct.unpack_from("<Q", data, space + 4)
    struct.pack_into("<Q", data, space + 4, rows + 2**63)
    struct.pack_into("<Q", data, space + 4 + 32, rows + 2**63)
    assert struct.unpack_from("<Q", data, layout + 10)[0] == rows * 3 * 6 * 7


def continued(data: bytearray, found: Structure, length: int = 28) -> None:
    """Continue a header in a block that continues in itself; both lie in the place of the fill value and the layout."""
    fill = next(message for message in found.messages if message.kind == LAYOUT)
    inner = fill.at
    struct.pack_into("<BHBQ", data, fill.at, CONTINUATION, 18, 0, inner)
    struct.pack_into("<Q", data, fill.at + 12, length)


# --- Arrow ---


def arrow(change: Callable[[pa.Table], pa.Table], compression: str | None = None, stream: bool = False) -> Change:
    def apply(out: Path) -> None:
        path = shard_file(out, ".arrow")
        found = change(pa.ipc.open_file(path.read_bytes()).read_all())
        options = pa.ipc.IpcWriteOptions(compression=compression)
        with (pa.ipc.new_stream if stream else pa.ipc.new_file)(str(path), found.schema, options=options) as file:
            file.write_table(found)

    return apply


def column(name: str, make: Callable[[pa.Table], pa.Array]) -> Change:
    def change(found: pa.Table) -> pa.Table:
        return found.set_column(found.schema.get_field_index(name), name, make(found))

    return arrow(change)


def patched(ending: str, change: Callable[[bytearray], object]) -> Change:
    def apply(out: Path) -> None:
        path = shard_file(out, ending)
        data = bytearray(path.read_bytes())
        change(data)
        path.write_bytes(data)

    return apply


def huge_counts(data: bytearray) -> None:
    rows = struct.pack("<q", pa.ipc.open_file(bytes(data)).get_batch(0).num_rows)
    assert rows in data
    data[:] = bytes(data).replace(rows, struct.pack("<q", 2**40))


def node_and_validity(column: str, level: int, length: int, null_count: int, validity: int) -> Change:
    """Change a field node of the first batch, and the length of its validity buffer. 0 keeps the number of values."""

    def change(data: bytearray) -> None:
        (footer,) = struct.unpack_from("<i", data, len(data) - 10)
        table = Table.root(memoryview(bytes(data))[len(data) - 10 - footer : len(data) - 10])
        (start, metadata, _), *_ = table.structs(3, struct.Struct("<qi4xq"))
        batch = Table.root(memoryview(bytes(data))[start + 8 : start + metadata]).table(2)
        node, buffer = {"image": (0, 0), "label": (2, 3)}[column]
        node_at = start + 8 + batch.span(1, 16)[0] + 16 * (node + level)
        (old,) = struct.unpack_from("<q", data, node_at)
        struct.pack_into("<qq", data, node_at, length or old, null_count)
        struct.pack_into("<q", data, start + 8 + batch.span(2, 16)[0] + 16 * (buffer + level) + 8, validity)

    return patched(".arrow", change)


def last_bytes(new: bytes) -> Change:
    """Replace the length of the footer and the magic."""
    return patched(".arrow", lambda data: data.__setitem__(slice(-10, None), new))


def permuted(found: pa.Table) -> pa.Array:
    storage = found["image"].combine_chunks().storage
    kind = pa.fixed_shape_tensor(pa.uint8(), [3, 6, 7], permutation=[0, 2, 1])
    return pa.ExtensionArray.from_storage(kind, storage)


# --- LMDB: the page size, the root's number, and the root's page ---


def newest_meta(data: bytearray) -> int:
    page = struct.unpack_from("<I", data, 40)[0]
    return int(max((0, page), key=lambda meta: struct.unpack_from("<Q", data, meta + 144)[0]))


def tree(layout: str, offset: int, value: int) -> Change:
    """Change a number of the main tree: flags at 4, depth at 6, root at 40."""
    return patched(".lmdb", lambda data: struct.pack_into(layout, data, newest_meta(data) + 40 + 48 + offset, value))


def root_of(data: bytearray) -> int:
    page = struct.unpack_from("<I", data, 40)[0]
    return int(page * struct.unpack_from("<Q", data, newest_meta(data) + 40 + 48 + 40)[0])


def root(layout: str, offset: int, value: int) -> Change:
    """Change a number of the root's page header: flags at 10, lower at 12."""
    return patched(".lmdb", lambda data: struct.pack_into(layout, data, root_of(data) + offset, value))


def node(layout: str, offset: int, value: int) -> Change:
    """Change a number of the first node: size at 0 and 2, flags at 4, the key's size at 6, key at 8."""

    def change(data: bytearray) -> None:
        start = root_of(data)
        start += struct.unpack_from("<H", data, start + 16)[0]
        struct.pack_into(layout, data, start + offset, value)

    return patched(".lmdb", change)


def loop(depth: int) -> Change:
    """Make every node of the root point to the root itself."""

    def change(data: bytearray) -> None:
        start = root_of(data)
        page = start // struct.unpack_from("<I", data, 40)[0]
        struct.pack_into("<H", data, newest_meta(data) + 40 + 48 + 6, depth)
        struct.pack_into("<H", data, start + 10, 1)
        for pointer in range(start + 16, start + struct.unpack_from("<H", data, start + 12)[0], 2):
            struct.pack_into("<HHH", data, start + struct.unpack_from("<H", data, pointer)[0], page, 0, 0)

    return patched(".lmdb", change)


def in_layout(old: bytes, new: bytes) -> Change:
    def change(data: bytearray) -> None:
        assert data.count(old) == 1
        assert len(old) == len(new)
        data[:] = bytes(data).replace(old, new)

    return patched(".lmdb", change)


HOSTILE: dict[str, tuple[str, Change]] = {
    # manifest
    "a split above": ("npy", split(name="../../etc")),
    "an absolute split": ("npy", split(name="/etc/passwd")),
    "a split with a zero byte": ("npy", split(name="a\0b")),
    "a split that ends in a line break": ("npy", split(name="all\n")),
    "a storage that is a module": ("npy", manifest(lambda d: d.update(storage="..os"))),
    "a table above": ("npy", manifest(lambda d: d.update(table="../" * 20 + "etc/passwd"))),
    "a table with a line break": ("npy", manifest(lambda d: d.update(table=d["table"] + "\n"))),
    "rows beyond 63 bits": ("npy", split(rows=2**63)),
    "rows below 0": ("npy", split(rows=-1)),
    "half a row": ("npy", split(rows=1.5)),
    "NaN rows": ("npy", split(rows=float("nan"))),
    "infinite bytes": ("npy", manifest(lambda d: d.update(bytes=float("inf")))),
    "true rows": ("npy", split(rows=True)),
    "rows that are a list": ("npy", split(rows=[[[]]])),
    "rows that sum beyond 63 bits": (
        "npy",
        manifest(lambda d: d["splits"].append({"name": "b", "rows": 2**63 - 1, "shards": 1, "rejects": 0})),
    ),
    "10^9 shards": ("npy", split(shards=10**9)),
    "2^62 shards": ("npy", split(shards=2**62)),
    "a table of another length": ("npy", split(shards=3)),
    "a million empty splits": ("npy", text(b'{"format":"segpack","version":1,"splits":[' + b"{}," * 10**6 + b"{}]}")),
    "a million empty texts": ("npy", text(b'{"format":"segpack","version":1,"fields":[' + b'"",' * 10**6 + b"{}]}")),
    "deep lists": ("npy", text(b"[" * 1_000_000)),
    "deep objects": ("npy", text(b'{"a":' * 1_000_000)),
    "a deep recipe": ("npy", replaced(b'"recipe": {', b'"recipe": {"a": ' + b"[" * 50_000 + b"]" * 50_000 + b",")),
    "a number of 5000 digits": ("npy", replaced(b'"generation": 1', b'"generation": ' + b"9" * 5000)),
    "half a letter": ("npy", replaced(b'"created": "', b'"created": "\\ud800')),
    "an endless text": ("npy", text(b" " * (17 << 20))),
    "an object dtype": ("npy", field(0, dtype="|O")),
    "big-endian fields": ("npy", field(0, dtype=">f4")),
    "rows of 2^120 bytes": ("npy", field(0, shape=[3, 2**60, 2**60])),
    "rows of nothing": ("npy", field(0, shape=[3, 0, 7])),
    "rows of 512 GiB": (
        "npy",
        manifest(lambda d: [field.update(shape=[3, 2**18, 2**19]) for field in d["fields"]]),
    ),
    "a field twice": ("npy", manifest(lambda d: d["fields"].append(d["fields"][0]))),
    "fields that are texts": ("npy", manifest(lambda d: d.update(fields=["image", "label"]))),
    "65535 classes": ("npy", field(1, classes={"classes": [{}] * 65_535})),
    "a version that is a text": ("npy", manifest(lambda d: d.update(version="1"))),
    # other things in the place of files
    "the manifest outside": ("npy", instead(the_manifest, moved_out)),
    "the manifest is a device": ("npy", instead(the_manifest, link_to("/dev/zero"))),
    "the manifest is a pipe": ("npy", instead(the_manifest, os.mkfifo)),
    "the manifest is a folder": ("npy", instead(the_manifest, Path.mkdir)),
    "the manifest leads to itself": ("npy", instead(the_manifest, link_to(MANIFEST))),
    "the table outside": ("npy", instead(the_table, moved_out)),
    "the table is a pipe": ("npy", instead(the_table, os.mkfifo)),
    "generations outside": ("npy", instead(lambda out: out / "generations", moved_out)),
    "shards outside": ("npy", instead(lambda out: out / "shards", moved_out)),
    "a column outside": ("npy", instead(of(".label.npy"), moved_out)),
    "keys outside": ("npy", instead(of(".key.npy"), moved_out)),
    "a column that is a device": ("npy", instead(of(".label.npy"), link_to("/dev/zero"))),
    "a column that is a pipe": ("npy", instead(of(".image.npy"), os.mkfifo)),
    "a column that is a folder": ("npy", instead(of(".image.npy"), Path.mkdir)),
    "HDF5 outside": ("hdf5", instead(of(".h5"), moved_out)),
    "Arrow outside": ("arrow", instead(of(".arrow"), moved_out)),
    "LMDB outside": ("lmdb", instead(of(".lmdb"), moved_out)),
    "HDF5 that is a pipe": ("hdf5", instead(of(".h5"), os.mkfifo)),
    "Arrow that is a pipe": ("arrow", instead(of(".arrow"), os.mkfifo)),
    "native sizes outside": ("npy-native", instead(of(".size.npy"), moved_out)),
    # shard table
    "shards that end before they begin": ("npy", table(lambda r: r["end"].__setitem__(0, 10**6))),
    "rows beyond the file": ("npy", table(lambda r: r["end"].__setitem__(-1, 10**12))),
    "LMDB rows beyond the file": ("lmdb", rows_of(10**9)),
    "Arrow rows beyond the file": ("arrow", rows_of(10**9)),
    "HDF5 rows beyond the file": ("hdf5", rows_of(10**9)),
    "native rows beyond the file": (
        "npy-native",
        rows_of(10**12),
    ),
    "a fingerprint above": ("npy", table(lambda r: r["fingerprint"].fill(b"/../../../../../etc/passwd"))),
    "a fingerprint that leads out": ("npy", escape),
    "a fingerprint with a zero byte": ("npy", table(lambda r: r["fingerprint"].fill(b"a\0b"))),
    "a pickled table": ("npy", lambda out: np.save(the_table(out), np.array([Evil()], object), allow_pickle=True)),
    "2^62 rows": ("npy", all_rows(2**62)),
    "2^60 rows": ("npy", all_rows(2**60)),
    "a sparse shard of 4 TiB": ("npy", sparse(2**42)),
    # npy
    "a pickle": ("npy", npy(pickle.dumps(Evil()))),
    "a pickle in .npy": ("npy", lambda out: np.save(shard_file(out, ".image.npy"), np.array([Evil()]))),
    "code as a header": ("npy", npy_header(lambda _: CODE)),
    "Fortran order": ("npy", npy_header(lambda head: head.replace("False", "True"))),
    "big-endian numbers": ("npy", npy_header(lambda head: head.replace("|u1", ">u1"))),
    "objects": ("npy", npy_header(lambda head: head.replace("|u1", "|O8"))),
    "no dimensions": ("npy", shape(", ")),
    "10^18 rows": ("npy", shape("1000000000000000000, 3, 6, 7")),
    "a dimension of 4000 digits": ("npy", shape("9" * 4000 + ", 3, 6, 7")),
    "a dimension below 0": ("npy", shape("-1, 3, 6, 7")),
    "keys of 10^9 bytes": ("npy", npy_header(lambda h: h.replace("'|S2'", "'|S999999999'"), ".key.npy")),
    "keys of no bytes": ("npy", npy_header(lambda h: h.replace("'|S2'", "'|S0'"), ".key.npy")),
    "no file": ("npy", npy(b"")),
    "a later .npy": ("npy", npy(b"\x93NUMPY\x03\x00" + bytes(200))),
    # tiles and volumes
    "tiles of no pixels": ("npy-tiles", field(0, tile=[0, 16])),
    "tiles below 0": ("npy-tiles", field(0, tile=[-16, -16])),
    "tiles of one pixel": ("npy-tiles", field(0, tile=[1, 1])),
    "tiles as large as numbers go": ("npy-tiles", field(0, tile=[2**63 - 1, 2**63 - 1])),
    "tiles of volumes in pictures": ("npy-tiles", field(0, tile=[1, 16, 16])),
    "tiles of pictures in volumes": ("npy-volumes", field(1, tile=[16, 16])),
    "tiles without sides": ("npy-tiles", field(0, tile=None)),
    "sides of tiles for raw rows": ("npy", field(0, tile=[16, 16])),
    "ends of tiles beyond the row": ("npy-tiles", npy_bytes(b"\xff" * 8)),
    "ends of tiles in the table": ("npy-tiles", npy_bytes(bytes(8))),
    "Zstandard tiles in raw ones": ("npy-tiles", field(1, encoding="tiles")),
    "volumes of 2^96 pixels": ("npy-volumes", npy_bytes(b"\xff" * 12, ".size.npy")),
    "volumes without depth": ("npy-volumes", npy_bytes(bytes(4), ".size.npy")),
    "volumes as pictures": ("npy-volumes", field(0, shape=[1, None, None])),
    "a picture among volumes": ("lmdb-volumes", field(1, shape=[3, None, None])),
    "volumes of known sides": ("npy-volumes", field(0, shape=[1, 2, 17, 18])),
    # HDF5
    "an external link": ("hdf5", h5("image", lambda f, _: f.__setitem__("image", h5py.ExternalLink("/etc/x", "/i")))),
    "a soft link": ("hdf5", h5("image", lambda f, _: f.__setitem__("image", h5py.SoftLink("/label")))),
    "external storage": ("hdf5", h5("image", external)),
    "a virtual data set": ("hdf5", h5("image", virtual)),
    "chunks": ("hdf5", h5("image", lambda f, n: f.create_dataset("image", data=n, chunks=True))),
    "a filter": ("hdf5", h5("image", lambda f, n: f.create_dataset("image", data=n, compression="gzip"))),
    "compact storage": ("hdf5", h5("image", compact)),
    "object references": ("hdf5", h5("image", lambda f, n: f.create_dataset("image", (6,), h5py.ref_dtype))),
    "a huge shape": ("hdf5", h5("image", lambda f, n: f.create_dataset("image", (2**40, 3, 6, 7), "u1"))),
    "one number": ("hdf5", h5("image", lambda f, _: f.create_dataset("image", data=np.uint8(1)))),
    "no numbers": ("hdf5", h5("image", lambda f, _: f.create_dataset("image", data=h5py.Empty("u1")))),
    "a group": ("hdf5", h5("image", lambda f, _: f.create_group("image"))),
    "keys of any length": (
        "hdf5",
        h5("key", lambda f, n: f.create_dataset("key", data=[b"a"] * len(n), dtype=h5py.string_dtype())),
    ),
    "HDF5 of big-endian numbers": (
        "hdf5-native",
        h5("size", lambda f, n: f.create_dataset("size", data=n.astype(">u4"))),
    ),
    "the same bytes for two columns": (
        "hdf5-native",
        h5("label_end", lambda f, _: f.__setitem__("label_end", f["image_end"])),
    ),
    "an attribute": ("hdf5", h5("label", lambda f, n: f.create_dataset("label", data=n).attrs.create("a", 1))),
    "one data set more": ("hdf5", h5("label", lambda f, n: f.update({"label": n, "more": n}))),
    "HDF5 of the first version": ("hdf5", libver("earliest", "v108")),
    "HDF5 of the latest version": ("hdf5", libver("latest", "latest")),
    "HDF5 after other bytes": ("hdf5", libver("v108", "v108", userblock_size=512)),
    "HDF5 with pages": ("hdf5", libver("v110", "v110", fs_strategy="page")),
    "HDF5 numbers beyond the file": ("hdf5", message(LAYOUT, 2, "<Q", 2**40)),
    "HDF5 numbers before the file": ("hdf5", message(LAYOUT, 2, "<Q", 2**64 - 8)),
    "HDF5 numbers that end beyond the file": ("hdf5-native", message(LAYOUT, 10, "<Q", 2**64 - 1)),
    "HDF5 rows that wrap": ("hdf5", sealed(wrapping)),
    "a shared message": ("hdf5", message(DATATYPE, -1, "<B", 2)),
    "a message beyond its header": ("hdf5", message(LAYOUT, -3, "<H", 65_535)),
    "numbers with gaps": ("hdf5", message(DATATYPE, 10, "<H", 7)),
    "signed numbers": ("hdf5", message(DATATYPE, 1, "<B", 8)),
    "a header that goes on for ever": ("hdf5", sealed(continued)),
    "a header that goes on for 4 GiB": ("hdf5", sealed(lambda data, found: continued(data, found, 2**32))),
    "a root group that goes on in itself": ("hdf5-native", message(LINK, -4, "<BHBQ", CONTINUATION, 16, 0, 48)),
    "metadata with a wrong checksum": ("hdf5", patched(".h5", lambda data: data.__setitem__(100, data[100] ^ 1))),
    "a cut HDF5": ("hdf5", patched(".h5", lambda data: data.__delitem__(slice(700, None)))),
    # Arrow
    "compressed buffers": ("arrow", arrow(lambda found: found, compression="zstd")),
    "compressed native buffers": ("arrow-native", arrow(lambda found: found, compression="lz4")),
    "a dictionary": ("arrow", column("key", lambda found: found["key"].combine_chunks().dictionary_encode())),
    "numbers for keys": ("arrow", column("key", lambda found: pa.array(range(len(found))))),
    "plain lists": ("arrow", column("image", lambda found: pa.array([[1]] * len(found)))),
    "turned tensors": ("arrow", column("image", permuted)),
    "no keys": ("arrow", arrow(lambda found: found.drop_columns(["key"]))),
    "null keys": ("arrow", column("key", lambda found: pa.nulls(len(found), pa.string()))),
    "other order": ("arrow", arrow(lambda found: found.select(["label", "image", "key"]))),
    "a row too few": ("arrow", arrow(lambda found: found.slice(1))),
    "a stream": ("arrow", arrow(lambda found: found, stream=True)),
    "a footer beyond the file": ("arrow", last_bytes(struct.pack("<i", 2**31 - 1) + b"ARROW1")),
    "a footer of less than nothing": ("arrow", last_bytes(struct.pack("<i", -1) + b"ARROW1")),
    "no footer": ("arrow", patched(".arrow", lambda data: data.__delitem__(slice(-200, None)))),
    "huge counts": ("arrow", patched(".arrow", huge_counts)),
    "2^45 values with nulls": ("arrow", node_and_validity("image", 1, 2**45, -1, 8)),
    "nulls to be counted": ("arrow", node_and_validity("label", 1, 0, -1, 8)),
    "lists with nulls": ("arrow", node_and_validity("image", 0, 0, 1, 8)),
    "nulls without validity": ("arrow", node_and_validity("image", 1, 0, 2, 0)),
    "a validity without nulls": ("arrow", node_and_validity("image", 1, 0, 0, 8)),
    # LMDB
    "a root beyond the file": ("lmdb", tree("<Q", 40, 10**6)),
    "a root of 2^64 - 1": ("lmdb", tree("<Q", 40, 2**64 - 1)),
    "a tree of 65535 levels": ("lmdb", tree("<H", 6, 65_535)),
    "a tree of no level": ("lmdb", tree("<H", 6, 0)),
    "several values of a key": ("lmdb", tree("<H", 4, 4)),
    "a page that is its own child": ("lmdb", loop(32)),
    "a page that is its own leaf": ("lmdb", loop(2)),
    "an empty page": ("lmdb", root("<H", 12, 16)),
    "more pointers than a page holds": ("lmdb", root("<H", 12, 65_535)),
    "pointers below 0": ("lmdb", root("<H", 12, 0)),
    "a page of values without keys": ("lmdb", root("<H", 10, 0x22)),
    "a tree in a tree": ("lmdb", node("<H", 4, 2)),
    "a key beyond the page": ("lmdb", node("<H", 6, 65_535)),
    "a value beyond the file": ("lmdb", node("<I", 0, 2**32 - 1)),
    "an overflow page beyond the file": ("lmdb", node("<H", 4, 1)),
    "no magic": ("lmdb", patched(".lmdb", lambda data: struct.pack_into("<I", data, 16, 0))),
    "pages of one byte": ("lmdb", patched(".lmdb", lambda data: struct.pack_into("<I", data, 40, 1))),
    "a layout of objects": ("lmdb", in_layout(b'"|S2"', b'"|O2"')),
    "a layout of keys of no bytes": ("lmdb", in_layout(b'"|S2"', b'"|S0"')),
    "a layout of code": ("lmdb", in_layout(b'"|S2"', b'"()3"')),
    "overlapping fields": ("lmdb", in_layout(b'"label": {"offset": 128', b'"label": {"offset": 064')),
    "a layout that is not JSON": ("lmdb", in_layout(b'{"image": {', b'["image": {')),
    "a native layout of other parts": ("lmdb-native", in_layout(b'"size"', b'"sizf"')),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_pack_is_refused(name: str, intact: dict[str, Path], child: Worker, tmp_path: Path) -> None:
    which, change = HOSTILE[name]
    out = Path(shutil.copytree(intact[which], tmp_path / "out"))
    change(out)
    child.ask(out)
    answer = child.answer()
    assert answer.startswith("refused: "), answer
    assert not answer.endswith("; verified: []"), answer
    assert not Path("hacked").exists()


EDGES = st.sampled_from(
    [0, 1, 2, 3, 7, 255, 2**16, 2**31, 2**32, 2**40, 2**53, 2**60, 2**62, 2**63 - 1, 2**63, 2**64 - 1]
)


def numbers_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every number in a document."""
    if isinstance(value, bool):
        return
    if isinstance(value, int):
        yield path
    elif isinstance(value, dict):
        for key, below in value.items():
            yield from numbers_in(below, (*path, key))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from numbers_in(below, (*path, index))


def with_number(draw: st.DrawFn, document: Any) -> Callable[[dict[str, Any]], object]:
    """Return a change of one or two numbers of a document."""
    places = st.sampled_from(list(numbers_in(document)))
    changes = [(draw(places), draw(EDGES)) for _ in range(draw(st.integers(1, 2)))]

    def change(found: dict[str, Any]) -> None:
        for path, number in changes:
            value: Any = found
            for key in path[:-1]:
                value = value[key]
            value[path[-1]] = number

    return change


@st.composite
def changed_numbers(draw: st.DrawFn, out: Path) -> Change:
    """Return a change of numbers in the manifest, the shard table or a receipt, after which all checksums fit."""
    which = draw(st.sampled_from(["manifest", "table", "receipt"]))
    if which == "manifest":
        return manifest(with_number(draw, json.loads((out / MANIFEST).read_text())))
    if which == "receipt":
        change = with_number(draw, json.loads(shard_file(out, SUFFIX).read_text()))
        return lambda copy: lie(copy, change)
    column, number = draw(st.sampled_from(["end", "bytes"])), draw(EDGES.filter(lambda number: number < 2**63))
    shard = draw(st.integers(-1, 3))
    return table(
        lambda records: records[column].__setitem__(slice(None) if shard < 0 else shard % len(records), number)
    )


@given(st.data())
def test_any_number_of_a_pack_is_taken_or_refused(intact: dict[str, Path], child: Worker, data: st.DataObject) -> None:
    which = data.draw(st.sampled_from(sorted(intact)))
    change = data.draw(changed_numbers(intact[which]))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(shutil.copytree(intact[which], Path(folder) / "out"))
        change(out)
        child.ask(out)
        answer = child.answer()
    assert not answer.startswith(BROKEN), answer


def test_there_are_many_hostile_packs_and_undamaged_ones_are_read(intact: dict[str, Path], child: Worker) -> None:
    assert len(HOSTILE) >= 60
    for out in intact.values():
        child.ask(out)
        assert child.answer() == "read; verified: []"


def test_a_link_that_stays_within_the_pack_is_followed(intact: dict[str, Path], child: Worker, tmp_path: Path) -> None:
    out = Path(shutil.copytree(intact["npy"], tmp_path / "out"))
    (out / "shards").rename(out / "moved")
    (out / "shards").symlink_to("moved")
    (tmp_path / "linked").symlink_to(out)
    child.ask(tmp_path / "linked")
    assert child.answer() == "read; verified: []"


# --- false receipts: every checksum fits, so only `verify` can find them ---


def lie(out: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = shard_file(out, SUFFIX)
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document, indent=0, ensure_ascii=False) + "\n")
    digest = hashlib.sha256(path.read_bytes()).hexdigest().encode()
    stem = path.name.removesuffix(SUFFIX).rpartition("-")[2].encode()
    table(lambda records: records["receipt"].__setitem__(records["fingerprint"] == stem, digest))(out)


LIES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "split": (lambda d: d.update(split="other"), "for its split"),
    "storage": (lambda d: d.update(storage="lmdb"), "for its storage"),
    "recipe": (lambda d: d.update(recipe="0" * 64), "for its recipe"),
    "fingerprint": (lambda d: d.update(fingerprint="0" * 32), "for its fingerprint"),
    "pairs": (lambda d: d["sources"][0].__setitem__(1, "0" * 64), "for its fingerprint of its pairs"),
    "rows": (
        lambda d: (d["sources"].pop(), *(each.pop() for each in d["crc32"].values()), d["looks"].pop()),
        "for its rows",
    ),
    "files": (lambda d: d["files"].pop(), "for its files"),
    "no files": (lambda d: d.update(files=[]), "for its files"),
    "bytes": (lambda d: d["files"].pop(), "for its bytes"),
    "classes": (
        lambda d: [d["statistics"]["label"][key].append(1) for key in ("classes", "rows", "areas")],
        "areas, ignored for 3 bands or classes, found classes, rows, areas, ignored for 4",
    ),
    "fields": (lambda d: d["statistics"].pop("image"), "statistics: expected statistics of image, label, found label"),
    "pixels": (lambda d: d["statistics"]["label"].update(ignored=10**6), "statistics: are not the sum"),
    "looks": (lambda d: d.update(looks=[]), "for its looks"),
    "a file outside": (lambda d: d["files"][0].update(suffix=".x" * 3), "for its files"),
}


FALSE: dict[str, tuple[Change, str]] = {
    **{name: (partial(lie, change=change), message) for name, (change, message) in LIES.items()},
    "bytes of a shard": (table(lambda records: records["bytes"].__setitem__(0, 1)), "for its bytes; expected 1"),
    "rows of a shard": (table(lambda records: records["end"].__setitem__(0, records["end"][0] - 1)), "for its rows"),
    "bytes of the pack": (manifest(lambda d: d.update(bytes=1)), "bytes: 1; its shards have"),
    "rejects": (split(rejects=7), "and 7 rejects; its shards have"),
    "fields of a shard": (
        table(lambda records: records["fields"].__setitem__(1, 1)),
        "the table and the manifest differ in its fields",
    ),
    "a flag": (table(lambda records: records["zero"].__setitem__(1, 1)), "has an unknown flag"),
    "recipe of the pack": (manifest(lambda d: d["recipe"].update(extra=1)), "for its recipe"),
}


@pytest.mark.parametrize("name", FALSE)
def test_verify_finds_a_false_receipt_table_or_manifest(name: str, intact: dict[str, Path], tmp_path: Path) -> None:
    out = Path(shutil.copytree(intact["npy"], tmp_path / "out"))
    change, message = FALSE[name]
    change(out)
    result = run("verify", "--quiet", out)
    assert result.exit_code == 4
    assert message in result.stdout


# --- packs with wrong rows: every checksum fits, and only `verify --deep` reads the rows ---


def with_wrong_rows(ending: str, change: Callable[[Any], object], also: Callable[[dict[str, Any]], object]) -> Change:
    """Change the numbers of a column, the checksums in the receipt to fit, and other parts of the receipt."""

    def apply(out: Path) -> None:
        path = shard_file(out, ending)
        numbers = np.load(path)
        change(numbers)
        np.save(path, numbers)
        digest = blake3_of(path)

        def fitted(receipt: dict[str, Any]) -> None:
            next(file for file in receipt["files"] if file["suffix"] == ending)["blake3"] = digest
            for name in ("image", "label"):
                rows = np.load(shard_file(out, f".{name}.npy"))
                receipt["crc32"][name] = [zlib.crc32(row.data) for row in rows]
            also(receipt)

        lie(out, fitted)

    return apply


WRONG: dict[str, tuple[str, Change, str]] = {
    "a plane with a 2": ("npy", with_wrong_rows(".label.npy", lambda n: n[0, 0].fill(2), id), "none of 3 classes"),
    "a pixel of two classes": ("npy", with_wrong_rows(".label.npy", lambda n: n[0].fill(1), id), "none of 3 classes"),
    "a number beyond the classes": ("index", with_wrong_rows(".label.npy", lambda n: n[0].fill(3), id), "none of 3"),
    "another key": ("npy", with_wrong_rows(".key.npy", lambda n: n.__setitem__(0, b"xx"), id), "has the key 'xx'"),
    "another checksum": (
        "npy",
        with_wrong_rows(".image.npy", id, lambda receipt: receipt["crc32"]["image"].__setitem__(0, 0)),
        "the field 'image' of the row '",
    ),
    "other counts": ("npy", with_wrong_rows(".label.npy", lambda n: n[0].fill(0), id), "counts of classes"),
    "an image above 1": ("float", with_wrong_rows(".image.npy", lambda n: n[0].fill(1.5), id), "not from 0 to 1"),
    "an image of no numbers": (
        "float",
        with_wrong_rows(".image.npy", lambda n: n[0].fill(np.nan), id),
        "not from 0 to 1",
    ),
}


@pytest.fixture(scope="module")
def other_labels(intact: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same pictures with index labels, and with floating-point images."""
    raw, folder = intact["npy"].parent / "raw", tmp_path_factory.mktemp("others")
    options = ("--classes", "3", "--format", "npy", "--workers", 1)
    return {
        "npy": intact["npy"],
        "index": pack(raw, folder / "index", *options, "--labels", "index"),
        "float": pack(raw, folder / "float", *options, "--image-dtype", "float16"),
    }


@pytest.mark.parametrize("name", WRONG)
def test_wrong_rows_are_found_only_by_a_deep_check(name: str, other_labels: dict[str, Path], tmp_path: Path) -> None:
    which, change, message = WRONG[name]
    out = Path(shutil.copytree(other_labels[which], tmp_path / "out"))
    change(out)
    assert run("verify", "--quiet", out).exit_code == 0
    result = run("verify", "--quiet", "--deep", out)
    assert result.exit_code == 4
    assert message in result.stdout


def test_a_deep_check_finds_nothing_in_an_undamaged_pack(
    intact: dict[str, Path], other_labels: dict[str, Path]
) -> None:
    for out in (*intact.values(), *other_labels.values()):
        assert run("verify", "--quiet", "--deep", out).exit_code == 0


def test_a_deep_check_finds_a_shard_that_readers_refuse(intact: dict[str, Path], tmp_path: Path) -> None:
    out = Path(shutil.copytree(intact["npy"], tmp_path / "out"))
    with_wrong_rows(".image.npy", id, id)(out)
    path = shard_file(out, ".key.npy")
    npy_header(lambda head: head.replace("|S2", "<u2"), ".key.npy")(out)
    digest = blake3_of(path)
    lie(out, lambda receipt: next(f for f in receipt["files"] if "key" in f["suffix"]).update(blake3=digest))
    assert "rows cannot be read" in run("verify", "--quiet", "--deep", out).stdout


def test_a_deep_check_names_the_shard_of_a_row_in_wrong_tiles_once(intact: dict[str, Path], tmp_path: Path) -> None:
    out = Path(shutil.copytree(intact["npy-tiles"], tmp_path / "out"))
    field(0, tile=[1, 1])(out)
    messages = [damage.message for damage in verify(out, 1, lambda _: None, deep=True) if damage.field]
    assert len(messages) == 12
    assert all(text.count("shards/all-") == 1 and "the ends of the tiles" in text for text in messages)


# --- verify="digest" ---


@pytest.mark.parametrize("ending", [".image.npy", ".key.npy", SUFFIX])
def test_checksums_are_compared_before_a_shard_is_opened(ending: str, intact: dict[str, Path], tmp_path: Path) -> None:
    out = Path(shutil.copytree(intact["npy"], tmp_path / "out"))
    assert len(list(open_dataset(out, verify="digest"))) == 12
    patched(ending, lambda data: data.__setitem__(-2, data[-2] ^ 1))(out)
    dataset = open_dataset(out, verify="digest")
    with pytest.raises(DamagedError, match=rf"{ending}: its (SHA-256|BLAKE3) is not the one in"):
        list(dataset)
    with pytest.raises(DamagedError):
        list(pickle.loads(pickle.dumps(dataset)))  # noqa: S301 - our own
    assert len(list(open_dataset(out))) == 12


def test_checksums_cover_the_table_and_every_format(intact: dict[str, Path], tmp_path: Path) -> None:
    for name, source in intact.items():
        out = Path(shutil.copytree(source, tmp_path / name))
        assert len(list(open_dataset(out, verify="digest"))) == 12
        path = the_table(out)
        data = path.read_bytes()
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        with pytest.raises(DamagedError, match="manifest"):
            open_dataset(out, verify="digest")
    with pytest.raises(RequestError, match="digest"):
        open_dataset(out, verify="crc")  # type: ignore[arg-type]


# --- the short form of tools/drills/damaged_packs.py ---


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_found_by_verify_and_harmless_to_readers(
    damage: str, intact: dict[str, Path], tmp_path: Path
) -> None:
    with workers() as pair:
        for name, source in intact.items():
            found = drill(Path(shutil.copytree(source, tmp_path / name / "out")), damage, 6, pair)
            assert found[MISSED] == found[BROKEN] == 0
