"""The same scenes in each kind of source, for the law suite. A new kind of source gets an entry in `KINDS`."""

from __future__ import annotations

import json
import shutil
import struct
import tarfile
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import h5py
import lmdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from conftest import pack, scene
from handmade import encoded_as
from numpy.typing import NDArray

from packer import Rows, verify_pack
from packer.pairs.find import find_pairs
from packer.pairs.pairing_rules import PairingRules
from packer.recipe.source import Source
from packer.sources.annotated.annotated import AnnotatedSource, PaintedField
from packer.sources.annotated.indexed import IndexedSource
from packer.sources.annotated.indexed_files import IndexedFiles
from packer.sources.archives.hugging_face import HuggingFaceSource
from packer.sources.archives.lmdb_pictures import LmdbPicturesSource
from packer.sources.archives.parquet import ParquetSource
from packer.sources.archives.recordio import RecordIoSource
from packer.sources.archives.tfrecord import TfRecordSource, masked_crc
from packer.sources.archives.webdataset import WebDatasetSource
from packer.sources.arrays.hdf5_arrays import Hdf5Arrays
from packer.sources.arrays.npy_arrays import NpyArrays
from packer.sources.arrays.torch_tensors import TorchTensors
from packer.sources.arrays.zarr_arrays import ZarrArrays
from packer.sources.container import Names
from packer.sources.containers import container_of
from packer.sources.files.folder import FolderSource
from packer.sources.files.objects import ObjectsSource
from packer.sources.pack import PackSource
from readers.contract.kinds import CLASSES

HEIGHT, WIDTH = 24, 36
Scene = tuple[NDArray[np.uint8], NDArray[np.uint8]]
"""An image (H,W,3) and its class numbers."""
Scenes = Mapping[str, Scene]
"""Scenes by their keys, in the order in which the source holds them."""
COCO = "annotations.json"
PANOPTIC = "segments.json"


@dataclass(frozen=True)
class Kind:
    """A kind of source: how rows are stored at a path, and how they are opened."""

    write: Callable[[Path, Scenes], None]
    """Store these scenes and no others. Files of scenes that are there already are not touched."""
    open: Callable[[Path], Source]
    damage: Callable[[Path, str, Scene], None]
    """Make the row of this key, which has this scene, one that cannot be packed."""
    saves_loading: bool = True
    """True if the source knows, without loading them, which rows did not change when others did."""


def scenes_of(seeds: Mapping[str, int]) -> dict[str, Scene]:
    """Return a scene for each key."""
    return {key: scene(seed, HEIGHT, WIDTH) for key, seed in seeds.items()}


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Have exactly these files in a folder. Those that are there already are not written again."""
    folder.mkdir(exist_ok=True)
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        if str(path.relative_to(folder)) not in files:
            path.unlink()
    for name, data in files.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Return pixels as a PNG."""
    return encoded_as(".png", pixels)


def write_folder(path: Path, scenes: Scenes) -> None:
    images = {f"images/{key}.png": png(image) for key, (image, _) in scenes.items()}
    write_files(path, images | {f"masks/{key}.png": png(label) for key, (_, label) in scenes.items()})


def open_folder(path: Path) -> FolderSource:
    pairing = find_pairs(path)
    return FolderSource(path, pairing.pairs, (pairing.image_template, pairing.label_template))


def open_objects(path: Path) -> ObjectsSource:
    source = ObjectsSource.at(f"file://{path}")
    pairing = find_pairs(source.raw, files=source.files)
    return replace(source, pairs=pairing.pairs, templates=(pairing.image_template, pairing.label_template))


def write_annotated(folder: Path, scenes: Scenes) -> None:
    """Store labels as bitmaps of LabelMe, one for each class."""
    files = {}
    for key, (image, label) in scenes.items():
        whole = [[0, 0], [label.shape[1] - 1, label.shape[0] - 1]]
        masks = {f"class_{number}": b64encode(png((label == number) * np.uint8(255))).decode() for number in range(4)}
        shapes = [{"label": name, "shape_type": "mask", "points": whole, "mask": mask} for name, mask in masks.items()]
        files[f"{key}.png"] = png(image)
        files[f"{key}.json"] = json.dumps({"imagePath": f"{key}.png", "shapes": shapes}).encode()
    write_files(folder, files)


def open_annotated(path: Path) -> AnnotatedSource:
    pairing = find_pairs(path, PairingRules("{key}", "{key}.json"))
    files = FolderSource(path, pairing.pairs, (pairing.image_template, pairing.label_template))
    return AnnotatedSource(files, "labelme", (PaintedField(1, CLASSES),))


def cut_annotations(path: Path, key: str, scene: Scene) -> None:
    file = path / f"{key}.json"
    file.write_bytes(file.read_bytes()[:-20])


def write_indexed(folder: Path, scenes: Scenes) -> None:
    """Store labels as run lengths in one file of COCO."""
    annotations = [
        {"image_id": key, "category_id": number, "segmentation": _run_lengths(label == number)}
        for key, (_, label) in scenes.items()
        for number in range(4)
    ]
    images = [{"id": key, "file_name": f"{key}.png"} for key in scenes]
    categories = [{"id": number, "name": f"class_{number}"} for number in range(4)]
    lists = {"images": images, "annotations": annotations, "categories": categories}
    pictures = {f"{key}.png": png(image) for key, (image, _) in scenes.items()}
    write_files(folder, {**pictures, COCO: json.dumps(lists).encode()})


def _run_lengths(inside: NDArray[np.bool_]) -> dict[str, Any]:
    changes = np.flatnonzero(np.diff(inside.reshape(-1, order="F"), prepend=False))
    counts = np.diff(changes, prepend=0, append=inside.size)
    return {"counts": counts.tolist(), "size": list(inside.shape)}


def open_indexed(path: Path) -> IndexedSource:
    pairing = find_pairs(path, PairingRules("{key}", has_label=False))
    pairs = tuple(pair._replace(label=f"{COCO}#{pair.image}") for pair in pairing.pairs)
    files = FolderSource(path, pairs, (pairing.image_template, COCO))
    return IndexedSource(files, "coco", (PaintedField(1, CLASSES),), indexed=IndexedFiles.at(path, [COCO]))


def break_run_lengths(path: Path, key: str, scene: Scene) -> None:
    lists = json.loads((path / COCO).read_text())
    first = next(each for each in lists["annotations"] if each["image_id"] == key)
    first["segmentation"]["counts"].append(1)
    (path / COCO).write_text(json.dumps(lists))


def write_panoptic(folder: Path, scenes: Scenes) -> None:
    """Store labels as PNGs of ids, which a file of COCO panoptic lists. Each class is a segment."""
    segments = [{"id": number + 1, "category_id": number, "iscrowd": 0} for number in range(4)]
    lists = {
        "images": [{"id": key, "file_name": f"{key}.png"} for key in scenes],
        "annotations": [{"image_id": key, "file_name": f"{key}.png", "segments_info": segments} for key in scenes],
        "categories": [{"id": number, "name": f"class_{number}"} for number in range(4)],
    }
    ids = {
        f"segments/{key}.png": png(np.dstack([label + 1, 0 * label, 0 * label])) for key, (_, label) in scenes.items()
    }
    pictures = {f"images/{key}.png": png(image) for key, (image, _) in scenes.items()}
    write_files(folder, {**pictures, **ids, PANOPTIC: json.dumps(lists).encode()})


def open_panoptic(path: Path) -> IndexedSource:
    pairing = find_pairs(path, PairingRules("images/{key}", has_label=False))
    pairs = tuple(pair._replace(label=f"{PANOPTIC}#{pair.key}.png") for pair in pairing.pairs)
    files = FolderSource(path, pairs, (pairing.image_template, PANOPTIC))
    return IndexedSource(files, "panoptic", (PaintedField(1, CLASSES),), indexed=IndexedFiles.at(path, [PANOPTIC]))


def cut_segments(path: Path, key: str, scene: Scene) -> None:
    file = path / "segments" / f"{key}.png"
    file.write_bytes(file.read_bytes()[:-20])


def cut_label(path: Path, key: str, scene: Scene) -> None:
    file = path / "masks" / f"{key}.png"
    file.write_bytes(file.read_bytes()[:-20])


def write_pack(path: Path, scenes: Scenes) -> None:
    raw = path.with_name(f"{path.name}.raw")
    write_folder(raw, scenes)
    if path.exists() and verify_pack(path):
        shutil.rmtree(path)
    pack(raw, path, "--classes", "4", "--labels", "index", "--shard-size", "9KB")


def invert_image(path: Path, key: str, scene: Scene) -> None:
    """Invert the bytes of an image in its shard."""
    image = scene[0].transpose(2, 0, 1).tobytes()
    (file,) = (file for file in path.glob("shards/*.image.npy") if image in file.read_bytes())
    file.write_bytes(file.read_bytes().replace(image, bytes(255 - byte for byte in image)))


@dataclass(frozen=True)
class Saved:
    """The functions of `Rows`: a file of NumPy for each row. Its time is its version."""

    folder: Path

    def keys(self) -> list[str]:
        return [path.stem for path in self.folder.iterdir()]

    def load(self, key: str) -> Mapping[str, NDArray[np.uint8]]:
        with np.load(BytesIO((self.folder / f"{key}.npz").read_bytes())) as file:
            return {"image": file["image"], "label": file["label"]}

    def version(self, key: str) -> int:
        return (self.folder / f"{key}.npz").stat().st_mtime_ns


def write_saved(path: Path, scenes: Scenes) -> None:
    files = {}
    for key, (image, label) in scenes.items():
        np.savez(file := BytesIO(), image=image, label=label)
        files[f"{key}.npz"] = file.getvalue()
    write_files(path, files)


def open_saved(path: Path) -> Rows:
    saved = Saved(path)
    return Rows(saved.keys(), saved.load, saved.version, sizes=(HEIGHT, WIDTH))


def cut_saved(path: Path, key: str, scene: Scene) -> None:
    file = path / f"{key}.npz"
    file.write_bytes(file.read_bytes()[:-20])


def stacked(scenes: Scenes) -> tuple[NDArray[np.uint8], NDArray[np.uint8], list[str]]:
    """Return all images, all labels and all keys."""
    images, labels = (np.stack(pixels) for pixels in zip(*scenes.values(), strict=True))
    return images, labels, list(scenes)


def write_npy(path: Path, scenes: Scenes) -> None:
    images, labels, keys = stacked(scenes)
    path.mkdir(exist_ok=True)
    for name, array in (("images", images.transpose(0, 3, 1, 2)), ("labels", labels), ("keys", np.array(keys))):
        np.save(path / f"{name}.npy", np.ascontiguousarray(array))


def spoil_npy(path: Path, key: str, scene: Scene) -> None:
    """Have a class number that is in no class."""
    labels = np.load(path / "labels.npy", mmap_mode="r+")
    labels[np.load(path / "keys.npy").tolist().index(key)] += 100
    labels.flush()


def write_torch(path: Path, scenes: Scenes) -> None:
    images, labels, keys = stacked(scenes)
    new = path.with_name("new.pt")
    tensors = {"images": torch.from_numpy(images), "labels": torch.from_numpy(labels.astype(np.int64))}
    torch.save({"train": tensors, "keys": keys}, new)
    new.replace(path)


def spoil_torch(path: Path, key: str, scene: Scene) -> None:
    """Have a class number that is in no class."""
    data, label = path.read_bytes(), scene[1].astype(np.int64)
    assert data.count(label.tobytes()) == 1
    path.write_bytes(data.replace(label.tobytes(), (label + 100).tobytes()))


def write_hdf5(path: Path, scenes: Scenes) -> None:
    images, labels, keys = stacked(scenes)
    new = path.with_name("new.h5")  # this process may not have a file open twice
    with h5py.File(new, "w") as file:
        file.create_dataset("scans/images", data=images, chunks=(1, *images.shape[1:]), compression="gzip")
        file.create_dataset("labels", data=labels.astype(">i4"), chunks=(4, 24, 12), shuffle=True, fletcher32=True)
        file["keys"] = keys
    new.replace(path)


def cut_chunk(path: Path, key: str, scene: Scene) -> None:
    """Overwrite a part of a compressed image."""
    with h5py.File(path) as file:
        row = file["keys"].asstr()[:].tolist().index(key)
        chunk = file["scans/images"].id.get_chunk_info(row)
    data = bytearray(path.read_bytes())
    data[chunk.byte_offset + 100 : chunk.byte_offset + 140] = bytes(40)
    path.write_bytes(data)


def write_tar(path: Path, scenes: Scenes) -> None:
    files: dict[str, bytes] = {}
    for key, (image, label) in scenes.items():
        files |= {f"{key}.png": png(image), f"{key}.seg.png": png(label), f"{key}.json": b"{}"}
    path.write_bytes(tar_of(files))


def tar_of(files: Mapping[str, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    """Return a tar of these files, as WebDataset writes them."""
    with tarfile.open(fileobj=(data := BytesIO()), mode="w", format=form) as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, BytesIO(content))
    return data.getvalue()


def invert_label(path: Path, key: str, scene: Scene) -> None:
    """Invert the bytes of a label in a file."""
    label = png(scene[1])
    path.write_bytes(path.read_bytes().replace(label, bytes(255 - byte for byte in label)))


def open_archive(path: Path, key: str | None = None) -> Source:
    """Open a file as --from opens one in a store."""
    container = container_of(Path(f"file://{path}"))
    assert container is not None
    return container.at(path, Names(key=key))


def table_of(scenes: Scenes) -> pa.Table:
    """Return a table of pictures as Hugging Face has them: bytes and paths."""
    images, labels = ([{"bytes": png(row[side]), "path": None} for row in scenes.values()] for side in (0, 1))
    kind = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    columns = {"image": pa.array(images, kind), "annotation": pa.array(labels, kind), "name": list(scenes)}
    return pa.table({"score": [0.5] * len(scenes), **columns})


def write_parquet(path: Path, scenes: Scenes) -> None:
    pq.write_table(table_of(scenes), path, row_group_size=5, compression="none")


def write_hugging_face(path: Path, scenes: Scenes) -> None:
    """Write what `save_to_disk` writes for a data set of two files."""
    path.mkdir(exist_ok=True)
    table, files = table_of(scenes), [f"data-{number:05}-of-00002.arrow" for number in range(2)]
    for file, part in zip(files, (table[:5], table[5:]), strict=True):
        with pa.ipc.new_stream(path / file, table.schema) as stream:
            stream.write_table(part, max_chunksize=3)
    state = {"_data_files": [{"filename": file} for file in files], "_split": None}
    (path / "state.json").write_text(json.dumps(state))
    (path / "dataset_info.json").write_text("{}")


def invert_in(path: Path, key: str, scene: Scene) -> None:
    """Invert the label of a row in one of the files of a folder."""
    for file in path.glob("*.arrow"):
        invert_label(file, key, scene)


def write_lmdb(path: Path, entries: Mapping[str, bytes]) -> None:
    path.unlink(missing_ok=True)
    environment = lmdb.open(str(path), subdir=False, lock=False, map_size=1 << 24)
    with environment, environment.begin(write=True) as transaction:
        for key, value in entries.items():
            transaction.put(key.encode(), value)


def lmdb_entries(scenes: Scenes) -> dict[str, bytes]:
    """Return images and labels by keys such as `image-7`, and other entries."""
    images = {f"image-{key}": png(image) for key, (image, _) in scenes.items()}
    return {**images, **{f"label-{key}": png(label) for key, (_, label) in scenes.items()}, "num-samples": b"14"}


def varint(number: int) -> bytes:
    """Return a number as Protocol Buffers write it."""
    return bytes([number]) if number < 128 else bytes([128 | number & 127]) + varint(number >> 7)


def message(field: int, content: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(content)) + content


def example(features: Mapping[str, bytes | int | list[int]]) -> bytes:
    """Return a `tf.train.Example`."""
    entries = b""
    for name, value in features.items():
        numbers = b"".join(map(varint, value)) if isinstance(value, list) else b""
        values = message(1, value) if isinstance(value, bytes) else message(1, numbers)
        if isinstance(value, int):
            values = message(1, varint(value))
        feature = message(1 if isinstance(value, bytes) else 3, values)
        entries += message(1, message(1, name.encode()) + message(2, feature))
    return message(1, entries)


def record(data: bytes) -> bytes:
    """Return a record of a TFRecord file."""
    length = struct.pack("<Q", len(data))
    return b"".join(part + struct.pack("<I", masked_crc(part)) for part in (length, data))


def write_tfrecord(path: Path, scenes: Scenes) -> None:
    rows = [{"image": png(image), "mask": png(label), "name": key.encode()} for key, (image, label) in scenes.items()]
    path.write_bytes(b"".join(record(example(row)) for row in rows))


def invert_in_record(path: Path, key: str, scene: Scene) -> None:
    """Invert a label in its record, whose checksum fits."""
    data, at, label = path.read_bytes(), 0, png(scene[1])
    while at < len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        content = data[at + 12 : at + 12 + size]
        if label in content:
            changed = record(content.replace(label, bytes(255 - byte for byte in label)))
            data = data[:at] + changed + data[at + len(changed) :]
        at += size + 16
    path.write_bytes(data)


def rec_record(data: bytes) -> bytes:
    """Return a record of RecordIO. Its data go on in another part wherever they have the magic number."""
    magic, parts, start = struct.pack("<I", 0xCED7230A), [], 0
    for at in range(0, len(data) - 3, 4):
        if data[at : at + 4] == magic:
            parts.append(data[start:at])
            start = at + 4
    parts.append(data[start:])
    flags = [0] if len(parts) == 1 else [1, *[2] * (len(parts) - 2), 3]
    heads = [magic + struct.pack("<I", flag << 29 | len(part)) for flag, part in zip(flags, parts, strict=True)]
    return b"".join(head + part + bytes(-len(part) % 4) for head, part in zip(heads, parts, strict=True))


def rec_picture(number: int, picture: bytes, *labels: float) -> bytes:
    """Return a picture with its id, and with the numbers of its label, as `mxnet.recordio.pack` does."""
    header = struct.pack("<IfQQ", len(labels), 0.0, number % (1 << 64), number >> 64)
    return rec_record(header + struct.pack(f"<{len(labels)}f", *labels) + picture)


def write_recordio(path: Path, scenes: Scenes) -> None:
    """Write a file of images and one of masks, in another order, with indexes whose keys are texts."""
    files = {}
    for side, (name, keys) in enumerate((("images", [*scenes]), ("masks", sorted(scenes)))):
        records = [rec_picture(0, png(scenes[key][side]), *[1.0] * side) for key in keys]
        places = accumulate(map(len, records[:-1]), initial=0)
        files[f"{name}.rec"] = b"".join(records)
        files[f"{name}.idx"] = "".join(f"{key}\t{at}\n" for key, at in zip(keys, places, strict=True)).encode()
    write_files(path, files)


def write_zarr(path: Path, scenes: Scenes) -> None:
    """Write images as Zarr 3, in chunks of several rows, and labels as N5."""
    images, labels, keys = stacked(scenes)
    with TemporaryDirectory() as folder:
        write_array(Path(folder) / "images", "zarr3", images, (4, 24, 20, 3))
        write_array(Path(folder) / "train" / "labels", "n5", labels, (1, 24, 36))
        np.save(Path(folder) / "keys.npy", keys)
        (Path(folder) / "attributes.json").write_text('{"n5": "2.0.0"}')
        files = [file for file in Path(folder).rglob("*") if file.is_file()]
        write_files(path, {str(file.relative_to(folder)): file.read_bytes() for file in files})


def write_array(folder: Path, driver: str, array: NDArray[Any], chunks: tuple[int, ...], **more: Any) -> None:
    """Write an array of Zarr 2 (driver zarr), Zarr 3 or N5."""
    kinds: dict[str, dict[str, Any]] = {
        "zarr": {
            "shape": array.shape,
            "chunks": chunks,
            "dtype": array.dtype.str,
            "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1},
        },
        "zarr3": {
            "shape": array.shape,
            "data_type": array.dtype.name,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
            "codecs": [{"name": "gzip"}],
        },
        "n5": {
            "dimensions": array.shape[::-1],
            "blockSize": chunks[::-1],
            "dataType": array.dtype.name,
            "compression": {"type": "gzip"},
        },
    }
    place = {"driver": "file", "path": f"{folder}/"}
    spec = {"driver": driver, "kvstore": place, "metadata": {**kinds[driver], **more}}
    store = import_module("tensorstore").open(spec, create=True, open=True).result()
    (store.T if driver == "n5" else store).write(array).result()


def cut_block(path: Path, key: str, scene: Scene) -> None:
    """Cut the compressed label of a row."""
    row = np.load(path / "keys.npy").tolist().index(key)
    block = path / "train" / "labels" / "0" / "0" / str(row)
    block.write_bytes(block.read_bytes()[:-30])


KINDS = {
    "folder": Kind(write_folder, open_folder, cut_label),
    "annotated": Kind(write_annotated, open_annotated, cut_annotations),
    "indexed": Kind(write_indexed, open_indexed, break_run_lengths),
    "panoptic": Kind(write_panoptic, open_panoptic, cut_segments),
    "objects": Kind(write_folder, open_objects, cut_label),
    "pack": Kind(write_pack, PackSource.at, invert_image),
    "rows": Kind(write_saved, open_saved, cut_saved),
    "npy": Kind(write_npy, lambda path: NpyArrays.at(path, Names("images", "labels.npy", "keys")), spoil_npy),
    "hdf5": Kind(
        write_hdf5,
        lambda path: Hdf5Arrays.at(path, Names("scans/images", "/labels", "keys")),
        cut_chunk,
        saves_loading=False,
    ),
    "torch": Kind(
        write_torch,
        lambda path: TorchTensors.at(path, Names("train/images", "train/labels", "keys")),
        spoil_torch,
    ),
    "webdataset": Kind(write_tar, lambda path: WebDatasetSource.at(path, Names()), invert_label),
    "webdataset in a store": Kind(write_tar, lambda path: open_archive(path), invert_label),
    "parquet in a store": Kind(write_parquet, lambda path: open_archive(path, key="name"), invert_label),
    "parquet": Kind(write_parquet, lambda path: ParquetSource.at(path, Names(key="name")), invert_label),
    "hugging face": Kind(
        write_hugging_face, lambda path: HuggingFaceSource.at(path, Names("image", "annotation", "name")), invert_in
    ),
    "lmdb": Kind(
        lambda path, scenes: write_lmdb(path, lmdb_entries(scenes)),
        lambda path: LmdbPicturesSource.at(path, Names()),
        invert_label,
        saves_loading=False,
    ),
    "recordio": Kind(
        write_recordio,
        lambda path: RecordIoSource.at(path, Names()),
        lambda path, key, scene: invert_label(path / "masks.rec", key, scene),
    ),
    "tfrecord": Kind(write_tfrecord, lambda path: TfRecordSource.at(path, Names(key="name")), invert_in_record),
}
if find_spec("tensorstore"):
    KINDS["zarr"] = Kind(
        write_zarr,
        lambda path: ZarrArrays.at(path, Names("images", "train/labels", "keys.npy")),
        cut_block,
        saves_loading=False,
    )
