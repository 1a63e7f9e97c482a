"""RecordIO files as a source: records of one part and of many, ids, indexes, and files that are not believed."""

from __future__ import annotations

import struct
from io import BytesIO
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
from conftest import good, run
from hypothesis import given
from hypothesis import strategies as st
from stored_scenes import png, rec_picture, rec_record, scenes_of, write_recordio

from packer import build_pack
from packer.errors import BadPair, InputError, UsageError
from packer.sources.archives.recordio import RecordIoSource
from packer.sources.archives.recordio_records import MAGIC, picture, records
from packer.sources.container import Names
from readers import open_dataset
from readers.contract.manifest import Manifest

pytestmark = pytest.mark.usefixtures("in_process")

SCENES = scenes_of({f"k{number}": number for number in range(5)})
PICTURES = [(png(image), png(label)) for image, label in SCENES.values()]
IMAGE, LABEL = PICTURES[0]
IDS = (3, 1 << 64 | 7, 0, 12345678901, 9)


def source_of(path: Path, *names: str | None) -> RecordIoSource:
    return RecordIoSource.at(path, Names(*names))


def written(folder: Path, **files: bytes) -> Path:
    for name, data in files.items():
        path = folder / f"{name.replace('__', '/')}.rec"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


@given(st.lists(st.sampled_from([MAGIC, MAGIC[:2], b"abcd", b"e", bytes(4), b""]), max_size=12), st.integers(0, 3))
def test_pictures_with_magic_numbers_come_back(pieces: list[bytes], labels: int) -> None:
    """In parts, of which some are empty: at multiples of four bytes, elsewhere, in ids and in labels."""
    wanted = [b"".join([b"x", *pieces, b"y"][part:]) for part in (0, 1)]
    numbers = (struct.unpack("<I", MAGIC)[0], 7)
    label = struct.unpack("<f", MAGIC)[0]
    data = b"".join(rec_picture(*each, *[label] * labels) for each in zip(numbers, wanted, strict=True))
    file = BytesIO(data)
    found = list(records(file, len(data)))
    assert [record.number for record in found] == list(numbers)
    assert [picture(data[start : start + size], start) for start, size, _ in found] == wanted


def test_ids_join_images_and_masks(tmp_path: Path) -> None:
    images = b"".join(rec_picture(number, image) for number, (image, _) in zip(IDS, PICTURES, strict=True))
    masks = [rec_picture(number, label, 5.0, 6.0) for number, (_, label) in zip(IDS, PICTURES, strict=True)]
    source = source_of(written(tmp_path, images=images, masks=b"".join(masks[::-1])))
    refs = list(source.rows())
    assert [ref.key for ref in refs] == ["00000003", "18446744073709551623", "00000000", "12345678901", "00000009"]
    assert [source.load(ref).data for ref in refs] == PICTURES
    assert not source.missing + source.problems


@pytest.mark.parametrize(
    ("image", "label", "names", "split", "key"),
    [
        ("images", "masks", (), "all", "00000007"),
        ("train_images", "train_masks", (), "train", "00000007"),
        ("train", "train_label", (), "train", "00000007"),
        ("img-val-0", "seg-val-0", (), "val", "val-0/00000007"),
        ("test/rgb", "test/gt", (), "test", "00000007"),
        ("cells.part1.images", "cells.part1.labels", (), "all", "cells.part1/00000007"),
        ("a", "b", ("a.rec", "b"), "all", "00000007"),
        ("fold1/a", "fold1/b", ("{split}/a.rec", "{split}/b.rec"), "fold1", "00000007"),
    ],
)
def test_files_belong_together_by_their_names(
    tmp_path: Path, image: str, label: str, names: tuple[str, ...], split: str, key: str
) -> None:
    files = {image: rec_picture(7, IMAGE), label: rec_picture(7, LABEL)}
    if names:
        files["other/data"] = rec_picture(8, IMAGE)
    source = source_of(written(tmp_path, **files), *names)
    (ref,) = source.rows()
    assert (ref.split, ref.key, source.load(ref).data) == (split, key, (IMAGE, LABEL))


def test_files_without_a_partner_are_refused(tmp_path: Path) -> None:
    """Also what im2rec writes: a picture and the number of its class."""
    path = written(tmp_path, train=rec_picture(7, IMAGE, 2.0)) / "train.rec"
    for place in (path, tmp_path):
        with pytest.raises(InputError, match=r"Labels that are numbers are not masks; it has train\.rec"):
            source_of(place)
    written(tmp_path, train_image=rec_picture(7, IMAGE), train_mask=rec_picture(7, LABEL))
    with pytest.raises(InputError, match=r"train.rec and train_image.rec: both may be the images; name them"):
        source_of(tmp_path)
    assert len(list(source_of(tmp_path, "train.rec", "train_mask.rec").rows())) == 1
    with pytest.raises(UsageError, match="--image and --label go together"):
        source_of(tmp_path, "train.rec")
    with pytest.raises(UsageError, match="have keys of their own"):
        source_of(tmp_path, None, None, "id")


def test_records_without_a_partner_are_named_or_kept(tmp_path: Path) -> None:
    images = b"".join(rec_picture(number, image) for number, (image, _) in enumerate(PICTURES))
    masks = b"".join(rec_picture(number + 1, label) for number, (_, label) in enumerate(PICTURES))
    written(tmp_path / "recs", train_images=images, train_masks=masks, test_images=rec_picture(1, IMAGE))
    with pytest.raises(InputError) as refused:
        build_pack(tmp_path / "recs", tmp_path / "out", classes=4)
    assert "3 samples lack a field; --missing skip skips them" in str(refused.value)
    assert "has no image" in str(refused.value)
    assert build_pack(tmp_path / "recs", tmp_path / "out", classes=4, missing="skip").rows == 4
    written(tmp_path / "recs", train_masks=rec_picture(1, LABEL))
    assert build_pack(tmp_path / "recs", tmp_path / "kept", classes=4, missing="keep").rows == 6
    assert len(open_dataset(tmp_path / "kept", "test", labelled=False)) == 1


def test_an_index_has_the_keys(tmp_path: Path) -> None:
    parts = [rec_picture(0, image) for image, _ in PICTURES]
    places = [*accumulate(map(len, parts), initial=0)][:-1]
    written(tmp_path, images=b"".join(parts), masks=b"".join(rec_picture(n, LABEL) for n in range(5)))
    source = source_of(tmp_path)
    assert len(list(source.rows())) == 1
    assert "has two records 00000000; give each an id, or write an index images.idx" in str(source.problems[0])
    lines = [f"{number}\t{place}\n" for number, place in enumerate(places)]
    for text, message in (
        ("".join(lines), None),
        ("".join(lines[:-1]), f"has a record at byte {places[-1]} that is not in its index images.idx"),
        ("".join([*lines, f"9\t{len(tmp_path.name)}\n"]), "has 5 records, and 6 in its index"),
        ("".join([*lines[:-1], f"0\t{places[-1]}\n"]), "has two records 00000000"),
        ("no index", "has a record at byte 0 that is not in its index"),
        ("\0\t\n" * 100, "has a record at byte 0 that is not in its index"),
    ):
        (tmp_path / "images.idx").write_text(text)
        source = source_of(tmp_path)
        rows = list(source.rows())
        assert bool(source.problems) == bool(message)
        if message:
            assert message in str(source.problems[0])
        else:
            assert [source.load(ref).data[0] for ref in rows] == [image for image, _ in PICTURES]


def test_a_file_that_was_cut_anywhere_is_named(tmp_path: Path) -> None:
    whole = b"".join(rec_picture(number, IMAGE + MAGIC * number) for number in range(3))
    written(tmp_path, images=whole, masks=b"".join(rec_picture(number, LABEL) for number in range(3)))
    ends = {record.start for record in records(BytesIO(whole), len(whole))}
    for name in ("images", "masks"):
        data = (tmp_path / f"{name}.rec").read_bytes()
        for size in range(len(data) - 1, 0, -53):
            (tmp_path / f"{name}.rec").write_bytes(data[:size])
            source = source_of(tmp_path)
            list(source.rows())
            assert [problem.files for problem in source.problems] == [(f"{name}.rec",)] or size in ends
        (tmp_path / f"{name}.rec").write_bytes(data)


def part(flag: int, data: bytes, size: int | None = None) -> bytes:
    return MAGIC + struct.pack("<I", flag << 29 | (len(data) if size is None else size)) + data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\0" * 64, "no record or part of one can be at byte 0"),
        (part(2, bytes(32)), "no record or part of one can be at byte 0"),
        (part(3, bytes(32)), "no record or part of one can be at byte 0"),
        (part(5, bytes(32)), "no record or part of one can be at byte 0"),
        (part(1, bytes(32)), "ends within a record at byte 40; it was cut off"),
        (part(1, bytes(32)) + part(0, bytes(32)), "no record or part of one can be at byte 40"),
        (part(1, bytes(32)) + part(1, bytes(32)), "no record or part of one can be at byte 40"),
        (part(0, bytes(32), (1 << 29) - 1), "within a record of 536870911 bytes at byte 0; it was cut off"),
        (part(0, bytes(20)), "has a record of 20 bytes at byte 0, without the header of a picture"),
        (part(1, bytes(4)) + part(3, bytes(4)), "has a record of 12 bytes at byte 0, without the header"),
        (rec_record(b""), "has a record of 0 bytes at byte 0, without the header of a picture"),
    ],
)
def test_what_is_not_a_record_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(BadPair, match=message):
        list(records(BytesIO(data), len(data)))


def test_a_record_of_too_many_parts_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """A sparse file of 1 GiB, in three parts of a third."""
    size = (1 << 29) // 3 // 4 * 4
    with (tmp_path / "images.rec").open("wb") as file:
        for number, flag in enumerate((1, 2, 2, 3)):
            file.seek(number * (size + 8))
            file.write(part(flag, b"", size))
        file.truncate(4 * (size + 8))
    written(tmp_path, masks=rec_picture(0, LABEL))
    source = source_of(tmp_path)
    assert not list(source.rows())
    assert "no record or part of one can be at byte" in str(source.problems[0])


def test_a_record_without_a_picture_is_a_bad_row(tmp_path: Path) -> None:
    lying = struct.pack("<IfQQ", 1 << 31, 0.0, 1, 0) + IMAGE
    images = rec_picture(0, IMAGE) + rec_record(lying) + rec_picture(2, b"", 1.0, 2.0) + rec_picture(3, b"hello")
    written(tmp_path / "recs", images=images, masks=b"".join(rec_picture(number, LABEL) for number in range(4)))
    summary = build_pack(tmp_path / "recs", tmp_path / "out", classes=4, on_bad="skip")
    assert [key for _, key, _ in summary.rejects] == ["00000001", "00000002", "00000003"]
    assert ["numbers as labels are not masks" in reason for _, _, reason in summary.rejects] == [True, True, False]


def test_changed_bytes_cost_rows_and_never_more(tmp_path: Path) -> None:
    images = b"".join(rec_picture(number, image + MAGIC) for number, (image, _) in enumerate(PICTURES))
    masks = b"".join(rec_picture(number, label) for number, (_, label) in enumerate(PICTURES))
    written(tmp_path, images=images, masks=masks)
    dice = np.random.default_rng(0)
    starts = [record.start for record in records(BytesIO(images), len(images))]
    for _ in range(300):
        data, at = bytearray(images), int(dice.choice(starts)) + int(dice.integers(40))
        data[at : at + 4] = dice.bytes(4)
        (tmp_path / "images.rec").write_bytes(data)
        source = source_of(tmp_path)
        for ref in source.rows():
            found = source.load(ref)
            assert found.bad is not None or len(found.data) == 2


def test_the_command_packs_records(tmp_path: Path) -> None:
    write_recordio(tmp_path / "recs", SCENES)
    out = tmp_path / "out"
    good("build", "--quiet", "--classes", "4", "--from", tmp_path / "recs", out)
    assert [(split.name, split.rows) for split in Manifest.load(out).splits] == [("all", 5)]
    good("build", "--quiet", "--classes", "4", "--from", tmp_path / "recs/{images,masks}.rec", tmp_path / "two")
    assert run("diff", tmp_path / "recs", out).exit_code == 0
