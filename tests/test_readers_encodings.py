"""Fields that are stored encoded: smaller, and the same rows from every reader. Damaged frames are refused by name."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import cv2
import numpy as np
import pytest
import simplejpeg
import torch
import zstandard
from conftest import RawFolder, errors_of, json_of, pack, run, scene, without_workers
from handmade import exif
from numpy.typing import NDArray
from page_reader import read_rows

from packer import build_pack, verify_pack
from packer.decoding.jpeg import segment
from packer.errors import UsageError
from packer.pixels.encode import encode
from packer.pixels.jpeg_rules import JpegRules
from readers import DamagedError, open_dataset
from readers.contract.classes import ClassTable, SegClass
from readers.contract.fields import JPEG, ZSTD, classes_field, picture_field
from readers.contract.kinds import INDEX
from readers.contract.manifest import Manifest
from readers.contract.receipt import Receipt
from readers.formats.unpack import unpack
from readers.pack import Pack

ENCODE = "--encode", "label=zstd"
LABEL_ZSTD = replace(
    classes_field("label", INDEX, ClassTable((SegClass("road"), SegClass("sky"))), (4, 8)), encoding=ZSTD
)


def is_equal(one: Path, other: Path) -> bool:
    """Return whether the rows of two packs are the same."""
    ours, theirs = open_dataset(one, "all"), open_dataset(other, "all")
    return len(ours) == len(theirs) and all(
        ours.key(row) == theirs.key(row) and all(map(torch.equal, ours[row], theirs[row])) for row in range(len(ours))
    )


@pytest.fixture
def both(storage: str, raw_folder: RawFolder, tmp_path: Path) -> tuple[Path, Path]:
    """The same folder as a raw pack, and with its labels encoded."""
    options = "--format", storage, "--labels", "index"
    raw = pack(raw_folder.path, tmp_path / "raw", *options)
    return raw, pack(raw_folder.path, tmp_path / "encoded", *options, *ENCODE)


def test_rows_batches_and_crops_are_those_of_a_raw_pack(both: tuple[Path, Path]) -> None:
    for label in ("index", "onehot"):
        raw, encoded = (open_dataset(out, "train", label=label) for out in both)
        for one, other in zip(raw, encoded, strict=True):
            assert all(map(torch.equal, one, other))
        for crop in (None, (7, 9)):
            batches = (each.loader(batch_size=3, crop=crop, flip=True, seed=5) for each in (raw, encoded))
            for one, other in zip(*batches, strict=True):
                assert all(map(torch.equal, one, other))


def test_an_encoded_pack_is_smaller_whole_and_says_how_it_is_stored(both: tuple[Path, Path]) -> None:
    raw, encoded = both
    assert verify_pack(encoded, deep=True) == []
    manifest = Manifest.load(encoded)
    assert [field.encoding for field in manifest.fields] == ["raw", "zstd"]
    assert manifest.bytes <= Manifest.load(raw).bytes  # LMDB stores whole pages, and the rows are small
    version = ".".join(map(str, zstandard.ZSTD_VERSION))
    assert f"zstd {version} level 1" in manifest.recipe["tools"]
    assert "zstd" in run("info", encoded).stdout
    assert is_equal(raw, encoded)


def test_inspect_says_how_a_row_is_stored(both: tuple[Path, Path]) -> None:
    for out, encoding, words in zip(both, ("raw", "zstd"), ("(24, 36)", "(24, 36), as zstd"), strict=True):
        key = open_dataset(out, "val").key(0)
        (row,) = json_of("inspect", "--json", "--split", "val", out, key)
        assert [field["encoding"] for field in row["fields"]] == ["raw", encoding]
        assert f"stored    classes, |u1 {words}\n" in run("inspect", "--split", "val", out, key).stdout


def test_every_flipped_bit_of_a_frame_is_found_and_named(both: tuple[Path, Path]) -> None:
    _, encoded = both
    dataset = open_dataset(encoded, "val", fields=("label",))
    shard = dataset._pack.shard(dataset._pack.table.locate(dataset._rows[0])[0])
    path, start, stop = shard.position("label", 0)
    whole = path.read_bytes()
    for bit in range(8 * start, 8 * stop, 8 * max(1, (stop - start) // 12) + 1):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        named = [(each.row, each.field) for each in verify_pack(encoded) if each.row]
        assert named == [(dataset.key(0), "label")]
    path.write_bytes(whole[:start] + bytes(stop - start) + whole[stop:])
    with pytest.raises(DamagedError, match=f"the row '{dataset.key(0)}': its 'label' is not stored as zstd of"):
        open_dataset(encoded, "val")[0]
    path.write_bytes(whole)


def frame(data: bytes, sized: bool = True) -> bytes:
    return zstandard.ZstdCompressor(write_content_size=sized).compress(data)


def trained() -> bytes:
    """Return a frame that needs a dictionary."""
    samples = zstandard.train_dictionary(1024, [bytes([each % 7, each % 11]) * 30 for each in range(500)])
    return zstandard.ZstdCompressor(dict_data=samples).compress(bytes(32))


def smooth_folder(root: Path, suffix: str = ".png", count: int = 5) -> Path:
    """Write pairs whose images are soft, as photographs are, and one that is of one colour."""
    for name in ("images", "labels"):
        (root / name).mkdir(parents=True)
    lines, columns = np.mgrid[:40, :56]
    for number in range(count):
        waves = [lines * (number + band) // 2 + columns * (1 + band) + 40 * band for band in range(3)]
        image = np.stack([np.clip(each, 0, 255) for each in waves], 2).astype(np.uint8) if number else FLAT
        cv2.imwrite(str(root / f"images/{number}{suffix}"), image)
        cv2.imwrite(str(root / f"labels/{number}.png"), (lines // 10 + number).astype(np.uint8) % 3)
    return root


FLAT = np.full((40, 56, 3), 128, np.uint8)
JPEG_OPTIONS = "--classes", "3", "--labels", "index", "--encode"


def test_pictures_as_jpeg_are_near_and_what_is_lost_is_in_the_receipt(tmp_path: Path, storage: str) -> None:
    raw, out = smooth_folder(tmp_path / "in"), tmp_path / "out"
    options = "--format", storage, *JPEG_OPTIONS
    before = pack(raw, tmp_path / "before", *options, "image=raw")
    built = run("build", *options, "image=jpeg:90", "--encode", "label=zstd", raw, out)
    assert verify_pack(out, deep=True) == []
    ours, theirs = open_dataset(before, "all"), open_dataset(out, "all")
    measured = []
    for (image, label), (found, same) in zip(ours, theirs, strict=True):
        assert torch.equal(label, same)
        error = ((image.double() - found.double()) ** 2).mean().item()
        measured.append(10_000 if error == 0 else round(1000 * math.log10(255**2 / error)))
    (receipt,) = [Receipt.load(path) for path in (out / "shards").glob("*.receipt.json")]
    assert receipt.psnr == {"image": tuple(measured)}
    least, median = min(measured) / 100, sorted(measured)[(len(measured) - 1) // 2] / 100
    words = f"PSNR of at least {least:.2f} dB, {median:.2f} dB in the median; 1 of 5 rows lost nothing"
    assert f"\nloss      image as JPEG: {words}\n" in built.stdout
    run("card", out, "-o", tmp_path / "README.md")
    assert f"image is stored as JPEG: {words}." in (tmp_path / "README.md").read_text()
    assert min(measured) > 3000
    assert measured.count(10_000) == 1
    assert Receipt.from_text(receipt.to_text(), "here") == receipt
    for (_, _, row), (image, label) in zip(read_rows(out), theirs, strict=True):
        assert np.array_equal(row["image"], image)
        assert np.array_equal(row["label"], label)


def test_all_threads_unpack_from_the_first_batch_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = pack(smooth_folder(tmp_path / "in", count=4), tmp_path / "out", *JPEG_OPTIONS, "image=jpeg")
    loader, both = open_dataset(out, "all").loader(batch_size=2, threads=2), Barrier(2, timeout=5)
    read = loader._read
    monkeypatch.setattr(loader, "_read", lambda rows: read(rows) if both.wait() < 2 else None)
    assert sum(len(images) for images, _ in loader) == 4


def test_jpeg_files_stay_the_files_that_they_are_if_their_pixels_do(tmp_path: Path) -> None:
    raw = smooth_folder(tmp_path / "in", ".jpg")
    out = pack(raw, tmp_path / "out", *JPEG_OPTIONS, "image=jpeg:keep")
    plain = pack(raw, tmp_path / "plain", *JPEG_OPTIONS, "image=raw")
    assert is_equal(plain, out)
    stored = next((out / "shards").glob("*.image.npy")).read_bytes()
    assert all(file.read_bytes() in stored for file in (raw / "images").iterdir())
    again = tmp_path / "again"
    build_pack(out, again, format="arrow")
    assert is_equal(out, again)
    small = pack(raw, tmp_path / "small", *JPEG_OPTIONS, "image=jpeg:keep", "--size", "20x28")
    (receipt,) = [Receipt.load(path) for path in (small / "shards").glob("*.receipt.json")]
    assert 3000 < min(receipt.psnr["image"]) < 10_000
    assert receipt.counts == {"rows of image encoded again: another size": 5}


def test_a_gray_file_among_rgb_ones_is_encoded_and_the_others_are_kept(tmp_path: Path) -> None:
    raw = smooth_folder(tmp_path / "in", ".jpg")
    gray = np.random.default_rng(1).integers(0, 256, (40, 56), np.uint8)
    cv2.imwrite(str(raw / "images/1.jpg"), gray)
    upright = (raw / "images/2.jpg").read_bytes()
    (raw / "images/2.jpg").write_bytes(upright[:2] + segment(0xE1, b"Exif\0\0" + exif(3)) + upright[2:])
    (raw / "images/3.jpg").write_bytes(cv2.imencode(".png", gray)[1].tobytes())
    with without_workers():
        built = run("build", *JPEG_OPTIONS, "image=jpeg:keep", raw, tmp_path / "out")
    assert "; 2 of 5 rows lost nothing\n" in built.stdout
    for why in ("gray made RGB", "turned by EXIF", "not a JPEG file before"):
        assert f"1 row of image encoded again: {why}" in built.stderr
    assert verify_pack(tmp_path / "out", deep=True) == []


def test_a_picture_that_no_jpeg_file_holds_is_named(tmp_path: Path) -> None:
    raw = smooth_folder(tmp_path / "in", count=1)
    for name in ("images", "labels"):
        cv2.imwrite(str(raw / name / "wide.png"), np.zeros((1, 65501), np.uint8))
    options = *JPEG_OPTIONS, "image=jpeg", "--fit", "native", "--on-bad", "skip", "--max-bad", 1
    with without_workers():
        log = run("build", *options, raw, tmp_path / "out").stderr
    assert "images/wide.png: has 1x65501 pixels; a JPEG file has at most 65500 a side" in log


def test_jpeg_files_are_nearer_than_those_of_the_fast_transform_and_no_larger() -> None:
    pixels = cv2.GaussianBlur(scene(1, 96, 128)[0], (0, 0), 3)
    field = replace(picture_field("image", "|u1", (96, 128)), encoding=JPEG)
    found = encode(field, JpegRules(95), np.ascontiguousarray(pixels.transpose(2, 0, 1)), b"")
    fast = simplejpeg.encode_jpeg(pixels, 95, "RGB", "444")
    assert found.numbers is not None
    assert cv2.PSNR(pixels, found.numbers.transpose(1, 2, 0)) > cv2.PSNR(pixels, simplejpeg.decode_jpeg(fast)) + 1
    assert len(found.stored) < 1.02 * len(fast)


def test_a_note_says_which_quality_changed(tmp_path: Path) -> None:
    raw, out = smooth_folder(tmp_path / "in"), tmp_path / "out"
    for before, now in (("raw", "jpeg:90"), ("jpeg:90", "jpeg:80"), ("jpeg:80", "jpeg:keep")):
        pack(raw, out, *JPEG_OPTIONS, f"image={before}")
        changed = run("build", "--dry-run", *JPEG_OPTIONS, f"image={now}", raw, out).stdout
        tools = "tools, " if before == "raw" else ""  # what writes JPEG files
        assert f"which is kept: {tools}image.encoding changed\n" in changed


def jpeg(pixels: NDArray[np.uint8], colours: str = "RGB") -> bytes:
    data: bytes = simplejpeg.encode_jpeg(pixels, 90, colours)
    return data


FILES: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"",
    "zeros": lambda: bytes(400),
    "cut": lambda: jpeg(FLAT)[:-30],
    "wider": lambda: jpeg(np.zeros((40, 57, 3), np.uint8)),
    "a bomb": lambda: jpeg(np.zeros((6000, 6000, 3), np.uint8)),
    "gray": lambda: jpeg(FLAT[..., :1].copy(), "GRAY"),
    "CMYK": lambda: jpeg(np.zeros((40, 56, 4), np.uint8), "CMYK"),
}


@pytest.mark.parametrize("kind", FILES)
def test_files_that_are_not_a_row_are_refused(kind: str) -> None:
    field = replace(picture_field("image", "|u1", (40, 56)), encoding=JPEG)
    out = np.zeros((3, 40, 56), np.uint8)
    with pytest.raises(DamagedError, match="its 'image' is not stored as jpeg of 3x40x56 numbers"):
        unpack(field, np.frombuffer(FILES[kind](), np.uint8), out)
    unpack(field, np.frombuffer(jpeg(FLAT), np.uint8), out)
    assert (out == 128).all()


FRAMES: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"",
    "zeros": lambda: bytes(40),
    "too short": lambda: frame(bytes(31)),
    "too long": lambda: frame(bytes(33)),
    "a bomb": lambda: frame(bytes(1 << 30)),
    "cut": lambda: frame(np.random.default_rng(1).bytes(32))[:-1],
    "without its size": lambda: frame(bytes(32), sized=False),
    "followed by another": lambda: frame(bytes(32)) + frame(b"x"),
    "followed by bytes": lambda: frame(bytes(32)) + b"x",
    "with a dictionary": trained,
    "a frame to skip": lambda: b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + bytes(4) + frame(bytes(32)),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_that_are_not_a_row_are_refused(kind: str) -> None:
    out: NDArray[np.uint8] = np.full((4, 8), 7, np.uint8)
    with pytest.raises(DamagedError, match="its 'label' is not stored as zstd of 4x8 numbers"):
        unpack(LABEL_ZSTD, np.frombuffer(FRAMES[kind](), np.uint8), out)
    unpack(LABEL_ZSTD, np.frombuffer(frame(bytes(32)), np.uint8), out)
    assert not out.any()


def test_a_pack_made_of_an_encoded_pack_keeps_its_encoding_unless_told(both: tuple[Path, Path], tmp_path: Path) -> None:
    raw, encoded = both
    kept, plain, smaller, lossy = (tmp_path / name for name in ("kept", "plain", "smaller", "lossy"))
    build_pack(encoded, kept, format="npy")
    build_pack(encoded, plain, format="npy", encode=["label=raw"])
    build_pack(raw, smaller, format="npy", encode=["label=zstd", "image=zstd"])
    found = [[field.encoding for field in Manifest.load(each).fields] for each in (kept, plain, smaller)]
    assert found == [["raw", "zstd"], ["raw", "raw"], ["zstd", "zstd"]]
    for each in (kept, plain, smaller):
        assert is_equal(raw, each)
    build_pack(encoded, lossy, format="npy", encode=["image=jpeg:90"])
    assert [field.encoding for field in Manifest.load(lossy).fields] == ["jpeg", "zstd"]


def test_another_release_of_zstandard_is_another_recipe(
    raw_folder: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = json_of("build", "--dry-run", "--json", *ENCODE, raw_folder.path, tmp_path / "out")
    monkeypatch.setattr(zstandard, "ZSTD_VERSION", (9, 9, 9))
    other = json_of("build", "--dry-run", "--json", *ENCODE, raw_folder.path, tmp_path / "out")
    assert plan != other


def test_a_plan_needs_no_room_for_what_encoding_saves(
    raw_folder: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = "--size", "512x512", "--dry-run"
    whole = json_of("build", *large, "--json", raw_folder.path, tmp_path / "out")["bytes"]
    monkeypatch.setattr("packer.plan.make_plan.free_space", lambda path: whole)
    assert "not enough" in run("build", *large, raw_folder.path, tmp_path / "out").stdout
    text = run("build", *large, *ENCODE, raw_folder.path, tmp_path / "out").stdout
    assert "classes onehot as zstd\n" in text
    assert "not enough" not in text


def test_a_plan_advises_index_for_planes_that_are_not_encoded_alone(raw_folder: RawFolder, tmp_path: Path) -> None:
    plans = {
        encode: run("build", "--dry-run", "--encode", encode, raw_folder.path, tmp_path / "out").stdout
        for encode in ("image=zstd", "label=zstd")
    }
    assert " KiB less, and readers still return one-hot" in plans["image=zstd"]
    assert "--labels index" not in plans["label=zstd"]


def test_a_plan_knows_the_size_of_a_build_by_a_sample(tmp_path: Path, storage: str) -> None:
    raw, out = smooth_folder(tmp_path / "in", count=40), tmp_path / "out"
    options = "--format", storage, *JPEG_OPTIONS, "image=jpeg", "--encode", "label=zstd"
    plan = json_of("build", "--dry-run", "--json", *options, raw, out)
    text = run("build", "--dry-run", *options, raw, out).stdout
    assert "bytes     about " in text
    assert " without encodings\n" in text
    run("build", *options, raw, out)
    pack = Pack.open(out)
    fields = pack.select(["image", "label"])
    shards = range(len(pack.table))
    sizes = [
        pack.shard(n).stored(field, row).size for n in shards for row in range(pack.table.rows(n)) for field in fields
    ]
    assert plan["stored_bytes"] == sum(sizes)
    assert plan["bytes"] == 40 * 4 * 40 * 56
    (raw / "images/3.png").write_bytes(b"no picture")
    assert json_of("build", "--dry-run", "--json", "--on-bad", "skip", *options, raw, out)["stored_bytes"] > 0


def test_a_field_has_one_encoding(raw_folder: RawFolder, tmp_path: Path) -> None:
    errors = errors_of(2, "build", *ENCODE, "--encode", "label=raw", raw_folder.path, tmp_path / "out")
    assert "--encode label: is named twice; give each field one encoding" in " ".join(errors.split())


def test_encodings_in_python_are_a_list(tmp_path: Path) -> None:
    for given, words in (
        ({"image": "zstd"}, r"expected a list, such as \['image=zstd'\]"),
        ("label=zstd", r"expected a list, such as \['label=zstd'\]"),
        ([5], "'5': expected a field and raw"),
    ):
        with pytest.raises(UsageError, match=words):
            build_pack(tmp_path, tmp_path / "out", encode=given)  # type: ignore[arg-type]


def test_the_error_says_how_pictures_of_16_bits_become_jpeg(tmp_path: Path) -> None:
    raw = smooth_folder(tmp_path / "in", count=1)
    numbers = np.zeros((40, 56, 3), np.uint16)
    (raw / "images/0.png").write_bytes(cv2.imencode(".png", numbers)[1].tobytes())
    for options, words in (
        (("--bands", "all"), "not 3 bands of uint16; zstd stores every field, and --image-range LOW,HIGH makes 8 bits"),
        (("--image-range", "0,9", "--image-dtype", "float32"), "of float32; .*, and without --image-dtype there are 8"),
    ):
        refused = run("build", *JPEG_OPTIONS, "image=tiles-jpeg:16", *options, raw, tmp_path / "out")
        assert re.search(words, " ".join(refused.stderr.split())), refused.stderr
