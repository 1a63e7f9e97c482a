"""Each picture format is decoded exactly or refused with a reason; never in part."""

from __future__ import annotations

import re
import struct
import zlib
from io import BytesIO
from typing import Any, Literal

import cv2
import numpy as np
import pytest
from conftest import COLOURS, opencv_rgb, scene
from drills.damaged_pictures import KINDS, REFUSED, drill
from handmade import bmp, bmp_with_alpha, chunk, encoded_as, exif, png, tiff, webp_chunks
from numpy.typing import NDArray

from packer.decoding import opencv, plain_png
from packer.decoding.decode import decode_image, decode_label
from packer.decoding.file_types import read_header
from packer.decoding.rules import ImageRules
from packer.errors import BadPair

IMAGE, INDEX = scene(7, 33, 47)
SMOOTH = cv2.GaussianBlur(IMAGE, (0, 0), 4)
RULES = ImageRules()
DROP = ImageRules(alpha="drop")


def with_alpha(pixels: NDArray[Any], least: int) -> NDArray[Any]:
    most = np.iinfo(pixels.dtype).max
    alpha = np.full((*pixels.shape[:2], 1), most, pixels.dtype)
    alpha[3, 4] = most if least else 0
    return np.concatenate([pixels, alpha], -1)


# JPEG


@pytest.mark.parametrize("sampling", [0x111111, 0x211111, 0x221111, 0x121111, 0x411111])
@pytest.mark.parametrize("option", [(), (cv2.IMWRITE_JPEG_PROGRESSIVE, 1), (cv2.IMWRITE_JPEG_RST_INTERVAL, 2)])
def test_jpegs_of_every_sampling_and_order_are_what_opencv_decodes(sampling: int, option: tuple[int, ...]) -> None:
    data = encoded_as(".jpg", SMOOTH, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, sampling, *option)
    assert np.array_equal(decode_image(data, RULES), opencv_rgb(data))


def test_a_gray_jpeg_is_three_equal_channels_or_the_numbers_of_a_label() -> None:
    data = encoded_as(".jpg", SMOOTH[..., 0])
    assert np.array_equal(decode_image(data, RULES), opencv_rgb(data))
    assert np.array_equal(decode_label(data, as_index=True, lossy=True), opencv_rgb(data)[..., 0])


def with_frame(data: bytes, height: int = 0, width: int = 0, depth: int = 0) -> bytes:
    """Return the JPEG with a different size or depth in its frame header."""
    lie = bytearray(data)
    offset = data.index(b"\xff\xc0")
    lie[offset + 4] = depth or lie[offset + 4]
    lie[offset + 5 : offset + 7] = struct.pack(">H", height) if height else lie[offset + 5 : offset + 7]
    lie[offset + 7 : offset + 9] = struct.pack(">H", width) if width else lie[offset + 7 : offset + 9]
    return bytes(lie)


PLAIN_JPEG = encoded_as(".jpg", IMAGE)
HALF = len(PLAIN_JPEG) // 2
DAMAGED_JPEGS = {
    "half of it": PLAIN_JPEG[:HALF],
    "half of it, and an end": PLAIN_JPEG[:HALF] + b"\xff\xd9",
    "half of it, and zeros": PLAIN_JPEG[:HALF] + b"\0" * HALF,
    "twice the height": with_frame(PLAIN_JPEG, height=66),
    "half the height": with_frame(PLAIN_JPEG, height=16),
    "twice the width": with_frame(PLAIN_JPEG, width=94),
    "no end": PLAIN_JPEG[:-2],
    "no end, and a film behind it": PLAIN_JPEG[:-2] + b"\0" * 9999,
}


@pytest.mark.parametrize("option", [(), (cv2.IMWRITE_JPEG_PROGRESSIVE, 1)])
def test_a_jpeg_that_is_cut_anywhere_and_ended_is_refused(option: tuple[int, ...]) -> None:
    """A progressive JPEG that ends between two scans gets no warning from libjpeg."""
    data = encoded_as(".jpg", SMOOTH, *option)
    for length in range(data.index(b"\xff\xda"), len(data) - 2):
        with pytest.raises(BadPair):
            decode_image(data[:length] + b"\xff\xd9", RULES)


def test_jpegs_of_rare_kinds_are_refused_by_name() -> None:
    with pytest.raises(BadPair, match="JPEG with 12 bits"):
        decode_image(with_frame(PLAIN_JPEG, depth=12), RULES)
    offset = PLAIN_JPEG.index(b"\xff\xc0")
    with pytest.raises(BadPair, match="lossless or hierarchical"):
        decode_image(PLAIN_JPEG[:offset] + b"\xff\xc3" + PLAIN_JPEG[offset + 2 :], RULES)
    frame = b"\xff\xc0\0\x14\x08\0\x10\0\x10\4" + b"\1\x11\0" * 4
    with pytest.raises(BadPair, match="4 colour components"):
        decode_image(PLAIN_JPEG[:offset] + frame + PLAIN_JPEG[offset:][19:], RULES)


# PNG


def raster(pixels: NDArray[np.uint8]) -> bytes:
    return b"".join(b"\0" + row.tobytes() for row in pixels)


def png_of(stream: bytes, *extra: bytes) -> bytes:
    """Return a PNG of the size of IMAGE with valid checksums around any stream."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 47, 33, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(extra) + chunk(b"IDAT", stream) + chunk(b"IEND", b"")


STREAM = zlib.compress(raster(IMAGE))
WRONG_PNGS = {
    "short": png_of(zlib.compress(raster(IMAGE)[:1000])),
    "short by a byte": png_of(zlib.compress(raster(IMAGE)[:-1])),
    "half a stream": png_of(STREAM[: len(STREAM) // 2]),
    "no checksum": png_of(STREAM[:-4]),
    "wrong checksum": png_of(STREAM[:-1] + bytes([STREAM[-1] ^ 1])),
    "no stream": png_of(b""),
    "a filter that no PNG has": png_of(zlib.compress(b"\7" + raster(IMAGE)[1:])),
    "such a filter later": png_of(zlib.compress(raster(IMAGE)[:142] + b"\5" + raster(IMAGE)[143:])),
}


NAMED_PNGS = [
    (png_of(STREAM, chunk(b"acTL", bytes(8))), "animated PNG"),
    (png_of(STREAM, chunk(b"ABCD", b"")), "unknown critical chunk 'ABCD'"),
    (b"\x89PNG\r\n\x1a\n" + chunk(b"CgBI", bytes(4)) + png_of(STREAM)[8:], "Apple CgBI"),
    (png_of(STREAM[:99], chunk(b"IDAT", STREAM), chunk(b"tEXt", b"a\0b")), "more than one chunk 'IDAT'"),
    (png(np.zeros((2, 4), np.uint8), 16, 3), "colour type 3 with 16 bits"),
]


def test_nothing_but_the_raster_reaches_the_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text or a profile that would unpack to a gigabyte costs nothing."""
    given: list[bytes] = []
    unpack = opencv.decode

    def listen(data: bytes, flags: int) -> NDArray[Any]:
        given.append(data)
        return unpack(data, flags)

    monkeypatch.setattr(opencv, "decode", listen)
    monkeypatch.setattr(plain_png, "KERNEL", None)
    extra = [chunk(kind, b"a\0\0" + zlib.compress(bytes(99))) for kind in (b"zTXt", b"iTXt", b"iCCP", b"eXIf", b"tRNS")]
    assert np.array_equal(decode_image(png_of(STREAM, *extra), RULES), IMAGE)
    assert given == [png_of(STREAM)]


# TIFF


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("rows", [33, 7, 1])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize("channels", [1, 3])
def test_a_tiff_gives_its_numbers(order: Literal["<", ">"], rows: int, dtype: type, channels: int) -> None:
    pixels: NDArray[Any] = (IMAGE if channels == 3 else INDEX).astype(dtype)
    data = tiff(pixels, order, rows)
    if dtype == np.uint8:
        expected = pixels if channels == 3 else np.dstack([pixels] * 3)
        assert np.array_equal(decode_image(data, RULES), expected)
    else:
        expected = np.broadcast_to(pixels.reshape(33, 47, -1), IMAGE.shape).astype(np.float32) / np.float32(1000)
        assert np.array_equal(decode_image(data, ImageRules((0, 1000))), expected)
    if channels == 1 and dtype != np.float32:
        assert np.array_equal(decode_label(data, as_index=True), pixels)


@pytest.mark.parametrize("compression", [1, 5, 8, 32946, 32773])
@pytest.mark.parametrize("predictor", [1, 2])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_a_compressed_tiff_gives_its_numbers(compression: int, predictor: int, dtype: type) -> None:
    options = (cv2.IMWRITE_TIFF_COMPRESSION, compression, cv2.IMWRITE_TIFF_PREDICTOR, predictor)
    for pixels in (IMAGE, INDEX, np.tile(IMAGE, (9, 9, 1)), np.zeros((300, 300), np.uint8)):
        data = encoded_as(".tif", pixels.astype(dtype) * dtype(2), *options)
        wanted = pixels.astype(dtype) * dtype(2)
        if wanted.ndim == 2:
            assert np.array_equal(decode_label(data, as_index=True), wanted)
        else:
            limits = None if dtype == np.uint8 else (0.0, 1.0)
            assert np.array_equal(decode_image(data, ImageRules(limits)), wanted if limits is None else wanted > 0)


@pytest.mark.parametrize("compression", [5, 8])
def test_a_compressed_float_tiff_gives_its_numbers(compression: int) -> None:
    for pixels in (IMAGE, INDEX):
        wanted = np.sqrt(pixels.astype(np.float32)) / 16
        for predictor in (1, 3):
            data = encoded_as(
                ".tif", wanted, cv2.IMWRITE_TIFF_COMPRESSION, compression, cv2.IMWRITE_TIFF_PREDICTOR, predictor
            )
            found = decode_image(data, ImageRules((0, 1)))
            assert np.array_equal(found, np.broadcast_to(wanted.reshape(33, 47, -1), found.shape))


@pytest.mark.parametrize("bits", [1, 2, 4])
@pytest.mark.parametrize("compression", [1, 8, 32773])
def test_a_gray_tiff_of_few_bits_gives_the_numbers_in_the_file(bits: int, compression: int) -> None:
    numbers = INDEX % 2**bits
    spread = np.unpackbits(numbers[..., None], axis=-1)[..., 8 - bits :].reshape(33, -1)
    packed = np.packbits(spread, axis=-1)
    pack: Any = {1: bytes, 8: zlib.compress, 32773: lambda rows: b"".join(b"\0%c" % byte for byte in rows)}[compression]
    strips = [pack(packed[top : top + 10].tobytes()) for top in range(0, 33, 10)]
    data = bytearray(b"".join(strips))
    starts = np.cumsum([8, *map(len, strips)]).tolist()[:-1]
    tags: dict[str, Any] = {"t256": (47,), "t257": (33,), "t258": (bits,), "t259": (compression,), "t278": (10,)}
    strip_tags: dict[str, Any] = {"t273": tuple(starts), "t279": tuple(map(len, strips))}
    file = tiff(np.frombuffer(data, np.uint8)[None], **tags, **strip_tags)
    assert np.array_equal(decode_label(file, as_index=True), numbers)
    assert np.array_equal(decode_image(file, RULES)[..., 0], numbers * (255 // (2**bits - 1)))
    if compression == 8:
        with pytest.raises(BadPair, match="is damaged"):
            decode_label(file.replace(strips[2][-4:], b"\0\0\0\0"), as_index=True)
        with pytest.raises(BadPair, match="cut short"):
            decode_label(
                tiff(np.frombuffer(data, np.uint8)[None], **{**tags, "t256": (99,)}, **strip_tags), as_index=True
            )


@pytest.mark.parametrize("scale", [257, 256, 1])
def test_a_palette_tiff_gives_indices_or_colours(scale: int) -> None:
    """TIFF palettes have 16 bits per colour; like libtiff, accept files whose writer stored 8."""
    palette = np.zeros((256, 3), np.uint16)
    palette[:4] = COLOURS.astype(np.uint16) * scale
    data = tiff(INDEX, t262=(3,), t320=tuple(palette.T.reshape(-1).tolist()))
    assert np.array_equal(decode_label(data, as_index=True), INDEX)
    assert np.array_equal(decode_label(data, as_index=False), COLOURS[INDEX])


@pytest.mark.parametrize("orientation", [1, 6, 9])
def test_a_tiff_is_turned_by_its_tag(orientation: int) -> None:
    wanted = {1: IMAGE, 6: np.rot90(IMAGE, -1), 9: IMAGE}[orientation]
    assert np.array_equal(decode_image(tiff(IMAGE, t274=(orientation,)), RULES), wanted)


REFUSED_TIFFS: list[tuple[str, bytes, str]] = [
    ("a BigTIFF of other offsets", b"II+\0\4" + tiff(INDEX)[5:], "is not a BigTIFF that follows the standard"),
    ("a BigTIFF without an end", b"II+\0\10\0\0\0" + b"\xff" * 8, "has the offset 18446744073709551615"),
    ("old JPEG", tiff(IMAGE, t259=(6,)), "compressed by JPEG as TIFF 6 had it"),
    ("JPEG of 16 bits", tiff(IMAGE.astype(np.uint16), t259=(7,)), "JPEG and 3 channels of 16 bits"),
    ("JPEG with alpha", tiff(with_alpha(IMAGE, 1), t259=(7,)), "JPEG and 4 channels of 8 bits"),
    ("YCbCr without JPEG", tiff(IMAGE, t262=(6,)), "a TIFF of YCbCr"),
    ("CMYK", tiff(with_alpha(IMAGE, 1), t262=(5,)), "a TIFF of CMYK"),
    (
        "5 channels",
        tiff(np.zeros((4, 4, 5), np.uint8), t338=(0, 0)),
        "has 5 bands of 8 bits, which",
    ),
    ("4 bands", tiff(with_alpha(IMAGE, 1), t338=(0,)), "has 4 bands of 8 bits, which"),
    ("1 bit of three", tiff(IMAGE, t258=(1, 1, 1)), "a TIFF with 1 bits that is not gray"),
    ("predictor of 1 bit", tiff(INDEX, t258=(1,), t317=(2,)), "predictor 2"),
    ("signed", tiff(INDEX.astype(np.int64)), "signed numbers with 64 bits"),
    ("quadruples", tiff(INDEX, t258=(128,), t339=(3,)), "floating-point numbers with 128 bits"),
    ("other depths", tiff(IMAGE, t258=(8, 8, 16)), r"whose tag BitsPerSample \(258\) has the numbers"),
    ("outside", tiff(IMAGE, t273=(10_000,)), "the block at row 0, column 0 is cut short"),
    ("too few", tiff(IMAGE, t278=(8,)), "has 1 blocks and needs 5"),
    ("too short", tiff(IMAGE, t279=(4000,)), "is cut short"),
    ("no rows in a strip", tiff(IMAGE, t278=(0,)), "its blocks are 0x47"),
    ("no colours", tiff(INDEX, t262=(3,)), "its palette has 0 numbers"),
    ("bomb", tiff(INDEX, t256=(60_000,), t257=(60_000,)), "claims 60000x60000 pixels"),
    ("a code too early", tiff(INDEX, t259=(5,)), "LZW has a code that is not known yet|is cut short"),
    ("no zlib", tiff(INDEX, t259=(8,)), "is damaged"),
]


# BMP


@pytest.mark.parametrize("upward", [True, False])
@pytest.mark.parametrize("bits", [1, 4, 8])
def test_a_palette_bmp_gives_indices_or_colours(bits: int, upward: bool) -> None:
    numbers = INDEX & (2**bits - 1)
    spread = np.unpackbits(numbers[..., None], axis=-1)[..., 8 - bits :].reshape(33, -1)
    palette = np.pad(COLOURS[:, ::-1], ((0, 0), (0, 1)))[: 2**bits]
    data = bmp(np.packbits(spread, axis=-1), 47, bits, palette.tobytes(), upward)
    assert np.array_equal(decode_label(data, as_index=True), numbers)
    assert np.array_equal(decode_label(data, as_index=False), COLOURS[numbers])
    assert np.array_equal(decode_image(data, RULES), COLOURS[numbers])


@pytest.mark.parametrize("upward", [True, False])
def test_a_colour_bmp_gives_its_colours(upward: bool) -> None:
    data = bmp(IMAGE[..., ::-1].reshape(33, -1), 47, 24, upward=upward)
    assert np.array_equal(decode_image(data, RULES), IMAGE)
    unused = np.dstack([IMAGE[..., ::-1], INDEX])
    assert np.array_equal(decode_image(bmp(unused.reshape(33, -1), 47, 32, upward=upward), RULES), IMAGE)


REFUSED_BMPS: list[tuple[str, bytes, str]] = [
    ("RLE", bmp(INDEX, 47, 8, bytes(16), kind=1), "compressed by RLE8"),
    ("16 bits", bmp(np.zeros((2, 4), np.uint8), 2, 16), "16 bits per pixel"),
    ("own channels", bmp(np.zeros((2, 8), np.uint8), 2, 32, bytes(16), kind=3), "custom channel masks"),
    ("no columns", bmp(INDEX, 0, 8, bytes(16)), "0 columns"),
    ("bomb", bmp(INDEX, 2**31 - 1, 8, bytes(16)), "is cut short"),
    ("header of OS/2", b"BM" + bytes(12) + struct.pack("<I", 16) + bytes(99), "header of 16 bytes"),
    (
        "pixels in the palette",
        bmp(INDEX, 47, 8, bytes(16)).replace(b"F\0\0\0", b"B\0\0\0", 1),
        "overlaps its pixels",
    ),
    ("beyond the palette", bmp(INDEX, 47, 8, bytes(8)), "uses index 3 of a palette with 2"),
]


# WebP

LOSSLESS = (cv2.IMWRITE_WEBP_QUALITY, 101)


def test_a_lossless_webp_gives_its_pixels_and_may_be_a_label() -> None:
    data = encoded_as(".webp", IMAGE, *LOSSLESS)
    assert np.array_equal(decode_image(data, RULES), IMAGE)
    assert np.array_equal(decode_label(data, as_index=False), IMAGE)
    with pytest.raises(BadPair, match="transparent"):
        decode_image(encoded_as(".webp", with_alpha(IMAGE, 0), *LOSSLESS), RULES)


def test_a_lossy_webp_is_accepted_as_image_and_refused_as_label() -> None:
    data = encoded_as(".webp", SMOOTH, cv2.IMWRITE_WEBP_QUALITY, 90)
    assert np.array_equal(decode_image(data, RULES), opencv_rgb(data))
    assert read_header(BytesIO(data)).size == (33, 47)
    with pytest.raises(BadPair, match="lossy compression"):
        decode_label(data, as_index=False)


def test_a_webp_is_turned_by_its_exif_and_refused_if_animated_or_cut() -> None:
    plain = encoded_as(".webp", IMAGE, *LOSSLESS)
    size = struct.pack("<I", 46)[:3] + struct.pack("<I", 32)[:3]
    extended = bytes((8, 0, 0, 0)) + size
    pixels = plain[20 : 20 + struct.unpack_from("<I", plain, 16)[0]]
    turned = webp_chunks((b"VP8X", extended), (b"VP8L", pixels), (b"EXIF", exif(6)))
    assert np.array_equal(decode_image(turned, RULES), np.rot90(IMAGE, -1))
    for animated in (webp_chunks((b"VP8X", b"\2" + extended[1:])), webp_chunks((b"ANIM", bytes(6)))):
        with pytest.raises(BadPair, match="animated"):
            decode_image(animated, RULES)
    for length in (12, 20, 30, len(plain) // 2, len(plain) - 1):
        with pytest.raises(BadPair, match=r"cut short|within its header"):
            decode_image(plain[:length], RULES)
    with pytest.raises(BadPair, match="without pixels"):
        decode_image(webp_chunks((b"EXIF", exif(1))), RULES)


# All kinds


OTHERS = {
    b"GIF89a": "a GIF",
    b"\x76\x2f\x31\x01": "an OpenEXR",
    b"\0\0\0\x20ftypavif": "a HEIF or AVIF",
    b"P6\n2 2": "a PNM",
}
REFUSED_PICTURES: list[tuple[str, bytes, str]] = [
    *((f"JPEG: {name}", data, "is damaged") for name, data in DAMAGED_JPEGS.items()),
    *((f"PNG: {name}", data, "cannot be decoded: it is damaged") for name, data in WRONG_PNGS.items()),
    *((f"PNG: {message}", data, message) for data, message in NAMED_PNGS),
    *((f"TIFF: {name}", data, message) for name, data, message in REFUSED_TIFFS),
    *((f"BMP: {name}", data, message) for name, data, message in REFUSED_BMPS),
    *((name, start + bytes(99), f"is {name}, which cannot be packed; convert") for start, name in OTHERS.items()),
]


@pytest.mark.parametrize(("name", "data", "message"), REFUSED_PICTURES, ids=[row[0] for row in REFUSED_PICTURES])
def test_damaged_and_other_pictures_are_refused_by_name(name: str, data: bytes, message: str) -> None:
    assert np.array_equal(decode_image(png_of(STREAM), RULES), IMAGE)
    decode_image(PLAIN_JPEG, RULES)
    with pytest.raises(BadPair, match=message):
        decode_image(data, ImageRules((0, 255)) if name.startswith("TIFF") else RULES)


@pytest.mark.parametrize("suffix", [".png", ".tif", ".webp", ".bmp"])
def test_alpha_is_dropped_if_opaque_or_with_alpha_drop(suffix: str) -> None:
    options = LOSSLESS if suffix == ".webp" else ()
    opaque, holey = (encoded_as(suffix, with_alpha(IMAGE, least), *options) for least in (1, 0))
    if suffix in (".tif", ".bmp"):  # OpenCV does not say that its fourth channel is alpha
        made = {".tif": tiff, ".bmp": bmp_with_alpha}[suffix]
        opaque, holey = made(with_alpha(IMAGE, 1)), made(with_alpha(IMAGE, 0))
    assert np.array_equal(decode_image(opaque, RULES), IMAGE)
    with pytest.raises(BadPair, match=r"transparent pixels.*--alpha drop"):
        decode_image(holey, RULES)
    dropped = decode_image(holey, DROP)
    assert np.array_equal(
        np.delete(dropped.reshape(-1, 3), 3 * 47 + 4, 0), np.delete(IMAGE.reshape(-1, 3), 3 * 47 + 4, 0)
    )
    assert np.array_equal(decode_label(opaque, as_index=True), IMAGE)
    assert np.array_equal(decode_label(holey, as_index=True)[..., 3], with_alpha(IMAGE, 0)[..., 3])


def test_a_palette_label_with_transparent_colours_has_an_alpha_channel() -> None:
    palette, opacity = chunk(b"PLTE", COLOURS.tobytes()), chunk(b"tRNS", b"\xff\0\xff\xff")
    data = png(INDEX, 8, 3, palette, opacity)
    assert np.array_equal(decode_label(data, as_index=True), INDEX)
    colours = decode_label(data, as_index=False)
    assert np.array_equal(colours[..., :3], COLOURS[INDEX])
    assert np.array_equal(colours[..., 3], np.where(INDEX == 1, 0, 255))


def test_gray_with_an_opaque_alpha_is_a_label_of_numbers() -> None:
    def gray_alpha(alpha: NDArray[np.uint8]) -> bytes:
        return png(np.dstack([INDEX, alpha]).reshape(33, -1), 8, 4)

    opaque = np.full_like(INDEX, 255)
    assert np.array_equal(decode_label(gray_alpha(opaque), as_index=True), INDEX)
    opaque[0, 0] = 0
    assert decode_label(gray_alpha(opaque), as_index=True).shape == (33, 47, 4)


def test_images_of_sixteen_bits_need_a_range_and_keep_all_their_bits() -> None:
    wide = np.random.default_rng(0).integers(0, 1 << 16, (9, 8, 3), dtype=np.uint16)
    data = png(wide.astype(">u2").view(np.uint8).reshape(9, -1), 16, 2)
    with pytest.raises(BadPair, match="16 bits per channel, not 8; give --image-range LOW,HIGH"):
        decode_image(data, RULES)
    pixels = decode_image(data, ImageRules((0, 65535)))
    assert pixels.dtype == np.float32
    assert np.array_equal(np.rint(pixels * 65535), wide)
    clipped = decode_image(data, ImageRules((1000, 3000)))
    assert np.array_equal(clipped, np.clip((wide.astype(np.float32) - 1000) / np.float32(2000), 0, 1))


def test_the_image_range_counts_in_numbers_of_the_file() -> None:
    bits = np.random.default_rng(0).integers(0, 2, (4, 16), dtype=np.uint8)
    one_bit = png(np.packbits(bits, axis=-1), 1, 0)
    assert np.array_equal(decode_image(one_bit, ImageRules((0, 1)))[..., 0], bits)
    assert np.array_equal(decode_image(png(INDEX, 8, 0), ImageRules((0, 4)))[..., 1], INDEX / 4)
    assert np.array_equal(decode_image(tiff(INDEX.astype(np.float32)), ImageRules((-1, 7)))[..., 2], (INDEX + 1) / 8)


def test_nan_is_refused_and_infinity_is_clipped() -> None:
    pixels = INDEX.astype(np.float32)
    pixels[0, 0] = np.inf
    assert decode_image(tiff(pixels), ImageRules((0, 3)))[0, 0, 0] == 1
    pixels[0, 0] = np.nan
    with pytest.raises(BadPair, match="not numbers"):
        decode_image(tiff(pixels), ImageRules((0, 3)))
    with pytest.raises(BadPair, match="labels must be integers"):
        decode_label(tiff(pixels), as_index=True)


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif", ".bmp", ".webp"])
def test_more_pixels_than_allowed_are_refused(suffix: str) -> None:
    data = encoded_as(suffix, IMAGE)
    decode_image(data, ImageRules(max_pixels=33 * 47))
    with pytest.raises(BadPair, match=re.escape("claims 47x33 pixels; 1 to 1550 are allowed (--max-p")):
        decode_image(data, ImageRules(max_pixels=33 * 47 - 1))
    with pytest.raises(BadPair, match="1 to 1550 are allowed"):
        decode_label(data, as_index=True, lossy=True, max_pixels=33 * 47 - 1)


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif", ".bmp", ".webp"])
def test_no_earlier_picture_shows_through(suffix: str) -> None:
    first, second = encoded_as(suffix, IMAGE), encoded_as(suffix, IMAGE[::-1].copy())
    kept = decode_image(first, RULES)
    before = kept.copy()
    other = decode_image(second, RULES)
    assert np.array_equal(kept, before)
    assert not np.shares_memory(kept, other)
    assert kept.flags.writeable


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_that_is_cut_is_always_refused(kind: str) -> None:
    assert drill(kind, "cut", 100) == {REFUSED: 100}


@pytest.mark.parametrize("kind", ["PNG", "TIFF, deflate"])
def test_formats_with_a_checksum_refuse_every_flipped_bit(kind: str) -> None:
    assert drill(kind, "bit flipped", 100) == {REFUSED: 100}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("PNG", "TIFF, deflate")])
def test_other_formats_decode_or_refuse_a_flipped_bit(kind: str) -> None:
    assert drill(kind, "bit flipped", 100).total() == 100
