"""Tags of a TIFF that decide its pixels: one that is not read is refused, because without it pixels are wrong."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
import pytest
from conftest import scene
from handmade import tiff
from PIL import Image

from packer.decoding.decode import decode_label, header_of
from packer.decoding.tiff import directory
from packer.decoding.tiff.tag_names import DISPUTED, NAMES
from packer.errors import BadPair

INDEX = scene(7, 33, 47)[1]
NUMBERS = sorted(NAMES.keys() - DISPUTED.keys() - {347, 700})
FLOATS = np.arange(33 * 47, dtype=np.float32).reshape(33, 47)


def with_tags(tags: dict[int, int]) -> bytes:
    numbers: Any = {f"t{tag}": (number,) for tag, number in tags.items()}
    return tiff(INDEX, **numbers)


def entry_of(data: bytes, tag: int) -> int:
    """Return the place of the entry of a tag."""
    (start,) = struct.unpack_from("<I", data, 4)
    (count,) = struct.unpack_from("<H", data, start)
    entries = range(start + 2, start + 2 + 12 * count, 12)
    return next(entry for entry in entries if struct.unpack_from("<H", data, entry)[0] == tag)


def changed(data: bytes, tag: int, **entry: int) -> bytes:
    """Return a TIFF in which the entry of a tag has another type or count."""
    place, new = entry_of(data, tag), bytearray(data)
    if "kind" in entry:
        struct.pack_into("<H", new, place + 2, entry["kind"])
    if "count" in entry:
        struct.pack_into("<I", new, place + 4, entry["count"])
    return bytes(new)


def refusal(data: bytes) -> str:
    """Return why a header is refused, before any pixel is read."""
    with pytest.raises(BadPair) as bad:
        header_of(data)
    return str(bad.value)


@pytest.mark.parametrize("kind", [0, 2, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 17, 65535])
@pytest.mark.parametrize("tag", NUMBERS)
def test_a_number_of_a_type_that_is_not_read_is_refused_by_name(tag: int, kind: int) -> None:
    data = with_tags({tag: 1})
    assert f"is a TIFF whose tag {NAMES[tag]} ({tag}) has numbers of the type {kind}" in refusal(
        changed(data, tag, kind=kind)
    )


def test_numbers_of_every_type_that_is_read_decide() -> None:
    for pixels in (FLOATS, INDEX.astype(np.int16)):
        data = tiff(pixels)
        for kind in (1, 3, 4):
            assert header_of(changed(data, 339, kind=kind)) == header_of(data)
        assert header_of(data).is_float or header_of(data).is_signed


@pytest.mark.parametrize("tag", NUMBERS)
def test_a_tag_without_a_number_is_refused_by_name(tag: int) -> None:
    data = with_tags({tag: 1})
    assert f"tag {NAMES[tag]} ({tag}) is empty" in refusal(changed(data, tag, count=0))


@pytest.mark.parametrize("tag", DISPUTED)
def test_older_names_of_tags_that_decide_are_refused(tag: int) -> None:
    """libtiff takes the type of the numbers from DataType, and alpha from Matteing; other programs ignore both."""
    data = with_tags({tag: 1})
    assert f"the tag {DISPUTED[tag]} ({tag}), which some programs read and others ignore" in refusal(data)


def test_strips_with_the_sides_of_tiles_are_refused() -> None:
    """libtiff finds tiles in them, other programs strips."""
    for tags in ({322: 16}, {323: 16}, {322: 16, 323: 16}):
        assert "with tiles and no TileOffsets" in refusal(with_tags(tags))


def test_texts_are_bytes_of_any_kind() -> None:
    turned = b'xmlns:tiff="http://ns.adobe.com/tiff/1.0/" tiff:Orientation="6"'
    file = io.BytesIO()
    Image.fromarray(INDEX).save(file, "TIFF", tiffinfo={700: turned})
    for kind in (1, 2, 6, 7):
        assert header_of(changed(file.getvalue(), 700, kind=kind)).orientation == 6
    for kind in (3, 4, 12):
        assert f"tag XMP (700) has numbers of the type {kind}" in refusal(changed(file.getvalue(), 700, kind=kind))
    assert header_of(changed(file.getvalue(), 700, count=0)).orientation == 1


@pytest.mark.parametrize("tag", NUMBERS)
def test_no_tag_takes_more_numbers_than_a_picture_needs(tag: int) -> None:
    """Many tags may point to the same bytes, so each is bounded by itself."""
    most = (1 << 22) if tag in (273, 279, 322, 323, 324, 325) else (1 << 16)
    data = with_tags({tag: 1})
    assert f"tag {NAMES[tag]} ({tag}) claims {most + 1} numbers" in refusal(changed(data, tag, count=most + 1))


def test_every_tag_that_is_read_has_a_name() -> None:
    read = {value for name, value in vars(directory).items() if name.isupper() and isinstance(value, int)}
    assert {tag for tag in read if 255 < tag < 65536} == NAMES.keys() - DISPUTED.keys()
    assert np.array_equal(decode_label(tiff(INDEX), as_index=True), INDEX)
