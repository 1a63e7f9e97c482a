"""Find EXIF and XMP in the text chunks of a PNG: XMP by its standard, raw profiles as ImageMagick writes them."""

from __future__ import annotations

import zlib

from packer.decoding.orientation import MOST_METADATA, Orientation, too_much_metadata
from packer.errors import BadPair

TEXTS = (b"tEXt", b"zTXt", b"iTXt")
MOST_KEYWORD = 79
"""The longest keyword that PNG allows."""
_XMP = b"XML:com.adobe.xmp"
_RAW = b"raw profile type "
_PROFILES = (b"exif", b"app1", b"xmp")
_XMP_IN_APP1 = b"http://ns.adobe.com/xap/1.0/\0"


def may_turn(start: bytes) -> bool:
    """Return whether a text chunk that begins with these bytes can hold an orientation."""
    keyword = start.partition(b"\0")[0]
    return keyword == _XMP or _profile(keyword) in _PROFILES


def add_text(kind: bytes, chunk: bytes, orientation: Orientation) -> None:
    """Add the orientation in a text chunk for which `may_turn` is true."""
    keyword, _, content = chunk.partition(b"\0")
    text = _text(kind, content)
    if keyword == _XMP:
        orientation.add_xmp(text)
        return
    block = _from_hex(text)
    if block.startswith(_XMP_IN_APP1) or _profile(keyword) == b"xmp":
        orientation.add_xmp(block)
    else:
        orientation.add_exif(block)


def _profile(keyword: bytes) -> bytes:
    """Return the name of a raw profile; nothing if the keyword is not of one."""
    keyword = keyword.lower()
    return keyword[len(_RAW) :].strip() if keyword.startswith(_RAW) else b""


def _text(kind: bytes, content: bytes) -> bytes:
    if kind == b"tEXt":
        return content
    if kind == b"zTXt":
        return _inflated(content[1:])
    is_compressed, rest = content[:1] == b"\1", content[2:]
    text = rest.split(b"\0", 2)[-1]  # behind the language and the translated keyword
    return _inflated(text) if is_compressed else text


def _inflated(text: bytes) -> bytes:
    stream = zlib.decompressobj()
    try:
        whole = stream.decompress(text, MOST_METADATA + 1)
    except zlib.error as error:
        raise _unreadable() from error
    if len(whole) > MOST_METADATA:
        raise too_much_metadata()
    return whole


def _from_hex(text: bytes) -> bytes:
    """Return the bytes of a raw profile: a line with its name, one with its length, then hexadecimal digits."""
    try:
        return bytes.fromhex(text.split(None, 2)[2].decode("ascii"))
    except (IndexError, ValueError) as error:
        raise _unreadable() from error


def _unreadable() -> BadPair:
    return BadPair("has EXIF or XMP in a text chunk that is damaged, so it may be turned; remove its metadata")
