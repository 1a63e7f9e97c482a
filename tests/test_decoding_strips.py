"""Pictures that are decoded line by line: the numbers of whole ones, and the same refusals."""

from __future__ import annotations

import io
import struct
import zlib
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import cv2
import numpy as np
import pytest
from conftest import scene
from handmade import chunk, encoded, encoded_as, tiff
from numpy.typing import NDArray
from PIL import Image

from packer.decoding import raw_pixels
from packer.decoding.decode import decode_image, decode_label, read_label
from packer.decoding.header import Strip
from packer.decoding.plain_png import KERNEL
from packer.decoding.rules import ImageRules
from packer.decoding.strips import strip_file
from packer.decoding.strips import tiff as strip_tiff
from packer.decoding.strips.strip_file import StripFile
from packer.errors import BadPair
from packer.sources.files.file_lines import FileLines
from readers.machine import Machine

IMAGE, INDEX = scene(7, 133, 47)
GRAY16 = (np.arange(133 * 47, dtype=np.uint16) * 9).reshape(133, 47)
WITH_ALPHA = np.dstack([IMAGE, np.full(INDEX.shape, 255, np.uint8)])
RULES = ImageRules()
LZW, DEFLATE, JPEG = 5, 8, 7


def pillow(pixels: NDArray[Any], kind: str = "TIFF", **options: Any) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind, **options)
    return file.getvalue()


def palette() -> bytes:
    picture = Image.fromarray(INDEX, "P")
    picture.putpalette(list(range(30)))
    file = io.BytesIO()
    picture.save(file, "PNG", bits=4)
    return file.getvalue()


def tiled(pixels: NDArray[Any], side: int = 16) -> bytes:
    """Return a TIFF of plain tiles."""
    height, width, samples = pixels.shape
    down, across = -(-height // side), -(-width // side)
    whole = np.zeros((down * side, across * side, samples), pixels.dtype)
    whole[:height, :width] = pixels
    tiles = [
        whole[side * row : side * (row + 1), side * column : side * (column + 1)]
        for row in range(down)
        for column in range(across)
    ]
    size = tiles[0].nbytes
    tags: dict[str, Any] = {"t322": (side,), "t323": (side,), "t324": tuple(8 + n * size for n in range(len(tiles)))}
    stacked = np.concatenate([tile.reshape(side, -1, samples) for tile in tiles])
    return tiff(stacked, t256=(width,), t257=(height,), t325=(size,) * len(tiles), **tags)


FILES: dict[str, bytes] = {
    "one plain strip": tiff(IMAGE),
    "big-endian strips": tiff(IMAGE, ">", 5),
    "lzw": encoded_as(".tif", IMAGE, 259, LZW),
    "deflate, predictor": encoded_as(".tif", IMAGE, 259, DEFLATE, 317, 2, 278, 13),
    "jpeg": pillow(IMAGE, compression="jpeg"),
    "a bit": pillow(INDEX > 1, compression="group4"),
    "BigTIFF": pillow(IMAGE, big_tiff=True, compression="tiff_adobe_deflate"),
    "tiles": tiled(IMAGE),
    "alpha": tiff(WITH_ALPHA),
    "white is zero": tiff(INDEX, t262=(0,)),
    "png": encoded(".png", IMAGE),
    "png of gray": encoded(".png", INDEX),
    "png of a bit": pillow(INDEX > 1, "PNG"),
    "png with alpha": pillow(WITH_ALPHA, "PNG"),
    "png palette": palette(),
    **{f"png filter {kind}": encoded_as(".png", IMAGE, cv2.IMWRITE_PNG_FILTER, 8 << kind) for kind in range(5)},
    "jpeg file": encoded(".jpg", IMAGE),
    "webp": pillow(IMAGE, "WEBP", lossless=True),
    "turned": tiff(IMAGE, t274=(6,)),
}


def saved(folder: Path, data: bytes) -> Path:
    path = folder / "file"
    path.write_bytes(data)
    return path


def strips(path: Path, step: int) -> list[Strip]:
    with closing(StripFile(path)) as picture:
        height = picture.size[0]
        found = [picture.lines(top, min(top + step, height)) for top in range(0, height, step)]
    assert all(isinstance(strip, Strip) for strip in found)
    return found


@pytest.mark.parametrize("step", [7, 16, 1000])
@pytest.mark.parametrize("name", FILES)
def test_lines_have_the_numbers_of_the_whole_picture(name: str, step: int, tmp_path: Path) -> None:
    path = saved(tmp_path, FILES[name])
    found = [decode_image(strip, RULES) for strip in strips(path, step)]
    assert np.array_equal(np.concatenate(found), decode_image(FILES[name], RULES))


@pytest.mark.parametrize(
    "data",
    [palette(), encoded(".png", GRAY16), tiff(GRAY16), tiff(GRAY16.astype(np.uint32)), encoded(".png", IMAGE)],
    ids=["palette", "PNG of 16 bits", "TIFF of 16 bits", "TIFF of 32 bits", "colours"],
)
@pytest.mark.parametrize("as_index", [True, False])
def test_lines_of_labels_have_the_numbers_of_the_whole_label(data: bytes, as_index: bool, tmp_path: Path) -> None:
    found = [read_label(strip).pixels(as_index) for strip in strips(saved(tmp_path, data), 20)]
    assert np.array_equal(np.concatenate(found), decode_label(data, as_index))


def cut_stream(data: bytes, keep: float, more: bytes = b"") -> bytes:
    """Return a PNG of one chunk IDAT whose stream is cut, or goes on."""
    start = data.index(b"IDAT")
    (length,) = struct.unpack(">I", data[start - 4 : start])
    stream = data[start + 4 : start + 4 + length]
    return data[: start - 4] + chunk(b"IDAT", stream[: int(keep * length)] + more) + chunk(b"IEND", b"")


def longer(data: bytes) -> bytes:
    start = data.index(b"IDAT")
    (length,) = struct.unpack(">I", data[start - 4 : start])
    raw = zlib.decompress(data[start + 4 : start + 4 + length])
    return data[: start - 4] + chunk(b"IDAT", zlib.compress(raw + b"\0\1\2")) + chunk(b"IEND", b"")


PLAIN = pillow(IMAGE, "PNG")
DAMAGED: dict[str, tuple[bytes, str]] = {
    "png without an end": (PLAIN[:-12], "ends within its header"),
    "png of half its stream": (
        cut_stream(PLAIN, 0.5),
        "of pixels is cut short|cannot be decoded: it is damaged",
    ),
    "png without its checksum": (cut_stream(PLAIN, 0.9999), "cut short|cannot be decoded: it is damaged"),
    "png with bytes behind": (cut_stream(PLAIN, 1, b"more"), "more pixel data"),
    "png of more lines": (longer(PLAIN), "more pixel data"),
    "png with a changed byte": (PLAIN[:900] + b"X" + PLAIN[901:], "the checksum of its chunk"),
    "tiff that is cut": (tiff(IMAGE, rows=5)[:4000], "TIFF|cut short|header"),
    "tiff whose strip is too short": (tiff(IMAGE, t279=(4000,)), "is cut short"),
    "tiff whose strip ends behind the file": (tiff(IMAGE, t279=(1 << 31,)), "is cut short"),
    "tiff of an impossible palette": (tiff(INDEX, t262=(3,), t320=(70_000,) * 768), "palette has the number 70000"),
    "tiff of damaged deflate": (encoded_as(".tif", IMAGE, 259, DEFLATE).replace(b"\x78", b"\x00", 1), "damaged"),
    "an array in numpy's format": (b"nothing", "is not a PNG, JPEG"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_refused_at_the_latest_with_the_last_line(name: str, tmp_path: Path) -> None:
    data, message = DAMAGED[name]
    with pytest.raises(BadPair):
        decode_image(data, RULES)
    with pytest.raises(BadPair, match=message):
        strips(saved(tmp_path, data), 20)


def test_a_file_that_becomes_shorter_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, tiff(IMAGE, rows=5))
    with closing(StripFile(path)) as picture:
        picture.lines(0, 10)
        with path.open("r+b") as file:
            file.truncate(8000)
        with pytest.raises(BadPair, match="was cut short while it was read"):
            picture.lines(10, 133)


def test_a_file_that_is_replaced_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, tiff(IMAGE))
    with closing(StripFile(path)) as picture:
        picture.lines(0, 10)
        (tmp_path / "new").write_bytes(tiff(IMAGE[::-1].copy()))
        (tmp_path / "new").replace(path)
        with pytest.raises(BadPair, match="changed while it was read; build again"):
            picture.lines(10, 133)


def test_a_picture_with_huge_blocks_is_decoded_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strip_tiff, "MOST_BLOCKS", 1000)
    monkeypatch.setattr(raw_pixels, "MOST_WHOLE", 10)
    with pytest.raises(BadPair, match="at most 10 are decoded at once; a slide, a TIFF, or a PNG"):
        StripFile(saved(tmp_path, encoded_as(".tif", IMAGE, 259, DEFLATE)))
    assert len(strips(saved(tmp_path, tiff(IMAGE)), 20)) == 7  # plain lines are found without their block


def broken(data: bytes, random: Random) -> bytes:
    """Return a file with a few changed bytes. Half of the PNGs get checksums that are right, so that streams break."""
    changed = bytearray(data)
    for _ in range(random.choice([1, 2, 4])):
        changed[random.randrange(random.choice([200, len(changed)]))] = random.randrange(256)
    if data.startswith(b"\x89PNG") and random.random() < 0.5:
        offset = 8
        while offset + 12 <= len(changed):
            (length,) = struct.unpack_from(">I", changed, offset)
            if offset + 12 + length > len(changed):
                break
            content = changed[offset + 4 : offset + 8 + length]
            changed[offset + 8 + length : offset + 12 + length] = struct.pack(">I", zlib.crc32(content))
            offset += 12 + length
    return bytes(changed)


def read(*parts: bytes | Strip) -> NDArray[Any] | None:
    """Return the picture that parts have together; None if one of them is refused."""
    try:
        return np.concatenate([decode_image(part, ImageRules(alpha="drop")) for part in parts])
    except BadPair:
        return None


@pytest.mark.parametrize("name", ["lzw", "deflate, predictor", "BigTIFF", "tiles", "png", "png palette", "png of gray"])
def test_a_broken_file_has_the_same_lines_or_is_refused(name: str, tmp_path: Path) -> None:
    random = Random(name)
    for _ in range(40):
        data = broken(FILES[name], random)
        try:
            lines = read(*strips(saved(tmp_path, data), 50))
        except BadPair:
            continue
        if lines is not None:
            whole = read(data)
            assert whole is not None
            assert np.array_equal(lines, whole)


def needed(data: bytes, folder: Path) -> int:
    with closing(StripFile(saved(folder, data))) as picture:
        return picture.whole_bytes - len(data)


def test_a_picture_that_is_decoded_at_once_says_how_much_memory_it_needs(tmp_path: Path) -> None:
    pixels = IMAGE.size
    progressive = pillow(IMAGE, "JPEG", progressive=True)
    assert needed(encoded(".jpg", IMAGE), tmp_path) == pixels
    assert needed(progressive, tmp_path) == 3 * pixels
    assert needed(FILES["webp"], tmp_path) == 2 * pixels
    assert needed(FILES["turned"], tmp_path) == 2 * pixels
    for name in ("png", "lzw"):
        with closing(StripFile(saved(tmp_path, FILES[name]))) as picture:
            assert picture.whole_bytes == 0 or (name == "png" and KERNEL is None)  # OpenCV decodes it at once


def test_a_picture_that_needs_more_memory_than_the_machine_has_is_refused_before_it_is_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, length = saved(tmp_path, encoded(".jpg", IMAGE)), len(encoded(".jpg", IMAGE)) + IMAGE.size

    def opened(name: str) -> StripFile:
        return StripFile(tmp_path / name)

    machine = replace(Machine.look(), memory=length - 1, available=length - 1)
    monkeypatch.setattr(Machine, "look", lambda: machine)
    monkeypatch.delattr(strip_file, "read_stored")
    told = r"JPEG RGB, 8 bits of .* pixels, which is decoded at once and needs 0.0 GiB of memory; .*vips tiffsave"
    with pytest.raises(BadPair, match=told):
        FileLines([path.name], opened)
    machine = replace(machine, memory=length)
    with pytest.raises(MemoryError):
        FileLines([path.name], opened)
    machine = replace(machine, available=length)
    FileLines([path.name], opened).close()
