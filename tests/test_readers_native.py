"""Native rows: pictures of any size come back unchanged, batches of different sizes and damaged shards are refused."""

from __future__ import annotations

import json
import pickle
import random
import re
import shutil
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import jsonschema
import lmdb
import numpy as np
import pyarrow as pa
import pytest
import torch
from conftest import NATIVE, REPO, VARIED, RawFolder, end_workers, json_of, make_varied_raw, pack, run, write_png
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch.utils.data import DataLoader

from packer.shards.formats import writer
from readers import (
    DamagedError,
    RandomCrop,
    RequestError,
    Sample,
    collate_lists,
    open_dataset,
)
from readers.contract.classes import ClassTable, SegClass
from readers.contract.fields import Field, classes_field, picture_field
from readers.contract.manifest import MANIFEST
from readers.formats import opener
from readers.formats.column import ShardFacts
from readers.formats.lmdb import nodes
from readers.formats.shard import Shard
from readers.pack import Pack

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")

Sizes = list[tuple[int, int]]
IMAGES = [picture_field("image", dtype, None) for dtype in ("|u1", "<f2", "<f4")]
TABLES = {count: ClassTable((SegClass("cell"),) * count) for count in (1, 5, 300)}
LABELS = [
    classes_field("label", form, TABLES[count], None)
    for form, count in (("onehot", 1), ("onehot", 5), ("index", 5), ("index", 300))
]
FIELDS = (IMAGES[0], LABELS[3])
HONEST: Sizes = [(5, 9), (12, 7), (3, 4), (30, 20)]


def expected(raw: RawFolder, split: str) -> list[tuple[str, NDArray[Any], NDArray[Any]]]:
    """Return key, image (3,H,W) and index (H,W) of every sample of a split, in key order."""
    return [
        (key, image.transpose(2, 0, 1), raw.labels[known, key])
        for (known, key), image in raw.images.items()
        if known == split
    ]


def made_up(sizes: Sizes, fields: Sequence[Field]) -> tuple[dict[str, NDArray[Any]], list[list[NDArray[Any]]]]:
    """Return the columns of a shard as arrays, and the rows in them."""
    rng = np.random.default_rng(len(sizes))
    rows = [[rng.integers(0, 200, field.row_shape(*size)).astype(field.dtype) for field in fields] for size in sizes]
    arrays: dict[str, NDArray[Any]] = {}
    for number, field in enumerate(fields):
        parts = [row[number].reshape(-1) for row in rows]
        arrays[field.name] = np.concatenate(parts)
        arrays[f"{field.name}_end"] = np.cumsum([*map(len, parts)]).astype("<u8")
    arrays["size"] = np.array(sizes, "<u4")
    arrays["key"] = np.array([f"{'ä' * (row % 3)}{row}".encode() for row in range(len(sizes))], np.bytes_)
    return arrays, rows


SIDE = st.one_of(st.integers(1, 4), st.integers(1, 70))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(st.tuples(SIDE, SIDE), min_size=1, max_size=12),
    image=st.sampled_from(IMAGES),
    label=st.sampled_from(LABELS),
    batch=st.integers(1, 40_000),
)
def test_any_shard_opens_with_the_rows_that_were_written(
    storage: str, tmp_path_factory: pytest.TempPathFactory, sizes: Sizes, image: Field, label: Field, batch: int
) -> None:
    """Rows have any sizes and dtypes, and in Arrow record batches of any size."""
    stem = tmp_path_factory.mktemp("any") / "shard"
    fields = (image, label)
    arrays, rows = made_up(sizes, fields)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("packer.shards.formats.arrow.BATCH_BYTES", batch)
        writer(storage).write(stem, arrays, fields)
    shard = opener(storage)(stem, ShardFacts(len(sizes), fields))
    for number, row in enumerate(rows):
        assert shard.size(number) == sizes[number]
        assert shard.key(number).encode() == arrays["key"][number]
        for field, wanted in zip(fields, row, strict=True):
            got = shard.row(field, number)
            assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
            assert np.array_equal(got, wanted)


def test_every_picture_comes_back_at_its_own_size(native: Path, varied_raw: RawFolder) -> None:
    for split in ("train", "val"):
        onehot, index = open_dataset(native, split, label="onehot"), open_dataset(native, split, label="index")
        wanted = expected(varied_raw, split)
        assert len(onehot) == len(wanted)
        for number, (key, image, classes) in enumerate(wanted):
            assert onehot.key(number) == key
            assert onehot.size(number) == image.shape[1:]
            assert np.array_equal(onehot[number].image.numpy(), image)
            assert np.array_equal(index[number].label.numpy(), classes)
            assert np.array_equal(onehot[number].label.numpy(), np.arange(4)[:, None, None] == classes)
    assert open_dataset(native, "train").manifest.splits[0].shards >= 3


def test_many_samples_at_once_are_the_same_as_one_by_one(native: Path) -> None:
    dataset = open_dataset(native, "all")
    order = random.Random(0).choices(range(len(dataset)), k=40)
    for sample, row in zip(dataset.__getitems__(order), order, strict=True):
        assert isinstance(sample, Sample)
        assert all(torch.equal(ours, theirs) for ours, theirs in zip(sample, dataset[row], strict=True))
    assert [sample.image.shape[-2:] for sample in dataset[-3:]] == VARIED["val"][-3:]
    assert dataset.size(-1) == VARIED["val"][-1]


def test_writing_into_a_sample_never_reaches_the_file(native: Path) -> None:
    dataset = open_dataset(native, "train")
    kept = [part.clone() for part in dataset[3]]
    for part in dataset[3]:
        part.zero_()
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(dataset[3], kept, strict=True))


def test_a_pickle_reads_the_same(native: Path) -> None:
    dataset = open_dataset(native, "val", transform=RandomCrop((4, 4)))
    again = pickle.loads(pickle.dumps(dataset))  # noqa: S301 - our own
    assert again.transform == RandomCrop((4, 4))
    assert [again.size(number) for number in range(len(again))] == VARIED["val"]


@pytest.mark.long(short=lambda case: case["method"] == "fork" or (case["storage"], case["native"]) == ("npy", "index"))
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_deliver_lists(native: Path, varied_raw: RawFolder, method: str) -> None:
    """One spawned worker, because each imports PyTorch again."""
    dataset = open_dataset(native, "train", label="index")
    workers = 2 if method == "fork" else 1
    loader: DataLoader[Any] = DataLoader(
        dataset, batch_size=4, num_workers=workers, collate_fn=collate_lists, multiprocessing_context=method
    )
    got = [sample for images, labels in loader for sample in zip(images, labels, strict=True)]
    for (image, label), (_, pixels, classes) in zip(got, expected(varied_raw, "train"), strict=True):
        assert np.array_equal(image.numpy(), pixels)
        assert np.array_equal(label.numpy(), classes)


@pytest.mark.parametrize("workers", [0, 1])
def test_the_error_for_different_sizes_names_the_ways_out(native: Path, workers: int) -> None:
    dataset = open_dataset(native, "train")
    loader: DataLoader[Any] = DataLoader(dataset, batch_size=6, num_workers=workers)
    batches: Any = iter(loader)
    with pytest.raises(RequestError) as caught:
        next(batches)
    end_workers(batches)
    for part in ("6 samples", "5x9, 12x7, 1x1, 30x20 and 2 more", "RandomCrop((H, W))", "collate_fn=collate_lists"):
        assert part in str(caught.value)


def test_a_batch_of_one_size_is_stacked(native: Path) -> None:
    images, labels = next(iter(DataLoader(open_dataset(native, "val", label="index"), batch_size=3)))
    assert (images.shape, labels.shape) == ((3, 3, 16, 24), (3, 16, 24))
    assert [len(batch.image) for batch in DataLoader(open_dataset(native, "train"), batch_size=1)] == [1] * 11


@pytest.mark.long(every=3)
def test_crops_make_batches_and_a_seed_decides_them(native: Path) -> None:
    dataset = open_dataset(native, "all", label="index", transform=RandomCrop((16, 12)))

    def epoch(seed: int, workers: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(seed)
        torch.manual_seed(seed)
        loader: DataLoader[Any] = DataLoader(dataset, batch_size=5, num_workers=workers, generator=generator)
        batches = list(loader)
        assert all(labels.shape[1:] == (16, 12) for _, labels in batches)
        return torch.cat([images for images, _ in batches])

    for workers in (0, 1):
        assert epoch(1, workers).shape == (16, 3, 16, 12)
        assert torch.equal(epoch(1, workers), epoch(1, workers))
        assert not torch.equal(epoch(1, workers), epoch(2, workers))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_float_images_of_any_size(storage: str, varied_raw: RawFolder, tmp_path: Path, dtype: str) -> None:
    out = pack(varied_raw.path, tmp_path / "out", "--format", storage, "--image-dtype", dtype, *NATIVE)
    for (image, _), (_, pixels, _) in zip(open_dataset(out, "val"), expected(varied_raw, "val"), strict=True):
        assert np.array_equal(image.numpy(), (pixels.astype(np.float32) / 255).astype(dtype))


@pytest.mark.parametrize("labels", ["onehot", "index"])
def test_more_classes_than_fit_into_a_byte(storage: str, tmp_path: Path, labels: str) -> None:
    sizes = [(9, 40), (20, 15)]
    raw = make_varied_raw(tmp_path / "raw", {"train": sizes})
    wide = [np.arange(height * width, dtype=np.uint16).reshape(height, width) % 300 for height, width in sizes]
    for number, numbers in enumerate(wide):
        write_png(raw.path / "train" / "masks" / f"street_{number:03d}.png", numbers)
    out = pack(
        raw.path, tmp_path / "out", "--format", storage, "--labels", labels, "--classes", 300, "--ignore", 299, *NATIVE
    )
    for number, numbers in enumerate(wide):
        sample = open_dataset(out, label="index")[number]
        assert sample.label.dtype == torch.uint16
        assert np.array_equal(sample.label.numpy(), np.where(numbers == 299, 65_535, numbers))
    assert run("verify", "--quiet", out).exit_code == 0


def test_a_bad_picture_does_not_change_the_good_ones(storage: str, tmp_path: Path) -> None:
    """The rows after it move up, and so do their ends."""
    raw = make_varied_raw(tmp_path / "raw", {"train": VARIED["train"]})
    bad = raw.path / "train" / "images" / "street_003.png"
    data = bad.read_bytes()
    bad.write_bytes(
        data[:-40] + bytes([data[-40] ^ 1]) + data[-39:]
    )  # its header is good, so memory is allocated for it
    (raw.path / "train" / "masks" / "street_006.png").write_bytes(b"")
    out = pack(raw.path, tmp_path / "out", "--format", storage, "--on-bad", "skip", "--size", "native")
    dataset = open_dataset(out, label="index")
    wanted = [sample for sample in expected(raw, "train") if sample[0] not in ("street_003", "street_006")]
    for number, (key, image, classes) in enumerate(wanted):
        assert dataset.key(number) == key
        assert np.array_equal(dataset[number].image.numpy(), image)
        assert np.array_equal(dataset[number].label.numpy(), classes)
    assert len(dataset) == len(VARIED["train"]) - 2
    assert run("verify", "--quiet", out).exit_code == 0


def test_info_shows_native_rows(native: Path) -> None:
    printed = run("info", native).stdout
    assert "image  picture  bands   |u1  (3, H, W)" in printed.replace("bands  |", "bands   |")
    assert "the size of each image" in printed
    assert json_of("info", "--json", native)["fields"][0]["shape"] == [3, None, None]


def test_a_plan_has_the_bytes_of_native_rows(varied_raw: RawFolder, tmp_path: Path) -> None:
    plan = json_of("build", "--dry-run", "--json", *NATIVE, varied_raw.path, tmp_path / "out")
    assert plan["bytes"] == 7 * sum(height * width for sizes in VARIED.values() for height, width in sizes)
    assert "(3, H, W)" in run("build", "--dry-run", *NATIVE, varied_raw.path, tmp_path / "out").stdout


def test_the_programs_for_batches_on_the_page_for_users_run(
    native: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").symlink_to(native)
    blocks = re.findall(r"```python\n(.*?)```", (REPO / "docs/guide/loading.md").read_text(), re.DOTALL)
    (program,) = (block for block in blocks if "collate_lists" in block)
    crops, lists = program.strip().split("\n\n")[-2:]
    variables: dict[str, Any] = {}
    exec(program.replace(lists, "") + "\nimages, labels = next(iter(loader))", variables)  # noqa: S102 - our own page
    assert (variables["images"].shape, variables["labels"].shape) == ((11, 3, 512, 512), (11, 512, 512))
    exec(program.replace(crops, "") + "\nimages, labels = next(iter(loader))", variables)  # noqa: S102
    assert [image.shape[-2:] for image in variables["images"]] == VARIED["val"][:4]
    assert [label.shape for label in variables["labels"]] == VARIED["val"][:4]


# --- what others find in our files; test_contract_format_page.py reads them by the programs of the page ---


def test_each_format_names_its_columns_as_on_the_page(storage: str, tmp_path: Path) -> None:
    stem = tmp_path / "shard"
    writer(storage).write(stem, made_up(HONEST, FIELDS)[0], FIELDS)
    columns = ["image", "image_end", "key", "label", "label_end", "size"]
    if storage == "npy":
        assert sorted(path.name for path in tmp_path.iterdir()) == [f"shard.{name}.npy" for name in columns]
        assert [np.load(f"{stem}.{name}.npy").ndim for name in columns] == [1, 1, 1, 1, 1, 2]
    elif storage == "hdf5":
        with h5py.File(f"{stem}.h5", "r") as file:
            assert sorted(file) == columns
            assert all(file[name].chunks is None for name in file)
    elif storage == "arrow":
        kinds = [pa.large_list(pa.uint8()), pa.large_list(pa.uint16()), pa.list_(pa.uint32(), 2), pa.string()]
        wanted = pa.schema(list(zip(("image", "label", "size", "key"), kinds, strict=True)))
        assert pa.ipc.open_file(f"{stem}.arrow").schema == wanted
    else:
        options = {"subdir": False, "readonly": True, "lock": False}
        with lmdb.open(f"{stem}.lmdb", **options) as environment, environment.begin() as txn:
            layout = json.loads(txn.get(b"layout", b""))
        assert {name: part["offset"] for name, part in layout.items()} == {
            "size": 0,
            "length": 8,
            "image": None,
            "label": None,
            "key": None,
        }
        assert [layout[name]["shape"] for name in ("image", "label")] == [[3, None, None], [None, None]]


def test_the_bytes_between_the_parts_of_a_value_are_zero(tmp_path: Path) -> None:
    """Bytes of a row written before must not remain: the same rows are always the same bytes."""
    (path,) = writer("lmdb").write(tmp_path / "shard", made_up(HONEST, FIELDS)[0], FIELDS)
    with (
        lmdb.open(str(path), subdir=False, readonly=True, lock=False) as environment,
        environment.begin() as txn,
    ):
        for row, (height, width) in enumerate(HONEST):
            value, pixels = txn.get(b"%08d" % row, b""), height * width
            label = -(-(64 + 3 * pixels) // 64) * 64
            key = -(-(label + 2 * pixels) // 64) * 64
            assert value[8:24] == (3 * pixels).to_bytes(8, "little") + (2 * pixels).to_bytes(8, "little")
            pads = value[24:64] + value[64 + 3 * pixels : label] + value[label + 2 * pixels : key]
            assert pads == b"\0" * len(pads)


def test_record_batches_hold_as_many_rows_as_fit_and_at_least_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("packer.shards.formats.arrow.BATCH_BYTES", 700)  # the rows have 225, 420, 60 and 3000
    writer("arrow").write(tmp_path / "shard", made_up(HONEST, FIELDS)[0], FIELDS)
    with pa.memory_map(f"{tmp_path}/shard.arrow") as source:
        file = pa.ipc.open_file(source)
        rows = [file.get_batch(number).num_rows for number in range(file.num_record_batches)]
    assert rows == [2, 1, 1]


# --- lies and damage ---


def read_all(shard: Shard) -> list[bytes]:
    rows = range(shard.facts.rows)
    return [
        *(shard.row(field, row).tobytes() for field in FIELDS for row in rows),
        *(map(str.encode, map(shard.key, rows))),
    ]


def opened(storage: str, stem: Path) -> Shard:
    return opener(storage)(stem, ShardFacts(len(HONEST), FIELDS))


@pytest.fixture
def honest(storage: str, tmp_path: Path) -> Path:
    """Return the stem of an undamaged shard."""
    stem = tmp_path / "shard"
    writer(storage).write(stem, made_up(HONEST, FIELDS)[0], FIELDS)
    assert len(read_all(opened(storage, stem))) == 3 * len(HONEST)
    return stem


def lie(storage: str, stem: Path, name: str, numbers: NDArray[Any]) -> None:
    """Overwrite the numbers of a column, with the format's own library or byte by byte."""
    if storage == "npy":
        np.save(f"{stem}.{name}.npy", numbers)
    elif storage == "hdf5":
        with h5py.File(f"{stem}.h5", "r+") as file:
            file[name][:] = numbers
    elif storage == "arrow":
        true = made_up(HONEST, FIELDS)[0][name]
        patch(Path(f"{stem}.arrow"), true.tobytes(), numbers.astype(true.dtype).tobytes())
    else:
        path = Path(f"{stem}.lmdb")
        data = bytearray(path.read_bytes())
        whole = memoryview(bytes(data))
        entries = nodes(path, len(whole), lambda start, size: whole[start : start + size])
        for (_, start, _), size in zip(entries, numbers, strict=False):
            data[start : start + 8] = size.astype("<u4").tobytes()
        path.write_bytes(data)


def patch(path: Path, old: bytes, new: bytes) -> None:
    data = path.read_bytes()
    assert data.count(old) == 1
    assert len(old) == len(new)
    path.write_bytes(data.replace(old, new))


LIES: dict[str, Sizes] = {
    "no height": [(5, 9), (0, 7), (3, 4), (30, 20)],
    "no width": [(5, 9), (12, 0), (3, 4), (30, 20)],
    "one row too large": [(5, 9), (13, 7), (3, 4), (30, 20)],
    "one row too small": [(5, 9), (8, 7), (3, 4), (30, 20)],
    "the last beyond the file": [(5, 9), (12, 7), (3, 4), (3000, 20)],
    "the sum is right, the rows overlap": [(12, 7), (5, 9), (3, 4), (30, 20)],
    "a row of 2^64 pixels": [(2**32 - 1, 2**32 - 1), (12, 7), (3, 4), (30, 20)],
    "a sum that runs over 64 bits": [(2**31, 2**31), (2**31, 2**31), (2**31, 2**31), (2**31, 2**31)],
    "a product that runs over to 0": [(2**31, 2**31 + 1), (12, 7), (3, 4), (30, 20)],
}


@pytest.mark.parametrize("sizes", LIES.values(), ids=LIES)
def test_impossible_sizes_are_refused(honest: Path, storage: str, sizes: Sizes) -> None:
    lie(storage, honest, "size", np.array(sizes, "<u4"))
    with pytest.raises(DamagedError, match="shard"):
        opened(storage, honest)


@pytest.mark.parametrize("size", [(0, 5), (5, 0), (0, 0)])
def test_a_row_without_pixels_is_refused_even_if_all_else_agrees(
    storage: str, tmp_path: Path, size: tuple[int, int]
) -> None:
    stem = tmp_path / "shard"
    writer(storage).write(stem, made_up([*HONEST[:3], size], FIELDS)[0], FIELDS)
    with pytest.raises(DamagedError, match="all from 1 on"):
        opened(storage, stem)


@pytest.mark.parametrize("storage", ["npy", "hdf5"])
def test_sizes_whose_bytes_overflow_to_the_right_sum_are_refused(storage: str, tmp_path: Path) -> None:
    """Four rows of 2^62 pixels are 0 bytes in 64 bits."""
    arrays = made_up([(1, 1)], FIELDS)[0]
    sizes = [(1, 1), *[(2**31, 2**31)] * 4]
    for field in FIELDS:
        ends = [field.numbers * (2**62 * row + 1) for row in range(5)]
        arrays[f"{field.name}_end"] = np.array([end % 2**64 for end in ends], "<u8")
    arrays |= {"size": np.array(sizes, "<u4"), "key": np.array([b"a"] * 5)}
    writer(storage).write(tmp_path / "shard", arrays, FIELDS)
    with pytest.raises(DamagedError, match="more than any file holds"):
        opener(storage)(tmp_path / "shard", ShardFacts(5, FIELDS))


@pytest.mark.parametrize("rows", [38, 1000, 10**6, 2**40])
def test_more_rows_than_the_buffers_of_a_batch_hold_are_refused(tmp_path: Path, rows: int) -> None:
    """All numbers of rows in the file are changed, also those of the arrays, but not the buffers."""
    stem, honest = tmp_path / "shard", 37
    writer("arrow").write(stem, made_up([(1, 1)] * honest, FIELDS)[0], FIELDS)
    path = Path(f"{stem}.arrow")
    data = path.read_bytes()
    assert data.count(struct.pack("<q", honest)) >= 3
    path.write_bytes(data.replace(struct.pack("<q", honest), struct.pack("<q", rows)))
    with pytest.raises(DamagedError, match="cannot be opened"):
        opener("arrow")(stem, ShardFacts(rows, FIELDS))


def test_a_batch_without_rows_is_refused(tmp_path: Path) -> None:
    writer("arrow").write(tmp_path / "whole", made_up(HONEST, FIELDS)[0], FIELDS)
    batch = pa.ipc.open_file(f"{tmp_path}/whole.arrow").get_batch(0)
    with pa.ipc.new_file(f"{tmp_path}/shard.arrow", batch.schema) as file:
        file.write_batch(batch.slice(0, 0))
        file.write_batch(batch)
    with pytest.raises(DamagedError, match="a record batch has 0 rows"):
        opened("arrow", tmp_path / "shard")


@pytest.mark.parametrize("field", ["image", "label"])
@pytest.mark.parametrize("change", [1, -1, 10**6, 2**63, 2**64 - 1], ids=str)
@pytest.mark.parametrize("storage", ["npy", "hdf5"])
def test_ends_that_do_not_follow_from_the_sizes_are_refused(
    honest: Path, storage: str, field: str, change: int
) -> None:
    ends = made_up(HONEST, FIELDS)[0][f"{field}_end"]
    for row in range(len(HONEST)):
        wrong = [int(end) for end in ends]
        wrong[row] = (wrong[row] + change) % 2**64
        lie(storage, honest, f"{field}_end", np.array(wrong, "<u8"))
        with pytest.raises(DamagedError, match="do not follow from the sizes"):
            opened(storage, honest)


@pytest.mark.parametrize("storage", ["arrow"])
@pytest.mark.parametrize("wrong", [[0, 135, 380, 423, 2223], [0, 135, 135, 423, 2223], [0, 500, 387, 423, 2223]])
@pytest.mark.parametrize("last", [2223, 2**40, -1])
def test_offsets_of_lists_that_do_not_follow_from_the_sizes_are_refused(
    honest: Path, storage: str, wrong: list[int], last: int
) -> None:
    true = np.array([0, 135, 387, 423, 2223], "<i8")
    patch(Path(f"{honest}.arrow"), true.tobytes(), np.array([*wrong[:-1], last], "<i8").tobytes())
    with pytest.raises(DamagedError, match="shard"):
        opened(storage, honest)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"offset": 8', b'"offset": 0'),
        (b'"length"', b'"lengtg"'),
        (b'"label": {"offset": null', b'"label": {"offset": 2048'),
        (b"[3, null, null]", b"[4, null, null]"),
        (b"[3, null, null]", b"[3, null, 1234]"),
        (b'"dtype": "<u2"', b'"dtype": "<u8"'),
        (b'"size"', b'"sizf"'),
        (b'"key"', b'"kez"'),
        (b'"offset": 0, "dtype": "<u4"', b'"offset": 0, "dtype": "<f4"'),
    ],
)
@pytest.mark.parametrize("storage", ["lmdb"])
def test_another_layout_is_refused(honest: Path, storage: str, old: bytes, new: bytes) -> None:
    patch(Path(f"{honest}.lmdb"), old, new)
    with pytest.raises(DamagedError, match="shard"):
        opened(storage, honest)


def test_a_cut_file_is_refused_before_it_is_read(honest: Path, storage: str) -> None:
    for path in honest.parent.glob("shard*"):
        whole = path.read_bytes()
        for left in (0, 1, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:left])
            if storage == "lmdb" and left == len(whole) - 1:
                continue  # the last byte belongs to no row
            with pytest.raises(DamagedError, match="shard"):
                read_all(opened(storage, honest))
        path.write_bytes(whole)


def test_columns_of_another_length_or_kind_are_refused(tmp_path: Path) -> None:
    """The files could come from another shard: each is complete."""
    arrays = made_up(HONEST, FIELDS)[0]
    for name, wrong in {
        "size": arrays["size"][:-1],
        "image_end": arrays["image_end"].astype("<u4"),
        "image": arrays["image"].astype("<f4"),
        "label": arrays["label"][:-1],
        "label_end": arrays["label_end"][:-1],
    }.items():
        for storage in ("npy", "hdf5"):
            stem = tmp_path / f"{name}-{storage}" / "shard"
            stem.parent.mkdir()
            writer(storage).write(stem, {**arrays, name: wrong}, FIELDS)
            with pytest.raises(DamagedError, match="shard"):
                opened(storage, stem)


def test_any_damage_is_harmless_or_raises_our_error(honest: Path, storage: str) -> None:
    rng = random.Random(2)
    paths = sorted(honest.parent.glob("shard*"))
    refused = 0
    for _ in range(300):
        path = rng.choice(paths)
        whole = path.read_bytes()
        data = bytearray(whole)
        for _ in range(rng.choice([1, 4])):
            data[rng.randrange(rng.choice([len(data), min(512, len(data))]))] = rng.choice([0, 255, rng.randrange(256)])
        path.write_bytes(data)
        try:
            read_all(opened(storage, honest))
        except DamagedError:
            refused += 1
        path.write_bytes(whole)
    assert refused > 0


def test_verify_names_the_damaged_sample(native: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(native, tmp_path / "copy"))
    assert run("verify", "--quiet", copy).exit_code == 0
    pack_ = Pack.open(copy)
    shard, row = pack_.table.locate(5)
    for name in ("image", "label"):
        column = pack_.shard(shard)._columns[name]
        data = bytearray(column.path.read_bytes())
        data[int(column.offsets(np.array([row]))[0]) + 7] ^= 1
        whole = column.path.read_bytes()
        column.path.write_bytes(data)
        result = run("verify", "--quiet", copy)
        assert result.exit_code == 4
        assert f"the field {name!r} of the row 'street_005' is damaged" in result.stdout
        assert result.stdout.count("is damaged") == 1
        column.path.write_bytes(whole)


def test_verify_finds_a_flipped_bit_in_any_file(native: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(native, tmp_path / "copy"))
    rng = random.Random(0)
    for path in sorted(copy.glob("shards/train-*")):
        whole = path.read_bytes()
        data = bytearray(whole)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        result = run("verify", "--quiet", copy)
        assert result.exit_code == 4, path
        assert path.name.split(".")[0] in result.output
        path.write_bytes(whole)


# --- the manifest ---


def test_the_schema_allows_native_rows_and_nothing_between(native: Path) -> None:
    schema = json.loads((REPO / "docs" / "manifest.schema.json").read_text())
    document = json.loads((native / MANIFEST).read_text())
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid(document)
    for shape in ([None, None, None], [3, None, 7], [3, 7, None], [None, 7, 7], [None], [3, 0, 0]):
        document["fields"][0]["shape"] = shape
        assert not validator.is_valid(document)
