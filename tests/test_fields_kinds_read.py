"""Every kind of field through every way to read it, in all formats: each pixel is the one that was stored."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader

from packer.shards.formats import writer
from readers import CenterCrop, RandomCrop, RequestError, SlotDataLoader, Tile, collate_lists, open_dataset, stitch
from readers.contract.classes import ClassTable, SegClass
from readers.contract.fields import Field, classes_field, picture_field
from readers.contract.kinds import BITS, CLASSES, IDS, INDEX, MULTILABEL, ONEHOT, PLANES, VALUES
from readers.contract.manifest import GENERATIONS, MANIFEST, SHARDS, Manifest, Split, generation_path
from readers.contract.parts import Part
from readers.contract.shard_table import RECORD, field_bits, table_header, table_path
from readers.contract.statistics import ValueStatistics, no_rows
from readers.crop import CropAndFlip
from readers.epoch import Run
from readers.windows import centered

Row = dict[str, NDArray[Any]]
Size = tuple[int, int]


def table(count: int) -> ClassTable:
    return ClassTable(tuple(SegClass(f"class{number}") for number in range(count)))


def fields_of(size: Size | None) -> tuple[Field, ...]:
    """Return a field of each kind, form and size of number."""
    shape = size or (None, None)
    return (
        replace(picture_field("image", "<u2", size, tuple(f"band{band}" for band in range(12))), range=(100, 10_100)),
        classes_field("label", INDEX, table(5), size),
        picture_field("height", "<f4", size, ("gray",)),
        picture_field("radar", "<i2", size, ("vv", "vh")),
        classes_field("surface", ONEHOT, table(3), size),
        classes_field("fine", INDEX, table(257), size),
        Field("instance", IDS, INDEX, "<u4", shape),
        Field("track", IDS, INDEX, "<u2", shape),
        Field("depth", VALUES, INDEX, "<f4", shape, fill="nan"),
        Field("slope", VALUES, INDEX, "<i2", shape, fill=-1),
        Field("parts", MULTILABEL, BITS, "|u1", (2, *shape), classes=table(9)),
        Field("tags", MULTILABEL, PLANES, "|u1", (3, *shape), classes=table(3)),
    )


FORMS: Any = {"label": ONEHOT, "surface": INDEX, "fine": ONEHOT, "parts": PLANES, "tags": BITS}
LACKING = ("label", "fine", "instance", "depth", "slope", "parts", "tags")


def made_up(field: Field, size: Size, dice: np.random.Generator) -> NDArray[Any]:
    """Return a row of a field, with numbers from its whole range."""
    classes, shape = len(field.classes or ()), field.row_shape(*size)
    if field.form == ONEHOT:
        return np.array(dice.integers(-1, classes, size) == np.arange(classes)[:, None, None], np.uint8)
    if field.form == PLANES:
        return dice.integers(0, 2, shape).astype(np.uint8)
    if field.form == BITS:
        used = np.full(shape, 255, np.uint8)
        used[-1] = 2 ** (classes % 8) - 1
        return dice.integers(0, 256, shape).astype(np.uint8) & used
    if field.kind == CLASSES:
        index = dice.integers(-1, classes, size)
        return np.where(index < 0, field.fill_number, index).astype(field.dtype)
    if field.dtype[1] == "f":
        numbers = dice.normal(size=shape).astype(field.dtype)
        return (
            np.where(dice.random(shape) < 0.2, np.nan, numbers).astype(field.dtype) if field.kind == VALUES else numbers
        )
    limits = np.iinfo(field.dtype)
    return dice.integers(limits.min, limits.max, shape, endpoint=True).astype(field.dtype)


def stored_shard(fields: Sequence[Field], rows: Sequence[Row], keys: Sequence[str]) -> Row:
    """Return the columns of a shard."""
    arrays: Row = {}
    for field in fields:
        column = [row[field.name] for row in rows]
        arrays[field.name] = np.concatenate([part.reshape(-1) for part in column]) if field.flat else np.stack(column)
        if field.flat:
            arrays[f"{field.name}_end"] = np.cumsum([part.size for part in column]).astype("<u8")
    if fields[0].native:
        arrays["size"] = np.array([row[fields[0].name].shape[-2:] for row in rows], "<u4")
    return {**arrays, "key": np.array([key.encode() for key in keys])}


def write_pack(
    out: Path, storage: str, fields: Sequence[Field], shards: Sequence[Sequence[Row]], keys: Sequence[str]
) -> None:
    """Write a pack of these shards. Rows of later shards may lack fields."""
    for folder in (SHARDS, GENERATIONS):
        (out / folder).mkdir(parents=True)
    records, rows, parts = np.zeros(len(shards), RECORD), 0, dict[tuple[str, ...], list[int]]()
    for number, shard in enumerate(shards):
        there = tuple(field for field in fields if field.name in shard[0])
        names = tuple(field.name for field in there)
        arrays = stored_shard(there, shard, keys[rows : rows + len(shard)])
        writer(storage).write(out / SHARDS / f"all-{str(number) * 32}", arrays, there)
        rows += len(shard)
        records[number] = (rows, 0, field_bits([field.name for field in fields], names), 0, b"%d" % number * 32, b"")
        part = parts.setdefault(names, [0, 0])
        part[:] = [part[0] + len(shard), part[1] + 1]
    known = tuple(replace(field, optional=any(field.name not in names for names in parts)) for field in fields)
    document = table_header(len(shards)) + records.tobytes()
    digest = hashlib.sha256(document).hexdigest()
    table_path(out, digest).write_bytes(document)
    found = tuple(Part(names, *part) for names, part in parts.items())
    split = Split("all", rows, len(shards), 0, found, no_rows(known))
    for path in (out / MANIFEST, generation_path(out, 1)):
        path.write_text(Manifest(1, "", storage, known, (split,), 0, digest).to_text())


def delivered(field: Field, form: str, pixels: NDArray[Any]) -> NDArray[Any]:
    """Return a row in this form, as the format describes the forms."""
    if form == field.form:
        return pixels
    classes = np.arange(len(field.classes or ()))[:, None, None]
    if form == ONEHOT:
        return np.array(pixels == classes, np.uint8)
    if form == INDEX:
        return np.where(pixels.any(0), pixels.argmax(0), 255).astype(np.uint8)
    if form == PLANES:
        return np.stack([pixels[number // 8] >> (number % 8) & 1 for number in classes.ravel()]).astype(np.uint8)
    return np.stack([sum(plane << number for number, plane in enumerate(pixels))]).astype(np.uint8)


def fill_of(field: Field, form: str) -> float:
    """Return the number in padding of a field in this form."""
    if form == field.form:
        return field.fill_number
    return 255 if form == INDEX else 0


def window(pixels: NDArray[Any], top: int, left: int, size: Size, fill: float, flip: bool = False) -> NDArray[Any]:
    """Return a window of a picture that has `fill` around it."""
    far = 64
    around = [(0, 0)] * (pixels.ndim - 2) + [(far, far)] * 2
    padded = np.pad(pixels, around, constant_values=np.array(fill).astype(pixels.dtype))
    part = padded[..., top + far : top + far + size[0], left + far : left + far + size[1]]
    return part[..., ::-1] if flip else part


def same(found: Any, wanted: NDArray[Any]) -> bool:
    array = found.numpy() if isinstance(found, torch.Tensor) else found
    return bool((array.dtype, array.shape, array.tobytes()) == (wanted.dtype, wanted.shape, wanted.tobytes()))


class Written:
    """A pack with every kind of field, and what its rows must be."""

    def __init__(self, out: Path, storage: str, native: bool, other_forms: bool) -> None:
        dice = np.random.default_rng(7)
        self.out, size = out, None if native else (9, 14)
        self.stored = fields_of(size)
        self.forms: Any = FORMS if other_forms else {}
        sizes = [(3 + 2 * row, 19 - row) if native else (9, 14) for row in range(10)]
        rows = [{field.name: made_up(field, size, dice) for field in self.stored} for size in sizes]
        for row in rows[7:]:
            for name in LACKING:
                del row[name]
        write_pack(out, storage, self.stored, [rows[:4], rows[4:7], rows[7:]], [f"key{row}" for row in range(10)])
        self.names = [field.name for field in self.stored]
        self.fills = [fill_of(field, self.form(field)) for field in self.stored]
        self.rows = [self._whole(row, size) for row, size in zip(rows, sizes, strict=True)]
        self.dataset = open_dataset(out, fields=[*self.names, "labelled"], form=self.forms)

    def form(self, field: Field) -> str:
        form: str = self.forms.get(field.name, field.form)
        return form

    def _whole(self, row: Row, size: Size) -> list[NDArray[Any]]:
        """Return a row as it is delivered. A field that is missing has padding everywhere."""
        lacking = {
            field.name: np.full(field.row_shape(*size), field.fill_number, field.dtype)
            for field in self.stored
            if field.name not in row
        }
        return [delivered(field, self.form(field), {**row, **lacking}[field.name]) for field in self.stored]

    def check(self, parts: Any, row: int) -> None:
        assert all(same(part, wanted) for part, wanted in zip(parts, self.rows[row], strict=False))
        assert bool(parts[-1]) == (row < 7)

    def check_windows(self, parts: Any, row: int, top: int, left: int, size: Size, flip: bool = False) -> None:
        for part, pixels, fill, name in zip(parts, self.rows[row], self.fills, self.names, strict=False):
            assert same(part, np.ascontiguousarray(window(pixels, top, left, size, fill, flip))), name


@pytest.fixture(scope="module", params=[(False, False), (False, True), (True, False), (True, True)])
def written(storage: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Written:
    native, other_forms = request.param
    return Written(tmp_path_factory.mktemp("kinds") / "out", storage, native, other_forms)


def test_samples(written: Written) -> None:
    dataset = written.dataset
    assert [field.name for field in dataset.fields] == [*written.names, "labelled"]
    for row, sample in enumerate(dataset):
        written.check(sample, row)
        assert dataset.key(row) == f"key{row}"
    for row, sample in zip((8, 0, 5, 3), dataset.__getitems__([8, 0, 5, 3]), strict=True):
        written.check(sample, row)
    written.check(pickle.loads(pickle.dumps(dataset))[8], 8)  # noqa: S301
    for name, form in written.forms.items():
        (part, *_) = open_dataset(written.out, fields=(name,), form={name: form})[2]
        assert same(part, written.rows[2][written.names.index(name)])


def test_batches(written: Written) -> None:
    """From our loader, from PyTorch's, and from slots; also while another thread reads ahead."""
    dataset, native = written.dataset, written.dataset.fields[0].native
    size = 1 if native else 4
    loaders: list[Any] = [
        dataset.loader(size, output="numpy"),
        dataset.loader(size).to("cpu"),
        DataLoader(dataset, size),
    ]
    if not native:
        loaders.append(SlotDataLoader(dataset, size))
    for loader in loaders:
        rows = [sample for batch in loader for sample in zip(*batch, strict=True)]
        assert len(rows) == 10
        for row, sample in enumerate(rows):
            written.check(sample, row)
    lists = next(iter(DataLoader(dataset, 10, collate_fn=collate_lists)))
    for row, sample in enumerate(zip(*lists, strict=True)):
        written.check(sample, row)
    if native:
        with pytest.raises(RequestError, match="different sizes"):
            next(iter(DataLoader(dataset, 3)))
        with pytest.raises(RequestError, match="needs rows of one size"):
            SlotDataLoader(open_dataset(written.out, fields=("labelled", *written.names)), 3)


@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
@pytest.mark.parametrize("other_forms", [False, True])
def test_worker_processes(other_forms: bool, tmp_path: Path) -> None:
    """Each field has its place in a shared slot."""
    written = Written(tmp_path / "out", "npy", False, other_forms)
    for loader in (SlotDataLoader(written.dataset, 4, num_workers=1), DataLoader(written.dataset, 4, num_workers=1)):
        for row, sample in enumerate(sample for batch in loader for sample in zip(*batch, strict=True)):
            written.check(sample, row)


@pytest.mark.parametrize("size", [(5, 6), (9, 14), (16, 31)])
@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.long(short=lambda case: case["flip"] and case["size"] != (9, 14))
def test_crops_and_flips(written: Written, size: Size, flip: bool) -> None:
    """A window of all fields of a row is the same. Outside of the picture lies the fill of the delivered form."""
    dataset, rows = written.dataset, np.arange(10)
    sizes = np.array([dataset.size(row) for row in range(10)])
    for crop in (RandomCrop(size), CenterCrop(size)):
        cut = CropAndFlip.of(crop, flip)
        assert cut is not None
        windows = cut.windows(rows, [Run(3, 0, 10)], sizes)
        batches = list(dataset.loader(4, crop=crop, flip=flip, seed=3))
        for row, sample in enumerate(sample for batch in batches for sample in zip(*batch, strict=True)):
            top, left = windows.starts[row]
            written.check_windows(sample, row, top, left, size, bool(windows.flips[row]))
    assert flip == any(windows.flips)
    cropped = open_dataset(
        written.out,
        fields=written.names,
        form=written.forms,
        transform=CenterCrop(size),
    )
    for row, sample in enumerate(cropped):
        top, left = centered(sizes[row] - np.array(size)).tolist()
        written.check_windows(sample, row, top, left, size)
    for batch in DataLoader(cropped, 5):
        assert [tuple(part.shape[-2:]) for part in batch] == [size] * len(written.names)


def test_flips_alone(written: Written) -> None:
    if not written.dataset.fields[0].native:
        loader = written.dataset.loader(10, flip=True, seed=3)
        windows = CropAndFlip(None, True).windows(np.arange(10), [Run(3, 0, 10)], np.array([[9, 14]] * 10))
        for row, sample in enumerate(zip(*next(iter(loader)), strict=True)):
            written.check_windows(sample, row, 0, 0, (9, 14), bool(windows.flips[row]))


def test_the_device_scales_and_normalises_the_picture_and_keeps_the_rest(written: Written) -> None:
    """Numbers of 16 bits count from 0 to 1 by the range of the field. Only the field `label` is expanded there."""
    dataset = written.dataset
    mean, deviation = np.linspace(0.1, 0.9, 12), np.linspace(1, 2, 12)
    loader = dataset.loader(1).to("cpu", normalize=(mean.tolist(), deviation.tolist()), dtype=torch.float32)
    for row, batch in enumerate(loader):
        image = (written.rows[row][0].astype(float) - 100) / 10_000
        wanted = (image - mean[:, None, None]) / deviation[:, None, None]
        assert np.allclose(batch[0][0].numpy(), wanted, atol=1e-5)
        for part, pixels in zip(batch[1:-1], written.rows[row][1:], strict=True):
            assert same(part[0], pixels)
    (first, *_) = dataset.loader(1).to("cpu", dtype=torch.float16)
    assert np.allclose(first[0].numpy()[0], (written.rows[0][0].astype(float) - 100) / 10_000, atol=1e-2)
    fine = open_dataset(written.out, fields=("radar", "fine"))
    ((radar, _), *_) = fine.loader(1).to("cpu", dtype=torch.float32, channels_last=True)
    assert np.array_equal(radar[0].numpy(), written.rows[0][3]), "a picture without range keeps its numbers"


def test_tiles_are_stitched(storage: str, tmp_path: Path) -> None:
    """A picture that no tile divides: the last tiles have padding."""
    dice, size, side = np.random.default_rng(1), (23, 30), 9
    fields = fields_of((side, side))
    whole = {field.name: made_up(field, size, dice) for field in fields}
    keys = [Tile("a", (top, left), size).key for top in range(0, 23, 7) for left in range(0, 30, 7)]
    rows = [
        {
            field.name: window(whole[field.name], *Tile.of(key).origin, (side, side), field.fill_number)
            for field in fields
        }
        for key in keys
    ]
    write_pack(tmp_path / "out", storage, fields, [rows[:7], rows[7:]], keys)
    forms: Any
    for forms in ({}, FORMS):
        dataset = open_dataset(tmp_path / "out", fields=[field.name for field in fields], form=forms)
        samples = list(dataset.loader(1, output="numpy"))
        for number, field in enumerate(fields):
            found = stitch((dataset.key(row), sample[number][0]) for row, sample in enumerate(samples))
            assert same(found, delivered(field, forms.get(field.name, field.form), whole[field.name])), field.name


def test_forms_that_a_field_does_not_have_are_refused(written: Written) -> None:
    refused: Any = (
        ({"parts": "onehot"}, 'of the kind multilabel, delivered as "planes" or "bits"'),
        ({"label": "bits"}, 'of the kind classes, delivered as "index" or "onehot"'),
        ({"depth": "planes"}, 'of the kind values, delivered as "index"'),
        ({"image": "index"}, 'of the kind picture, delivered as "bands"'),
        ({"others": "planes"}, "the field 'others' is not read"),
    )
    for form, words in refused:
        with pytest.raises(RequestError, match=words):
            open_dataset(written.out, fields=written.names, form=form)
    with pytest.raises(RequestError, match="state the form of the field 'label' once"):
        open_dataset(written.out, label="index", form={"label": "index"})


def test_statistics_of_any_field(tmp_path: Path) -> None:
    """Mean and deviation of measured values, of those that are valid."""
    fields = fields_of((4, 4))
    rows = [{field.name: made_up(field, (4, 4), np.random.default_rng(row)) for field in fields} for row in range(3)]
    write_pack(tmp_path / "out", "npy", fields, [rows], ["a", "b", "c"])
    slopes = np.concatenate([row["slope"].ravel() for row in rows]).astype(int).tolist()
    manifest = Manifest.load(tmp_path / "out")
    counted = ValueStatistics(len(slopes), 0, (sum(slopes),), (sum(number * number for number in slopes),))
    split = replace(manifest.splits[0], statistics={**manifest.splits[0].statistics, "slope": counted})
    (tmp_path / "out" / MANIFEST).write_text(replace(manifest, splits=(split,)).to_text())
    dataset = open_dataset(tmp_path / "out")
    (mean,), (deviation,) = dataset.mean_and_deviation("slope")
    assert np.allclose((mean, deviation), (np.mean(slopes), np.std(slopes)))
    assert dataset.statistics["slope"] == counted
    assert len(dataset.mean_and_deviation("radar")[0]) == 2
    with pytest.raises(RequestError, match="of the kind ids, which has no mean"):
        dataset.mean_and_deviation("track")
    with pytest.raises(RequestError, match="no field 'tilt'"):
        dataset.mean_and_deviation("tilt")
