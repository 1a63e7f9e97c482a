"""An orientation is found in every place where a picture can hide it, or the picture is refused."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO
from typing import Any

import cv2
import numpy as np
import pytest
from conftest import scene
from handmade import chunk, encoded, exif, jpeg_with, png, tiff, webp_chunks

from packer.decoding.decode import decode_image, decode_label
from packer.decoding.file_types import read_header
from packer.decoding.orientation import MOST_METADATA, xmp_orientation
from packer.decoding.rules import ImageRules
from packer.errors import BadPair

IMAGE, INDEX = scene(7, 33, 47)
EXIF = b"Exif\0\0" + exif(6)
APP1_XMP = b"http://ns.adobe.com/xap/1.0/\0"
TIFF_NAMESPACE = b'xmlns:%s="http://ns.adobe.com/tiff/1.0/"'
XMP = b"<rdf:Description " + TIFF_NAMESPACE % b"tiff" + b' tiff:Orientation="6"/>'
UPRIGHT_XMP = XMP.replace(b'"6"', b'"1"')
LONG = b" " * 70_000


def raw_profile(name: bytes, block: bytes) -> bytes:
    """Return a profile as ImageMagick writes it into a text: name, length and lines of hexadecimal digits."""
    digits = block.hex()
    lines = "\n".join(digits[start : start + 72] for start in range(0, len(digits), 72))
    return b"\n%s\n%8d\n%s\n" % (name, len(block), lines.encode())


def texts(keyword: bytes, text: bytes) -> dict[str, bytes]:
    """Return a text as each chunk that can hold it."""
    packed = zlib.compress(text)
    return {
        "tEXt": chunk(b"tEXt", keyword + b"\0" + text),
        "zTXt": chunk(b"zTXt", keyword + b"\0\0" + packed),
        "iTXt": chunk(b"iTXt", keyword + b"\0\0\0en\0Schl\xc3\xbcssel\0" + text),
        "packed iTXt": chunk(b"iTXt", keyword + b"\0\1\0\0\0" + packed),
    }


def named(keyword: bytes, text: bytes) -> dict[str, bytes]:
    return {f"{keyword.decode()} in {kind}": content for kind, content in texts(keyword, text).items()}


TURNING = {
    "eXIf": chunk(b"eXIf", exif(6)),
    "long eXIf": chunk(b"eXIf", exif(6) + LONG),
    **named(b"Raw profile type exif", raw_profile(b"exif", EXIF)),
    **named(b"raw profile type EXIF", raw_profile(b"exif", exif(6))),
    **named(b"Raw profile type APP1", raw_profile(b"app1", EXIF)),
    **named(b"Raw profile type app1", raw_profile(b"app1", APP1_XMP + XMP)),
    **named(b"Raw profile type xmp", raw_profile(b"xmp", XMP)),
    **named(b"XML:com.adobe.xmp", XMP),
    "long XMP": texts(b"XML:com.adobe.xmp", LONG + XMP)["iTXt"],
}


def oriented(data: bytes) -> int:
    return read_header(BytesIO(data)).orientation


@pytest.mark.parametrize("name", TURNING)
@pytest.mark.parametrize("late", [False, True], ids=["before the pixels", "after them"])
def test_a_png_is_turned_by_every_chunk_that_holds_its_orientation(name: str, late: bool) -> None:
    plain = png(IMAGE.reshape(33, -1), 8, 2)
    at = len(plain) - 12 if late else 33
    data = plain[:at] + TURNING[name] + plain[at:]
    assert np.array_equal(decode_image(data, ImageRules()), cv2.rotate(IMAGE, cv2.ROTATE_90_CLOCKWISE))
    label = png(INDEX, 8, 0, TURNING[name])
    assert np.array_equal(decode_label(label, as_index=True), cv2.rotate(INDEX, cv2.ROTATE_90_CLOCKWISE))


def test_the_chunk_of_the_standard_counts_more_than_a_text_and_exif_more_than_xmp() -> None:
    upright, profile = chunk(b"eXIf", exif(1)), TURNING["Raw profile type exif in zTXt"]
    for extra in ((upright, profile), (profile, upright), (TURNING["XML:com.adobe.xmp in iTXt"], upright)):
        assert oriented(png(INDEX, 8, 0, *extra)) == 1
    assert oriented(png(INDEX, 8, 0, texts(b"XML:com.adobe.xmp", UPRIGHT_XMP)["iTXt"], profile)) == 6


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (chunk(b"orNT", b"\6"), "chunk orNT alone"),
        (chunk(b"zTXt", b"Raw profile type exif\0\0no zlib"), "text chunk that is damaged"),
        (chunk(b"tEXt", b"Raw profile type exif\0\nexif\n 2\nxy\n"), "text chunk that is damaged"),
        (chunk(b"tEXt", b"Raw profile type exif\0"), "text chunk that is damaged"),
        (texts(b"XML:com.adobe.xmp", bytes(MOST_METADATA + 1))["packed iTXt"], "more than 16 MiB of EXIF or XMP"),
        (chunk(b"eXIf", bytes(MOST_METADATA + 1)), "more than 16 MiB of EXIF or XMP"),
    ],
)
def test_a_png_whose_orientation_cannot_be_known_is_refused(extra: bytes, message: str) -> None:
    with pytest.raises(BadPair, match=message):
        decode_image(png(INDEX, 8, 0, extra), ImageRules())


def test_other_texts_of_any_size_do_not_matter() -> None:
    bomb = zlib.compress(bytes(MOST_METADATA + 1))
    for extra in (
        chunk(b"zTXt", b"Comment\0\0" + bomb),
        chunk(b"tEXt", b"Raw profile type iptc\0what"),
        chunk(b"orNT", b"\1"),
    ):
        assert oriented(png(INDEX, 8, 0, extra)) == 1
    assert oriented(png(INDEX, 8, 0, chunk(b"orNT", b"\6"), TURNING["eXIf"])) == 6


def test_a_jpeg_is_turned_by_exif_and_by_short_and_long_xmp() -> None:
    plain = encoded(".jpg", cv2.GaussianBlur(IMAGE, (0, 0), 3))
    packet = b" " * 60_000 + XMP
    parts = [
        b"http://ns.adobe.com/xmp/extension/\0" + bytes(32) + struct.pack(">II", len(packet), start) + part
        for start, part in ((0, packet[:-9]), (len(packet) - 9, packet[-9:]))
    ]
    assert oriented(jpeg_with(plain, APP1_XMP + XMP, b"Exif\0\0" + exif(3))) == 3
    for segments in ([EXIF], [b"Exif\0\xff" + exif(6)], [APP1_XMP + XMP], parts):
        data = jpeg_with(plain, *segments)
        assert oriented(data) == 6
        assert np.array_equal(
            decode_image(data, ImageRules()), cv2.rotate(decode_image(plain, ImageRules()), cv2.ROTATE_90_CLOCKWISE)
        )


def test_a_webp_is_turned_by_the_chunks_exif_and_xmp_of_any_length() -> None:
    ok, plain = cv2.imencode(".webp", IMAGE, (cv2.IMWRITE_WEBP_QUALITY, 101))
    assert ok
    pixels = plain.tobytes()[12:]
    content = pixels[8 : 8 + struct.unpack_from("<I", pixels, 4)[0]]
    canvas = struct.pack("<I", 0x0C) + struct.pack("<I", 46)[:3] + struct.pack("<I", 32)[:3]
    for kind, block in ((b"EXIF", exif(6)), (b"EXIF", exif(6) + LONG), (b"XMP ", XMP), (b"XMP ", LONG + XMP)):
        data = webp_chunks((b"VP8X", canvas), (pixels[:4], content), (kind, block))
        assert oriented(data) == 6
        assert decode_image(data, ImageRules()).shape == (47, 33, 3)
    both = webp_chunks((b"VP8X", canvas), (pixels[:4], content), (b"XMP ", XMP), (b"EXIF", exif(1)))
    assert oriented(both) == 1


def test_a_tiff_is_turned_by_xmp_if_it_has_no_tag_of_its_own() -> None:
    for packet, tag, expected in (
        (XMP, None, 6),
        (LONG + XMP, None, 6),
        (XMP, 3, 3),
        (XMP, 1, 1),
    ):
        tags: dict[str, Any] = {"t700": (0x5A5A5A5A,) * len(packet), **({"t274": (tag,)} if tag else {})}
        data = bytearray(tiff(INDEX, **tags))
        at = data.index(b"Z" * 4 * len(packet))
        data[at : at + len(packet)] = packet
        entry = data.index(struct.pack("<HHI", 700, 4, len(packet)))
        data[entry : entry + 4] = struct.pack("<HH", 700, 1)
        assert oriented(bytes(data)) == expected


@pytest.mark.parametrize(
    "packet",
    [
        XMP,
        XMP.decode().encode("utf-16"),
        b"<tiff:Orientation>6</tiff:Orientation>",
        b'<tiff:Orientation rdf:datatype="integer"> 6 </tiff:Orientation>',
        b"<x " + TIFF_NAMESPACE % b"ns1" + b" ns1:Orientation = '6'>",
    ],
)
def test_xmp_is_read_in_each_way_to_write_it(packet: bytes) -> None:
    assert xmp_orientation(packet) == 6


def test_xmp_that_is_made_to_be_slow_is_not() -> None:
    for packet in (b"tiff:Orientation " * 100_000, b"tiff:Orientation" + b" " * 1_000_000, b"xmlns:a" * 200_000):
        assert xmp_orientation(packet) is None
