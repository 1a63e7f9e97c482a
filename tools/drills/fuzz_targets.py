"""All targets of fuzzing, and random changes of their seeds."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import shutil
import struct
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

import packer.config
from drills.damaged_packs import FORMS, make_pack, window
from drills.fuzz_numbers import numbers
from drills.fuzz_pictures import pictures
from drills.fuzz_plans import plans
from drills.fuzz_target import Target
from drills.hdf5_structure import fit_checksums
from drills.manifests import read_changed
from drills.structures import CHANGES, changed
from drills.volumes import metaimage, nifti, nrrd
from packer.classes.load import read_table
from packer.config.last_build import last_settings
from packer.errors import BadPair, PackError
from packer.pixels.encode import encode
from packer.pixels.jpeg_rules import JpegRules
from packer.plan.request import Request
from packer.publish.target import STAMP_SUFFIX as STAMPS_SUFFIX
from packer.publish.target import STAMPS
from packer.shards.stamps import load_stamps
from packer.sources.archives.archive import ArchiveSource
from packer.sources.archives.recordio_records import MAGIC, picture, records
from packer.sources.archives.tf_example import features_of, first_values
from packer.sources.archives.webdataset import WebDatasetSource
from packer.sources.container import Names
from packer.sources.volumes.volume_slices import VolumeSlices
from readers.contract.errors import ReadError
from readers.contract.fields import TILED, Field
from readers.contract.json_entry import fingerprint
from readers.contract.manifest import MANIFEST, STORAGES, Manifest
from readers.contract.receipt import SUFFIX, Receipt
from readers.contract.shard_table import table_path
from readers.formats import arrow, hdf5, lmdb, npy, shard_paths
from readers.formats.column import ShardFacts
from readers.formats.jpeg_parts import decode_part
from readers.formats.tiled_rows import check_tiles, unpack_row
from readers.formats.unpack import decode_jpeg
from readers.pack import Pack
from readers.stores.checksums import read_receipt

MOST_SLICES = 20
"""The slices of a volume that are read."""
OPENERS = {"arrow": arrow.open_shard, "hdf5": hdf5.open_shard, "lmdb": lmdb.open_shard, "npy": npy.open_shard}
TABLES = {
    ".csv": ("name,r,g,b\nsky,70,130,180\nroad,128,64,128\n", "id,name,train_id\n7,road,0\n8,kerb,255\n"),
    ".txt": ("sky\nroad\n", "7: road\n8: kerb\n", "128 64 128\tRoad\n0 0 0\tVoid\n", "road:128,64,128::\n"),
    ".json": (
        '{"0": "sky", "1": "road"}',
        '{"sky": [70, 130, 180], "road": "#804080", "kerb": [3, "4-6"]}',
        '["sky", "road"]',
        '{"labels": [{"name": "sky", "id": 0, "color": [70, 130, 180], "trainId": 0, "evaluate": true}]}',
        '{"label_map": {"0": "sky", "1": "road"}, "segmentation_colors": [[0, 0, 0], [1, 2, 3]]}',
    ),
    ".toml": (
        'ignore = [255, "0-6", "#000000"]\n[[class]]\nname = "road"\ncolour = "#804080"\nvalues = [7, "8-10"]\n'
        'colours = ["#804080", "250,170,160", "#00000000"]\n',
    ),
}


def make_targets(folder: Path) -> dict[str, Target]:
    """Return all targets. Their packs are made in `folder` if they do not exist yet."""
    packs = [_pack(folder, storage, form) for storage in STORAGES for form in FORMS]
    first = packs[0]
    targets = [
        *(_shards(folder, storage, packs[n * len(FORMS) :][: len(FORMS)]) for n, storage in enumerate(STORAGES)),
        *_rows(_pack(folder, "npy", "encoded")),
        _parts(),
        _manifest(folder, packs),
        Target("fields", (b"a", b"b", b"c", b"d"), read_changed, (ReadError,)),
        _table(folder, first),
        _receipt(folder, packs),
        *pictures(),
        *numbers(),
        *_volumes(folder),
        _stamps(folder, first),
        _class_tables(folder),
        _config(folder, first),
        _tar(folder),
        _example(),
        plans(first.with_name("raw"), folder / "plan"),
        _records(),
    ]
    return {target.name: target for target in targets}


def mutated(target: Target, count: int) -> Iterable[bytes]:
    """Yield seeds with a few random changes, the same ones in every run. Every second one knows the format, if any."""
    dice = random.Random(target.name)
    for number in range(count):
        data = bytearray(dice.choice(target.seeds))
        if number % 2 and target.name in CHANGES:
            yield changed(target.name, bytes(data), dice)
            continue
        for _ in range(dice.choice((1, 1, 2, 5))):
            _change(data, dice, target)
        yield bytes(data)


def _change(data: bytearray, dice: random.Random, target: Target) -> None:
    at = dice.randrange(len(data) + 1) if dice.random() < 0.5 else dice.randrange(min(len(data), 256) + 1)
    length = dice.choice((1, 1, 2, 4, 8, 32))
    number = dice.choice((0, 1, 2, 127, 128, 255, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1))
    other = dice.choice(target.seeds)
    start = dice.randrange(len(other) + 1)
    match dice.randrange(7):
        case 0 if at < len(data):
            data[at] ^= 1 << dice.randrange(8)
        case 1:
            data[at : at + length] = dice.randbytes(length)
        case 2:
            del data[at : at + length]
        case 3:
            data[at:at] = other[start : start + length]
        case 4:
            data[at : at + 4] = struct.pack(dice.choice("<>") + "I", number & 0xFFFFFFFF)
        case 5:
            data[at : at + 8] = struct.pack("<Q", number)
        case _:
            data[at:at] = dice.choice((b"[", b"{", b'"', b",", b"-", b"9" * 20, b"null", b"\n", b"\0", b"\xff"))


def _pack(folder: Path, storage: str, form: str) -> Path:
    root = folder / f"{storage} {form}"
    return root / "out" if (root / "out").is_dir() else make_pack(root, storage, form)


def _rows(out: Path) -> Iterator[Target]:
    """Yield the targets of encoded rows: one for each encoding."""
    pack = Pack.open(out)
    shard = pack.shard(0)
    image = pack.manifest.fields[0]
    tiled = [replace(image, encoding=encoding, tile=(4, 3)) for encoding in TILED]
    for field in (*pack.manifest.fields, *tiled):
        rows = [shard.row(field if field.tile is None else image, row) for row in range(shard.facts.rows)]
        jpeg = JpegRules() if field.is_jpeg else None
        seeds = tuple(encode(field, jpeg, numbers, b"").stored for numbers in rows)
        numbers = np.empty_like(rows[0])

        def parse(data: bytes, field: Field = field, numbers: NDArray[Any] = numbers) -> None:
            stored = np.frombuffer(data, np.uint8)
            if field.is_tiled:
                check_tiles(field, stored, numbers.shape)
            unpack_row(field, stored, numbers)

        yield Target(f"{field.encoding}-row", seeds, parse, (ReadError,))


def _parts() -> Target:
    """Return the target of parts of JPEG rows with restart markers. They have the pixels of the whole row, unless that
    is damaged elsewhere."""
    shape, part = (3, 40, 72), (slice(9, 20), slice(30, 50))
    pixels = np.random.default_rng(0).integers(100, 140, (40, 72, 3), np.uint8)
    full = cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444
    seeds = tuple(
        cv2.imencode(".jpg", pixels, (*full, cv2.IMWRITE_JPEG_RST_INTERVAL, blocks))[1].tobytes() for blocks in (3, 18)
    )

    def parse(data: bytes) -> None:
        stored = np.frombuffer(data, np.uint8)
        found = decode_part(stored, shape, part)
        read = np.empty(0) if found is None else found.copy()
        whole = decode_jpeg(stored, shape)
        assert whole is None or np.array_equal(read, whole[part].transpose(2, 0, 1)), "other pixels than the row"
        assert found is None or read.shape == (3, 11, 20)

    return Target("jpeg-part", seeds, parse)


def _shards(folder: Path, storage: str, packs: list[Path]) -> Target:
    """Return the target of shards: open one and read all. The first byte of the input selects the file."""
    files: list[tuple[Path, bytes, Path, ShardFacts]] = []
    for out in packs:
        pack, live = Pack.open(out), folder / "live" / out.parent.name
        live.mkdir(parents=True, exist_ok=True)
        facts, stem = ShardFacts(pack.table.rows(0), pack.manifest.fields), pack.stem(0)
        for path in shard_paths(storage)(stem, facts):
            shutil.copy(path, live)
            files.append((live / path.name, path.read_bytes(), live / stem.name, facts))

    def parse(data: bytes) -> None:
        path, whole, stem, facts = files[data[0] % len(files) if data else 0]
        changed_file = bytearray(data[1:])
        if storage == "hdf5":
            fit_checksums(changed_file, whole)
        path.write_bytes(changed_file)
        try:
            shard = OPENERS[storage](stem, facts)
            for row in range(facts.rows):
                for field in facts.fields:
                    shard.row(field, row)
                    window(shard, field, row)
                shard.key(row)
        finally:
            path.write_bytes(whole)

    return Target(storage, tuple(bytes([n]) + whole for n, (_, whole, _, _) in enumerate(files)), parse, (ReadError,))


def _manifest(folder: Path, packs: list[Path]) -> Target:
    """Return the target of manifests, unchanged and with a checksum that is made to fit."""
    root = folder / "manifest"
    root.mkdir(exist_ok=True)

    def parse(data: bytes) -> None:
        try:
            document = json.loads(data)
            document["checksum"] = fingerprint({key: document[key] for key in document if key != "checksum"})
            text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
        except (ValueError, TypeError, RecursionError):
            text = ""
        with suppress(ReadError):
            Manifest.from_text(text, "sealed")
        (root / MANIFEST).write_bytes(data)
        Manifest.load(root)

    return Target("manifest", tuple((out / MANIFEST).read_bytes() for out in packs), parse, (ReadError,))


def _table(folder: Path, out: Path) -> Target:
    """Return the target of shard tables, with a valid manifest."""
    manifest = Manifest.load(out)
    path = table_path(folder / "table", manifest.table)
    path.parent.mkdir(parents=True, exist_ok=True)

    def parse(data: bytes) -> None:
        path.write_bytes(data)
        pack = Pack(folder / "table", manifest)
        for shard in range(len(pack.table)):
            pack.stem(shard), pack.table.rows(shard), pack.table.bytes(shard), pack.table.receipt(shard)
        for row in (0, manifest.rows // 2, manifest.rows - 1):
            pack.table.locate(row)

    return Target("table", (table_path(out, manifest.table).read_bytes(),), parse, (ReadError,))


def _receipt(folder: Path, packs: list[Path]) -> Target:
    """Return the target of receipts. The digest is made to fit, because an attacker can change the table, too."""
    root = folder / "receipt"
    root.mkdir(exist_ok=True)
    seeds = tuple(min((out / "shards").glob(f"*{SUFFIX}")).read_bytes() for out in packs)

    def parse(data: bytes) -> None:
        (root / f"all{SUFFIX}").write_bytes(data)
        receipt: Receipt = read_receipt(root, root / "all", hashlib.sha256(data).hexdigest())
        receipt.keys, receipt.bytes, receipt.to_text()

    return Target("receipt", seeds, parse, (ReadError,))


def _volumes(folder: Path) -> Iterator[Target]:
    """Yield a target for each format of volumes: every slice, as an image and as a label. A file may be compressed."""
    numbers = np.random.default_rng(0).integers(0, 99, (5, 4, 3))
    plain = [nifti(numbers.astype(dtype), 1 + number % 2) for number, dtype in enumerate(("<i2", ">f4", "|u1", "<f8"))]
    yield _volume(folder, "nii", (*plain, *(gzip.compress(seed, mtime=0) for seed in plain[:2])))
    yield _volume(folder, "mha", tuple(metaimage(numbers, is_packed) for is_packed in (False, True)))
    yield _volume(folder, "nrrd", tuple(nrrd(numbers, is_packed) for is_packed in (False, True)))


def _volume(folder: Path, suffix: str, seeds: tuple[bytes, ...]) -> Target:
    root = folder / f"volumes-{suffix}"
    paths = [root / name / f"a.{suffix}" for name in ("images", "labels")]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)

    def parse(data: bytes) -> None:
        for path in paths:
            path.write_bytes(data)
        for axis in (2, 0):
            source = VolumeSlices.at(root, Names()).along(axis)
            refs = list(islice(source.rows(), MOST_SLICES))
            for ref, heads in zip(refs, source.heads(refs), strict=True):
                loaded = source.load(ref)
                assert loaded.bad is not None or (not isinstance(heads, str) and loaded.data[0].shape == heads[0].size)

    return Target("volume" if suffix == "nii" else f"volume-{suffix}", seeds, parse)


def _stamps(folder: Path, out: Path) -> Target:
    """Return the target of stamps, which raise no error: damaged stamps count as missing."""
    honest = min((out / STAMPS).glob(f"*{STAMPS_SUFFIX}"))
    path = folder / "stamped" / STAMPS / honest.name
    path.parent.mkdir(parents=True, exist_ok=True)

    def parse(data: bytes) -> None:
        path.write_bytes(data)
        load_stamps(path.parent.parent)

    return Target("stamps", (honest.read_bytes(),), parse)


def _class_tables(folder: Path) -> Target:
    """Return the target of class tables. The first byte of the input selects the suffix."""
    suffixes = sorted(TABLES)

    def parse(data: bytes) -> None:
        path = folder / f"classes{suffixes[data[0] % len(suffixes) if data else 0]}"
        path.write_bytes(data[1:])
        read_table(path)

    seeds = tuple(bytes([n]) + text.encode() for n, suffix in enumerate(suffixes) for text in TABLES[suffix])
    return Target("classes", seeds, parse, (PackError,))


def _config(folder: Path, out: Path) -> Target:
    """Return the target of configurations: the one that a build keeps, as `packer repair` reads it, and presets."""
    path = folder / "config.toml"

    def parse(data: bytes) -> None:
        path.write_bytes(data)
        Request.from_settings(last_settings(out, folder, path))

    known = (Path(packer.config.__file__).parent / "presets" / name for name in ("voc.toml", "cityscapes.toml"))
    seeds = ((out / "packer.toml").read_bytes(), *(preset.read_bytes() for preset in known))
    return Target("config", seeds, parse, (PackError,))


def _archive(folder: Path, kind: type[ArchiveSource], seeds: tuple[bytes, ...]) -> Target:
    """Return the target of an archive: list its rows, and read the headers and the bytes of each."""
    path = folder / kind.kind

    def parse(data: bytes) -> None:
        path.write_bytes(data)
        source = kind.at(path, Names())
        refs = list(source.rows())
        assert all(isinstance(heads, (str, tuple)) for heads in source.heads(refs))
        for ref in refs:
            loaded = source.load(ref)
            assert loaded.bad is not None or len(loaded.data) == len(ref.parts)

    return Target(kind.kind, seeds, parse)


def _tar(folder: Path) -> Target:
    files = {"a.png": b"image", "a.seg.png": b"label", "b/ü.png": b"image", f"b/{'y' * 200}.seg.png": b"label"}
    seeds = []
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        with tarfile.open(fileobj=(data := BytesIO()), mode="w", format=form, bufsize=512) as tar:
            for name, content in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, BytesIO(content))
        seeds.append(data.getvalue().rstrip(b"\0") + bytes(1536))

    return _archive(folder, WebDatasetSource, tuple(seeds))


def _example() -> Target:
    """Return the target of Examples, without the checksums around them."""
    image = b"\x0a\x0f\x0a\x05image\x12\x06\x0a\x04\x0a\x02ab"
    number = b"\x0a\x0d\x0a\x02id\x12\x07\x1a\x05\x0a\x03\xac\x02\x07"
    seeds = tuple(b"\x0a" + bytes([len(entries)]) + entries for entries in (image, image + number))
    return Target(
        "example", seeds, lambda data: [*map(first_values, features_of(memoryview(data)).values())], (BadPair,)
    )


def _records() -> Target:
    """Return the target of RecordIO: its records, and the picture of each. Parts join where the magic number was."""
    whole = struct.pack("<IfQQ", 1, 0.0, 7, 0) + b"text" + b"image"
    parts = ((1, whole[:12]), (2, b""), (3, whole[12:]))
    seeds = [
        b"".join(
            MAGIC + struct.pack("<I", flag << 29 | len(data)) + data + bytes(-len(data) % 4) for flag, data in some
        )
        for some in (((0, whole), (0, whole)), (*parts, (0, whole)))
    ]

    def parse(data: bytes) -> None:
        file = BytesIO(data)
        for start, size, _ in records(file, len(data)):
            with suppress(BadPair):
                assert len(picture(data[start : start + size], start)) < size

    return Target("recordio", tuple(seeds), parse, (BadPair,))
