"""The members of a tar file, listed strictly: nothing is unpacked, and no size is believed before the file has it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from packer.errors import BadPair

BLOCK = 512
_MOST_NAME = 1 << 16
"""The most bytes of a long name, or of the extended header of a member."""
_FILES, _FOLDER, _LINKS = b"\x0007", b"5", b"12"
_LONG_NAME, _LONG_LINK, _EXTENDED, _GLOBAL = b"L", b"K", b"x", b"g"
_RECORD = re.compile(rb"([1-9]\d{0,5}) ([^=]+)=")
_COMPRESSED = {b"\x1f\x8b": "gunzip", b"BZh": "bunzip2", b"\xfd7zXZ": "unxz", b"\x28\xb5\x2f\xfd": "unzstd"}


class Member(NamedTuple):
    """A regular file in a tar, or a link."""

    name: str
    start: int
    size: int
    is_link: bool


def is_tar(head: bytes) -> bool:
    """Return whether a file that begins with these bytes is a tar."""
    try:
        return len(head) >= BLOCK and _checksum_fits(head[:BLOCK])
    except BadPair:
        return False


def check_uncompressed(head: bytes) -> None:
    """Refuse a compressed file: its rows cannot be read in place."""
    for magic, command in _COMPRESSED.items():
        if head.startswith(magic):
            raise BadPair(f"is compressed, so that no row can be read in place; unpack it: {command}")


def members(file: BinaryIO, size: int) -> Iterator[Member]:
    """Yield the files and links of a tar of this size. Raise BadPair where it is damaged or cut off."""
    at, long = 0, dict[str, str]()
    while True:
        file.seek(at)
        header = file.read(BLOCK)
        if not at:
            check_uncompressed(header)
        if header == bytes(BLOCK):
            return _check_end(file, long)
        if len(header) < BLOCK:
            raise BadPair(f"ends at byte {size} without the mark of its end; it was cut off")
        if not _checksum_fits(header):
            raise BadPair(f"is damaged: the header at byte {at} does not have its checksum")
        kind, content = header[156:157], at + BLOCK
        is_header = kind in (_LONG_NAME, _LONG_LINK, _EXTENDED, _GLOBAL)
        length = _number(header[124:136], at) if is_header or "size" not in long else int(long["size"])
        if length > size - content:
            raise BadPair(f"ends at byte {size}, within a member of {length} bytes at byte {at}; it was cut off")
        at = content + -(-length // BLOCK) * BLOCK
        if is_header:
            if length > _MOST_NAME:
                raise BadPair(f"is damaged: a name of {length} bytes before byte {at}")
            extended = _long(kind, file.read(length), at)
            if extended and kind == _GLOBAL:
                raise BadPair(f"has one {' and '.join(extended)} for all members before byte {at}; write it again")
            long |= extended
            continue
        name = long.get("path") or _name(header)
        long = {}
        if length and (kind in _LINKS + _FOLDER or name.endswith("/")):
            raise BadPair(f"has a link or folder of {length} bytes, which programs read differently: {name[:80]}")
        if kind in _LINKS or (kind in _FILES and not name.endswith("/")):
            yield Member(name, content, length, kind in _LINKS)
        elif kind not in _FILES + _FOLDER:
            raise BadPair(f"has a member of the type {kind.decode('ascii', 'replace')!r}: {name[:80]}")


def _check_end(file: BinaryIO, long: dict[str, str]) -> None:
    """Refuse a name without its member, and anything but zeros after the end: a second tar there has rows, too."""
    if long:
        raise BadPair("ends after the header of a member, without the member; it was cut off")
    while rest := file.read(1 << 20):
        if rest.count(0) != len(rest):
            raise BadPair("has more after the mark of its end; tars that were joined have to be separate files")


def _checksum_fits(header: bytes) -> bool:
    return sum(header) - sum(header[148:156]) + 8 * 32 == _number(header[148:156], 0)


def _number(field: bytes, at: int) -> int:
    """Return an octal number, or a large one as GNU writes it."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b" \0")
    if not re.fullmatch(rb"[0-7]{0,12}", digits):
        raise BadPair(f"is damaged: the header at byte {at} has a number {digits[:20]!r}")
    return int(digits or b"0", 8)


def _name(header: bytes) -> str:
    name = header[:100].partition(b"\0")[0]
    prefix = header[345:500].partition(b"\0")[0] if header[257:263] == b"ustar\0" else b""
    return _text(prefix + b"/" + name if prefix else name)


def _long(kind: bytes, content: bytes, at: int) -> dict[str, str]:
    """Return the path and the size that an extended header or a long name gives to the next member."""
    if kind == _LONG_NAME:
        return {"path": _text(content.partition(b"\0")[0])}
    if kind == _LONG_LINK:
        return {}
    fields, start = dict[str, str](), 0
    while start < len(content):
        record = _RECORD.match(content, start)
        end = start + int(record[1]) if record else 0
        if not record or not record.end() < end <= len(content) or content[end - 1 : end] != b"\n":
            raise BadPair(f"is damaged: the extended header before byte {at} has a wrong length")
        name, value = _text(record[2]), content[record.end() : end - 1]
        if name.startswith("GNU.sparse"):
            raise BadPair(f"has a sparse member before byte {at}; write it again without --sparse")
        if name == "size" and not re.fullmatch(rb"\d{0,18}", value):
            raise BadPair(f"is damaged: the extended header before byte {at} has the size {value[:20]!r}")
        if name in ("path", "size"):
            fields[name] = _text(value)
        start = end
    return {name: value for name, value in fields.items() if value}  # an empty one counts as none


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
