"""`fields=`: the image, the label or both, in any order, from all of data set, loaders, crops and device."""

from __future__ import annotations

import json
import pickle
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import make_varied_raw, pack, run
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from readers import (
    CenterCrop,
    DamagedError,
    RandomCrop,
    RequestError,
    Sample,
    SegDataset,
    SlotDataLoader,
    collate_lists,
    open_dataset,
    to_device,
)
from readers.collate import PlainSample

BOTH = "image", "label"
OTHERS = [("image",), ("label",), ("label", "image")]
Parts = Sequence[torch.Tensor]

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")


def chosen(parts: Parts, fields: Sequence[str]) -> list[torch.Tensor]:
    """Return the parts of an (image, label) sample or batch that are these fields, in their order."""
    return [parts[BOTH.index(name)] for name in fields]


def same(ours: Any, theirs: Parts) -> bool:
    return len(ours) == len(theirs) and all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def check(batches: Any, wanted: Any, fields: Sequence[str]) -> None:
    """Check that the batches are those of a data set with both fields."""
    count = 0
    for batch, both in zip(batches, wanted, strict=True):
        assert same(batch, chosen(both, fields))
        count += 1
    assert count


@pytest.mark.parametrize("form", ["onehot", "index"])
@pytest.mark.parametrize("fields", OTHERS)
def test_samples_have_the_fields_in_this_order(packed: Path, fields: tuple[str, ...], form: Any) -> None:
    label = form if "label" in fields else None
    ours, both = open_dataset(packed, "train", fields=fields, label=label), open_dataset(packed, "train", label=form)
    assert len(ours) == len(both)
    for sample, wanted in zip(ours, both, strict=True):
        assert type(sample) is PlainSample
        assert same(sample, chosen(wanted, fields))
    assert all(same(ours[row], chosen(both[row], fields)) for row in (-1, 5))
    for sample, wanted in zip(ours.__getitems__([3, 0]), both.__getitems__([3, 0]), strict=True):
        assert same(sample, chosen(wanted, fields))
    assert tuple(field.name for field in ours.fields) == fields
    assert ours.label == label
    for field, part in zip(ours.fields, ours[0], strict=True):
        assert (field.shape, np.dtype(field.dtype)) == (tuple(part.shape), part.numpy().dtype)


def test_image_and_label_in_this_order_are_a_sample_with_names(packed: Path) -> None:
    for fields in (None, BOTH, list(BOTH)):
        dataset = open_dataset(packed, "train", fields=fields)
        assert isinstance(dataset[0], Sample)
        assert isinstance(next(iter(DataLoader(dataset, 4))), Sample)
    both, one = repr(open_dataset(packed, "train")), repr(open_dataset(packed, "train", fields=["label"]))
    assert ("image: picture" in both, "image: picture" in one) == (True, False)
    assert "fields   label: classes onehot uint8" in one


@pytest.mark.parametrize("fields", OTHERS)
def test_loaders_deliver_the_fields_in_this_order(packed_index: Path, fields: tuple[str, ...]) -> None:
    ours, both = open_dataset(packed_index, "train", fields=fields), open_dataset(packed_index, "train")
    options: dict[str, Any] = {"shuffle": True, "seed": 7}
    check(ours.loader(4, **options), both.loader(4, **options), fields)
    for window in ((9, 50), CenterCrop((30, 12), pad=3)):
        cut: dict[str, Any] = {**options, "crop": window, "flip": True}
        check(ours.loader(4, **cut), both.loader(4, **cut), fields)
    arrays = next(iter(ours.loader(4, output="numpy")))
    assert [type(array) for array in arrays] == [np.ndarray] * len(fields)
    check(DataLoader(ours, 5), DataLoader(both, 5), fields)
    check(SlotDataLoader(ours, 5), DataLoader(both, 5), fields)


@pytest.mark.parametrize("fields", OTHERS)
def test_worker_processes_send_the_fields(packed_index: Path, fields: tuple[str, ...]) -> None:
    ours, both = open_dataset(packed_index, "val", fields=fields), open_dataset(packed_index, "val")
    check(SlotDataLoader(ours, 4, num_workers=1), DataLoader(both, 4), fields)
    check(DataLoader(ours, 4, num_workers=1), DataLoader(both, 4), fields)


def test_one_field_is_read_in_either_form_by_the_loader(packed: Path) -> None:
    ours, both = open_dataset(packed, "train", fields=("label",)), open_dataset(packed, "train")
    for form in ("onehot", "index"):
        check(ours.loader(4, labels=form), both.loader(4, labels=form), ("label",))


@pytest.mark.parametrize("fields", OTHERS)
def test_batches_of_a_data_loader_are_not_copied_again(packed: Path, fields: tuple[str, ...]) -> None:
    samples = open_dataset(packed, "train", fields=fields).__getitems__([4, 1, 2])
    batch = torch.utils.data.default_collate(samples)  # type: ignore[arg-type]
    assert type(batch) is PlainSample
    assert [part.data_ptr() for part in batch] == [part.data_ptr() for part in samples[0]]


@pytest.mark.parametrize("fields", OTHERS)
def test_pictures_of_their_own_sizes(native: Path, fields: tuple[str, ...]) -> None:
    ours, both = open_dataset(native, "train", fields=fields), open_dataset(native, "train")
    assert all(same(sample, chosen(wanted, fields)) for sample, wanted in zip(ours, both, strict=True))
    assert [ours.size(row) for row in range(len(ours))] == [both.size(row) for row in range(len(both))]
    options: dict[str, Any] = {"shuffle": True, "crop": CenterCrop((11, 11), pad=5), "flip": True}
    check(ours.loader(3, **options), both.loader(3, **options), fields)
    with pytest.raises(RequestError, match="different sizes"):
        next(iter(DataLoader(ours, 4)))
    (batch,) = DataLoader(ours, len(ours), collate_fn=collate_lists)
    assert [len(part) for part in batch] == [len(ours)] * len(fields)


@pytest.mark.parametrize("form", ["onehot", "index"])
@pytest.mark.parametrize("fields", OTHERS)
def test_a_crop_pads_each_field_with_its_own_number(native: Path, fields: tuple[str, ...], form: Any) -> None:
    label = form if "label" in fields else None
    crop = CenterCrop((70, 45), pad=9)
    ours = open_dataset(native, "train", fields=fields, label=label, transform=crop)
    both = open_dataset(native, "train", label=form, transform=crop)
    assert all(same(sample, chosen(wanted, fields)) for sample, wanted in zip(ours, both, strict=True))


def test_a_transform_gets_the_fields_in_this_order(packed: Path) -> None:
    def swapped(label: torch.Tensor, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return image, label

    ours, both = (
        open_dataset(packed, "train", fields=("label", "image"), transform=swapped),
        open_dataset(packed, "train"),
    )
    assert same(ours[3], both[3])
    assert same(ours.__getitems__([3])[0], both[3])
    alone = open_dataset(packed, "train", fields=("label",), transform=lambda label: label.sum())
    assert int(alone[3]) == int(both[3].label.sum())
    assert open_dataset(packed, "train", fields=("image",), transform=RandomCrop((4, 5)))[0][0].shape == (3, 4, 5)


@pytest.mark.parametrize("fields", OTHERS)
def test_batches_on_a_device(packed_index: Path, fields: tuple[str, ...]) -> None:
    ours, both = open_dataset(packed_index, "train", fields=fields), open_dataset(packed_index, "train")
    images: dict[str, Any] = {"dtype": torch.float16, "normalize": True, "channels_last": True}
    options = (images if "image" in fields else {}) | ({"label_dtype": torch.long} if "label" in fields else {})
    labels: Any = "onehot" if "label" in fields else None
    wanted = both.loader(4, shuffle=True, labels="onehot").to("cpu", **images, label_dtype=torch.long)
    check(ours.loader(4, shuffle=True, labels=labels).to("cpu", **options), wanted, fields)
    check(to_device(DataLoader(ours, 4), "cpu", fields=fields), DataLoader(both, 4), fields)


def test_augmentation_gets_the_fields_in_this_order(packed_index: Path) -> None:
    def turned(labels: torch.Tensor, images: torch.Tensor) -> list[torch.Tensor]:
        assert images.dtype == torch.float32
        return [labels.flip(-1), images.flip(-1)]

    both = open_dataset(packed_index, "val")
    wanted = [(images.flip(-1) / 255, labels.flip(-1)) for images, labels in both.loader(4)]
    ours = open_dataset(packed_index, "val", fields=("label", "image"))
    check(ours.loader(4).to("cpu", augment=turned), wanted, ("label", "image"))
    alone = open_dataset(packed_index, "val", fields=("image",))
    check(alone.loader(4).to("cpu", augment=lambda images: images.flip(-1)), wanted, ("image",))
    with pytest.raises(RequestError, match=r"augment returned 1 parts; expected one for each of \('label', 'image'\)"):
        next(iter(ours.loader(4).to("cpu", augment=lambda labels, images: images)))


def test_options_for_a_field_that_is_not_read_are_refused(packed: Path) -> None:
    images, labels = (open_dataset(packed, "train", fields=(name,)) for name in BOTH)
    for options in ({"dtype": torch.float16}, {"normalize": True}, {"channels_last": True}):
        with pytest.raises(RequestError, match=rf"{next(iter(options))}= is for the field 'image'.*\('label',\)"):
            labels.loader(2).to("cpu", **options)
    with pytest.raises(RequestError, match=r"label_dtype= is for the field 'label'.*\('image',\)"):
        images.loader(2).to("cpu", label_dtype=torch.long)
    with pytest.raises(RequestError, match=r"'label' as 'index', but the field 'label' is not read: .*\('image',\)"):
        images.loader(2, labels="index")
    with pytest.raises(RequestError, match="'label' as 'index'"):
        open_dataset(packed, "train", fields=("image",), label="index")
    with pytest.raises(RequestError, match="expected a tuple or list of 'label'"):
        next(iter(to_device([torch.zeros(1)], "cpu", fields=("label",))))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (("image", "depth"), r"there is no field 'depth': fields= some of 'image', 'label'"),
        (("image", "image"), r"fields=\('image', 'image'\): expected names, each once"),
        ((), r"fields=\(\): expected names"),
        ("label", r"fields='label': expected names, each once, such as fields=\('label',\)"),
    ],
)
def test_other_fields_are_refused_with_those_that_exist(packed: Path, fields: Any, words: str) -> None:
    with pytest.raises(RequestError, match=words):
        open_dataset(packed, "train", fields=fields)
    with pytest.raises(RequestError, match=words):
        type(open_dataset(packed, "train"))(packed, "train", fields=fields)


def test_a_pickle_has_the_same_fields(packed: Path) -> None:
    for fields in (*OTHERS, BOTH, None):
        dataset = open_dataset(packed, "val", fields=fields)
        again: SegDataset = pickle.loads(pickle.dumps(dataset))  # noqa: S301 - our own
        assert again.fields == dataset.fields
        assert same(again[1], dataset[1])


def test_a_staged_copy_is_read_in_the_same_way(packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEGPACK_STAGED", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert run("stage", "--quiet", packed, tmp_path).exit_code == 0
    for fields in OTHERS:
        copy, plain = (open_dataset(packed, "val", fields=fields, staged=staged) for staged in (True, False))
        assert copy.root != plain.root
        again: SegDataset = pickle.loads(pickle.dumps(copy))  # noqa: S301 - our own
        assert again.root == copy.root
        assert all(same(ours, theirs) for ours, theirs in zip(again.loader(4), plain.loader(4), strict=True))
        assert same(again[2], plain[2])


def test_the_order_and_the_state_are_those_of_both_fields(packed_index: Path) -> None:
    """The state of a loader of images goes on with a loader of labels, on other ranks, too."""
    both, labels = open_dataset(packed_index, "train"), open_dataset(packed_index, "train", fields=("label",))

    def rest(dataset: SegDataset, rank: int) -> Iterator[Any]:
        loader = dataset.loader(3, shuffle=True, rank=rank, world_size=2)
        loader.load_state_dict(state)
        return iter(loader)

    begun = open_dataset(packed_index, "train", fields=("image",)).loader(4, shuffle=True, seed=3)
    next(iter(begun))
    state = begun.state_dict()
    for rank in range(2):
        check(rest(labels, rank), rest(both, rank), ("label",))
    sampler: DistributedSampler[Any] = DistributedSampler(labels, num_replicas=2, rank=1, seed=5)
    check(DataLoader(labels, 4, sampler=sampler), DataLoader(both, 4, sampler=sampler), ("label",))


GUARDED = """
import ctypes, json, os, sys
from readers import CenterCrop, open_dataset
from readers.contract.fields import LABEL

libc = ctypes.CDLL(None, use_errno=True)
open_dataset  # imports PyTorch, once for all packs

def forbid(data, start, stop):
    base = data.__array_interface__["data"][0]
    first, last = -(-(base + start) // 4096) * 4096, (base + stop) // 4096 * 4096
    assert first < last and libc.mprotect(ctypes.c_void_p(first), ctypes.c_size_t(last - first), 0) == 0

def read(out, field):
    whole, dataset = open_dataset(out), open_dataset(out, fields=[field])
    label = whole.manifest.field(LABEL)
    for number in range(len(dataset._pack.table)):
        shard, mine = whole._pack.shard(number), dataset._pack.shard(number)
        path = shard._columns[LABEL].path
        for start, stop in shard._spans(shard._columns[label.name], range(shard.facts.rows)):
            forbid(mine._map(path), start, stop)  # every whole page of every label
    rows = [dataset[row] for row in range(len(dataset))]
    rows += [batch for batch in dataset.loader(1, shuffle=True, drop_behind=True)]
    rows += [batch for batch in dataset.loader(2, crop=CenterCrop((40, 200)), flip=True)]
    print(field, len(rows), dataset.size(1), dataset.key(1), flush=True)

for line in sys.stdin:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(writing, 1)
        read(line.strip(), "image")
        read(line.strip(), "label")
        os._exit(0)
    os.close(writing)
    with open(reading) as pipe:
        text = pipe.read()
    print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text]), flush=True)
"""
"""For each pack a child reads images, and then labels, while the pages of labels cannot be read. A process that touches
one gets SIGSEGV."""


@pytest.fixture(scope="module")
def guarded() -> Iterator[subprocess.Popen[str]]:
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
    with subprocess.Popen([sys.executable, "-c", GUARDED], text=True, **pipes) as process:
        yield process
        process.stdin.close()  # type: ignore[union-attr]


@pytest.fixture(scope="module", params=["512x128", "native"])
def large(storage: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A pack in which every label has whole pages of its own."""
    folder = tmp_path_factory.mktemp("large")
    raw = make_varied_raw(folder / "raw", {"train": [(64, 200), (96, 130), (120, 120)]})
    return pack(raw.path, folder / "out", "--format", storage, "--size", request.param)


def test_images_are_read_without_touching_a_byte_of_the_labels(
    large: Path, storage: str, guarded: subprocess.Popen[str], tmp_path: Path
) -> None:
    if storage == "npy":
        out = shutil.copytree(large, tmp_path / "out")
        wanted = [sample[0].clone() for sample in open_dataset(out)]
        files = [*(out / "shards").glob("*.label*.npy")]
        assert files
        for path in files:
            path.unlink()
        images = open_dataset(out, fields=("image",), verify="digest")
        assert all(same(sample, [image]) for sample, image in zip(images, wanted, strict=True))
        check(images.loader(1), ([image[None], None] for image in wanted), ("image",))
        assert (images.size(1), images.key(1)) == (tuple(wanted[1].shape[-2:]), "street_001")
        for fields in (None, ("label",)):
            with pytest.raises(DamagedError, match=r"label.*npy: is missing"):
                open_dataset(out, fields=fields)[0]
        return
    assert guarded.stdin is not None
    assert guarded.stdout is not None
    print(large, file=guarded.stdin, flush=True)
    code, text = json.loads(guarded.stdout.readline())
    assert code == -signal.SIGSEGV, text
    (read,) = text.splitlines()
    assert (read.startswith("image "), read.endswith("street_001")) == (True, True)


def test_checksums_are_those_of_the_fields_that_are_read(large: Path, storage: str, tmp_path: Path) -> None:
    """In a format with one file for each column, damage in another column does not matter."""
    out = shutil.copytree(large, tmp_path / "out")
    for path in (out / "shards").glob("*.label.npy" if storage == "npy" else "train-*[!n]"):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    with pytest.raises(DamagedError, match="BLAKE3"):
        open_dataset(out, fields=("label",), verify="digest")[0]
    images = open_dataset(out, fields=("image",), verify="digest")
    if storage == "npy":
        assert same(images[0], open_dataset(large, fields=("image",))[0])
    else:
        with pytest.raises(DamagedError, match="BLAKE3"):
            images[0]
