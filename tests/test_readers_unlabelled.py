"""`--missing keep`: pictures without a label are rows, too, and readers deliver a label that is ignored everywhere."""

from __future__ import annotations

import copy
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import SMALL_SHARDS, RawFolder, errors_of, good, json_of, make_raw, make_varied_raw, pack, run
from torch.utils.data import DataLoader

from packer.pixels.resize import Geometry
from packer.recipe.cut import parts_of
from packer.recipe.ref_table import RefTable
from packer.recipe.row_ref import RowRef
from readers import RandomCrop, RequestError, SlotDataLoader, open_dataset
from readers.contract.manifest import MANIFEST, SHARDS, Manifest
from readers.contract.parts import Part
from readers.contract.receipt import SUFFIX, Receipt
from readers.contract.shard_table import table_path

pytestmark = pytest.mark.usefixtures("in_process")

KEEP = ("--missing", "keep")
TEMPLATES = ("--image", "{split}/images/{key}.png", "--label", "{split}/masks/{key}.png")
LACKING = [1, 2, 5, 11, 12, 13]
Sample = tuple[str, str]


def unlabelled(raw: RawFolder, split: str, numbers: Sequence[int]) -> set[Sample]:
    """Delete the labels of some samples of a split, and return these."""
    lost = {(split, f"street_{number:03d}") for number in numbers}
    for _, key in lost:
        (raw.path / split / "masks" / f"{key}.png").unlink()
    return lost


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> tuple[RawFolder, set[Sample]]:
    """Two splits with labels for some pictures, and one without any."""
    folder = make_raw(tmp_path_factory.mktemp("some") / "raw", {"train": 16, "val": 3, "test": 4})
    return folder, unlabelled(folder, "train", LACKING) | unlabelled(folder, "test", range(4))


def in_order(raw: RawFolder, lost: set[Sample], split: str) -> list[Sample]:
    """Return the samples of a split as a pack has them: first those with a label."""
    known = [sample for sample in raw.images if sample[0] == split]
    return sorted(known, key=lambda sample: (sample in lost, sample))


def check(out: Path, raw: RawFolder, lost: set[Sample], split: str) -> None:
    """Check every row of a split as index and as planes."""
    index, planes = open_dataset(out, split, label="index"), open_dataset(out, split, label="onehot")
    wanted = in_order(raw, lost, split)
    assert [(split, index.key(row)) for row in range(len(index))] == wanted
    for row, sample in enumerate(wanted):
        label = np.full_like(raw.labels[sample], 255) if sample in lost else raw.labels[sample]
        assert np.array_equal(index[row].image.numpy().transpose(1, 2, 0), raw.images[sample])
        assert np.array_equal(index[row].label.numpy(), label)
        assert np.array_equal(planes[row].label.numpy(), label == np.arange(4)[:, None, None])


@pytest.mark.parametrize("labels", ["onehot", "index"])
def test_pictures_without_a_label_are_rows(
    storage: str, labels: str, raw: tuple[RawFolder, set[Sample]], tmp_path: Path
) -> None:
    folder, lost = raw
    out = pack(folder.path, tmp_path / "out", *KEEP, *SMALL_SHARDS, "--format", storage, "--labels", labels)
    for split in ("train", "val", "test"):
        check(out, folder, lost, split)
    manifest = Manifest.load(out)
    assert [field.optional for field in manifest.fields] == [False, True]
    parts = {split.name: [(part.fields, part.rows) for part in split.parts] for split in manifest.splits}
    both, image = ("image", "label"), ("image",)
    assert parts == {"train": [(both, 10), (image, 6)], "val": [(both, 3)], "test": [(image, 4)]}
    assert run("verify", "--deep", out).exit_code == 0
    assert run("info", out).exit_code == run("stats", out).exit_code == 0
    assert "up to date" in run("diff", folder.path, out).stdout


def test_messages_name_what_a_row_has_and_one_of_a_thing(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 2})
    unlabelled(raw, "train", [1])
    labelled = pack(raw.path, tmp_path / "labelled", "--missing", "skip")
    assert run("diff", raw.path, labelled).stdout == "up to date: its only shard is unchanged\n"
    out = pack(raw.path, tmp_path / "out", *KEEP)
    first, other = (run("show", out, f"street_00{number}").stdout.splitlines()[0] for number in range(2))
    assert first.endswith(", label over image, opacity 0.5")
    assert other.endswith(", image, no label")
    (tmp_path / "packer.toml").write_text("option = 1\n")
    assert "1 problem in the configuration" in run("build", "--config", tmp_path / "packer.toml", raw.path, out).stderr


@pytest.mark.parametrize("options", [("--size", "native"), ("--fit", "tile", "--size", "16x16"), ("--size", "8x8")])
def test_rows_of_any_size_may_lack_a_label(storage: str, options: tuple[str, ...], tmp_path: Path) -> None:
    raw = make_varied_raw(tmp_path / "raw", {"train": [(9 + 7 * row, 30 - 4 * row) for row in range(5)]})
    lost = unlabelled(raw, "train", [0, 3])
    out = pack(raw.path, tmp_path / "out", *KEEP, *options, "--labels", "index", "--format", storage)
    full = open_dataset(out)
    kept, rest = open_dataset(out, labelled=True), open_dataset(out, labelled=False)
    assert (len(kept) + len(rest), len(rest) > 0) == (len(full), True)
    assert all((label == 255).all() for _, label in rest)
    assert not any((label == 255).all() for _, label in kept)
    assert {picture_of(rest.key(row)) for row in range(len(rest))} == {key for _, key in lost}
    if options == ("--size", "native"):
        check(out, raw, lost, "train")
    for _, label in full.loader(3, shuffle=True, crop=(16, 16), flip=True):
        assert label.shape[1:] == (16, 16)
    assert run("verify", "--deep", out).exit_code == 0


def picture_of(key: str) -> str:
    return key.partition("@")[0]


def test_labelled_opens_a_range_of_the_split(raw: tuple[RawFolder, set[Sample]], tmp_path: Path) -> None:
    folder, lost = raw
    out = pack(folder.path, tmp_path / "out", *KEEP, "--labels", "index", *SMALL_SHARDS)
    kept, rest = (open_dataset(out, "train", labelled=labelled) for labelled in (True, False))
    assert [kept.key(row) for row in range(len(kept))] == [key for _, key in in_order(folder, lost, "train")[:10]]
    assert [rest.key(row) for row in range(len(rest))] == sorted(key for split, key in lost if split == "train")
    assert torch.equal(copy.copy(rest)[3].image, rest[3].image)
    seen = torch.cat([label for _, label in kept.loader(4, shuffle=True, seed=3)])
    assert sorted(seen.float().mean((1, 2)).tolist()) == sorted(label.float().mean().item() for _, label in kept)
    assert len(open_dataset(out, "test", labelled=False)) == 4
    assert len(open_dataset(out, "val", labelled=True)) == 3
    both = open_dataset(out, "all", labelled=True)
    assert [both.key(row) for row in range(13)] == [
        key for split in ("train", "val") for _, key in in_order(folder, lost, split)[:10]
    ]
    assert len(open_dataset(out, "test", fields=("image",), transform=RandomCrop((8, 8)))[2][0]) == 3
    for split, labelled, message in (
        ("test", True, "no row has a label"),
        ("val", False, "no row lacks a label"),
    ):
        with pytest.raises(RequestError, match=message):
            open_dataset(out, split, labelled=labelled)


def test_labelled_is_delivered_with_each_row(raw: tuple[RawFolder, set[Sample]], tmp_path: Path) -> None:
    """From samples, loaders of any kind, crops and on the device."""
    out = pack(raw[0].path, tmp_path / "out", *KEEP, "--labels", "index", *SMALL_SHARDS)
    dataset = open_dataset(out, "train", fields=("image", "label", "labelled"))
    known = torch.tensor([True] * 10 + [False] * 6)
    assert [bool(labelled) for _, _, labelled in dataset] == known.tolist()
    cropped = open_dataset(out, "train", fields=("labelled", "label"), transform=RandomCrop((8, 50)))
    assert [(bool(labelled), *label.shape) for labelled, label in cropped] == [(bit, 8, 50) for bit in known.tolist()]
    for batches in (
        dataset.loader(5),
        dataset.loader(5, crop=(8, 8)).to("cpu", dtype=torch.float32, label_dtype=torch.long),
        DataLoader(dataset, 5),
        SlotDataLoader(dataset, 5),
    ):
        parts = [(label, labelled) for _, label, labelled in batches]
        assert torch.equal(torch.cat([labelled for _, labelled in parts]), known)
        assert all(bool((label != 255).any()) == bool(bit) for part in parts for label, bit in zip(*part, strict=True))
    assert dataset.fields[2].name == "labelled"
    with pytest.raises(RequestError, match="expected names"):
        open_dataset(out, "train", fields=("labelled",))


def data(out: Path) -> dict[str, bytes]:
    """Return the shards, receipts and table of the current generation, and its manifest without number and time."""
    manifest = Manifest.load(out)
    current = table_path(out, manifest.table)
    stems = {bytes(row["fingerprint"]).decode() for row in np.load(current)}
    files = {path.name: path.read_bytes() for path in (out / SHARDS).iterdir() if path.name.split("-")[1][:32] in stems}
    facts = {**json.loads((out / MANIFEST).read_text()), "generation": 0, "created": "", "checksum": ""}
    return {**files, "table": current.read_bytes(), MANIFEST: json.dumps(facts).encode()}


def test_a_label_that_arrives_or_goes_gives_the_pack_of_a_fresh_build(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 40})
    away = tmp_path / "away"
    away.mkdir()
    out = tmp_path / "out"
    options = (*TEMPLATES, *KEEP, "--labels", "index", *SMALL_SHARDS)
    for night, numbers in enumerate([[], [3], [3, 7, 20, 21], range(40), [0, 39], [0]]):
        for path in away.iterdir():
            shutil.move(path, raw.path / "train" / "masks" / path.name)
        for number in numbers:
            name = f"street_{number:03d}.png"
            shutil.move(raw.path / "train" / "masks" / name, away / name)
        pack(raw.path, out, *options)
        assert data(out) == data(pack(raw.path, tmp_path / f"fresh{night}", *options))
        check(out, raw, {("train", f"street_{number:03d}") for number in numbers}, "train")
    assert Manifest.load(out).generation == 6


def test_one_label_touches_the_shards_next_to_it(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 160})
    unlabelled(raw, "train", range(1, 160, 2))
    for path in raw.path.rglob("*.png"):
        os.utime(path, (1, 1))  # the states of old files are trusted
    options = (*KEEP, "--labels", "index", *SMALL_SHARDS)
    out = pack(raw.path, tmp_path / "out", *options)
    shards = Manifest.load(out).shards
    mask = raw.path / "train" / "masks" / "street_030.png"
    assert "up to date" in run("diff", raw.path, out).stdout
    mask.unlink()
    plan = json_of("diff", "--json", raw.path, out)
    assert plan["changed"][0] == "train/street_030"
    assert plan["changed_fields"]["train/street_030"] == ["label"]
    assert plan["rebuilt_shards"] <= 5 < plan["reused_shards"] == shards - plan["dropped_shards"]


def test_without_keep_nothing_changes(raw: tuple[RawFolder, set[Sample]], tmp_path: Path) -> None:
    folder, _ = raw
    errors = errors_of(1, "build", "--quiet", folder.path, tmp_path / "out")
    assert "--missing keep packs images without labels" in errors
    out = pack(folder.path, tmp_path / "out", "--missing", "skip", "--labels", "index")
    assert [field.optional for field in Manifest.load(out).fields] == [False, False]
    assert Manifest.load(out).rows == 13


def test_keep_leaves_out_labels_without_an_image_and_labels_that_cannot_be_read(tmp_path: Path) -> None:
    """They are listed: the label is there, so the picture is not one without a label."""
    raw = make_raw(tmp_path / "raw", {"train": 6})
    unlabelled(raw, "train", [0, 1])
    (raw.path / "train" / "images" / "street_002.png").unlink()
    (raw.path / "train" / "masks" / "street_001.gif").write_bytes(b"GIF89a")
    built = json_of("build", "--json", "--quiet", *TEMPLATES, *KEEP, raw.path, tmp_path / "out")
    assert (built["rows"], built["unlabelled"]) == (4, 1)
    assert len(built["missing"]) == 2
    assert "street_001.gif is of a file type that cannot be packed" in built["missing"][0]
    assert "street_002.png: has no image" in built["missing"][1]


def test_lists_and_tables_may_name_pictures_without_a_label(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"all": 5})
    lost = unlabelled(raw, "all", [1])
    for kind in ("images", "masks"):
        (raw.path / "all" / kind).rename(raw.path / kind)
    (raw.path / "lists").mkdir()
    (raw.path / "lists" / "train.txt").write_text("street_000\nstreet_001\nstreet_003\n")
    table = tmp_path / "pairs.csv"
    lines = [f"images/street_{n:03d}.png,{'' if n == 1 else f'masks/street_{n:03d}.png'},train" for n in (0, 1, 3)]
    table.write_text("\n".join(["image,label,split", *lines]))
    for number, options in enumerate((("--lists", "lists/{split}.txt"), ("--pairs", table))):
        out = pack(raw.path, tmp_path / f"out{number}", *KEEP, *options)
        dataset = open_dataset(out, "train")
        assert [Path(dataset.key(row)).name for row in range(3)] == ["street_000", "street_003", "street_001"]
        assert len(open_dataset(out, "train", labelled=False)) == len(lost)
        assert run("build", "--quiet", *options, raw.path, tmp_path / "refused").exit_code == 1


def test_a_bad_picture_without_a_label_is_a_reject(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 4})
    unlabelled(raw, "train", [2, 3])
    for number in (2, 3):
        path = raw.path / "train" / "images" / f"street_{number:03d}.png"
        path.write_bytes(path.read_bytes()[:-40])
    out = tmp_path / "out"
    assert run("build", "--quiet", *KEEP, "--on-bad", "skip", raw.path, out).exit_code == 0
    receipts = [Receipt.load(path) for path in (out / SHARDS).glob(f"*{SUFFIX}")]
    rejects = {reject.key: receipt.fields for receipt in receipts for reject in receipt.rejects}
    assert rejects == {"street_002": ("image",), "street_003": ("image",)}
    assert [part.rows for part in Manifest.load(out).splits[0].parts] == [2, 0]
    assert run("verify", "--deep", out).exit_code == 0
    with pytest.raises(RequestError, match="no row lacks a label"):
        open_dataset(out, labelled=False)


def test_verify_finds_rows_in_the_wrong_part(raw: tuple[RawFolder, set[Sample]], tmp_path: Path) -> None:
    out = pack(raw[0].path, tmp_path / "out", *KEEP)
    manifest = Manifest.load(out)
    train = next(split for split in manifest.splits if split.name == "train")
    first, second = train.parts
    parts = (Part(first.fields, first.rows - 1, first.shards), Part(second.fields, second.rows + 1, second.shards))
    object.__setattr__(train, "parts", parts)
    for path in (out / MANIFEST, out / "generations" / "000001.json"):
        path.write_text(manifest.to_text())
    done = run("verify", out)
    assert done.exit_code == 4
    assert "split 'train': parts: are not the parts of its shards" in done.stdout


def test_a_pack_with_missing_labels_is_converted(raw: tuple[RawFolder, set[Sample]], tmp_path: Path) -> None:
    out = pack(raw[0].path, tmp_path / "out", *KEEP)
    good("build", "--quiet", "--from", out, "--format", "arrow", "--only", "train", tmp_path / "other")
    check(tmp_path / "other", *raw, "train")


def test_the_parts_of_a_split_are_in_order() -> None:
    """Rows that lack nothing come first, then those that lack the last fields."""
    lines = [(f"{number:05}", tuple("x" if number >> bit & 1 else "" for bit in (1, 0))) for number in range(40_000)]
    refs = RefTable.of(
        RowRef("train", key, ("image", *(part and f"{key}{part}" for part in parts))) for key, parts in lines
    )
    presence = refs.presence(0, len(refs))
    assert presence.tolist() == [4 + number % 4 for number in range(40_000)]
    parts = list(parts_of(refs, np.ones((len(refs), 2), np.uint32), range(1, 39_999), Geometry((4, 6))))
    assert [int(next(iter(part.keys))) % 4 for part in parts] == [3, 2, 1, 0]
    assert sum(map(len, parts)) == 39_998
    for part in parts:
        assert list(part.keys) == sorted(part.keys)
        assert len({bool(piece.ref.parts[1]) for piece in part}) == 1
