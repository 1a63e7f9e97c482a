"""The pages of a TIFF as the slices of a volume. Each is read as if it were the only page of its file."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import SEEK_END
from itertools import accumulate, islice
from typing import BinaryIO, NamedTuple

from packer.decoding.header import Header
from packer.decoding.raw_file import naming
from packer.decoding.rules import MOST_PIXELS, check_size
from packer.decoding.tiff.directory import (
    STRIP_BYTES,
    STRIP_OFFSETS,
    TILE_BYTES,
    TILE_OFFSETS,
    Directory,
    directories,
    read_directory,
)
from packer.decoding.tiff.picture import SIGNATURES, header_of
from packer.errors import BadPair
from readers.contract.tiles import Size, size_text

MOST_PAGES, MOST_NUMBERS, MOST_BYTES = 9_999, 1 << 32, 1 << 31
_LONG, _BYTES = 4, 7
"""The types of entries."""
_MOST_LONG = (1 << 32) - 1
"""Stands for larger numbers of a BigTIFF, such as those for a strip of all rows."""
_OFFSETS = {STRIP_OFFSETS: STRIP_BYTES, TILE_OFFSETS: TILE_BYTES}


class Pages(NamedTuple):
    """The header of a volume, which all pages of its file share, and where the directory of each page begins."""

    header: Header
    offsets: tuple[int, ...]

    @property
    def size(self) -> Size:
        return self.header.size


def read_pages(file: BinaryIO, max_pixels: int = MOST_PIXELS) -> Pages:
    """Read the headers of all pages. Raise BadPair if one cannot be decoded, or is unlike the first."""
    if not file.read(4).startswith(SIGNATURES):
        raise BadPair("is not a TIFF; --volumes packs scans and TIFFs with many pages")
    with _whole_headers():
        offsets = tuple(islice(directories(file), MOST_PAGES + 1))
        first = None
        for number, offset in enumerate(offsets):
            with naming(f"page {number}"):
                header = header_of(read_directory(file, offset))
                check_size(header.stored_height, header.stored_width, header.channels, max_pixels)
                first = first or header
                if header != first:
                    raise BadPair(f"is {_text(header)}, and page 0 is {_text(first)}; all pages must be alike")
    if first is None or len(offsets) > MOST_PAGES:
        raise BadPair(f"has {'more' if offsets else 'no'} pages; 1 to {MOST_PAGES} are read")
    numbers = first.stored_height * first.stored_width * first.channels * len(offsets)
    if numbers > MOST_NUMBERS:
        raise BadPair(f"claims {numbers:,} numbers; {MOST_NUMBERS:,} are read at most")
    return Pages(replace(first, slices=len(offsets)), offsets)


def page_alone(file: BinaryIO, offset: int) -> bytes:
    """Return a file whose only page is the one with its directory at `offset`: what decides its pixels, and no more."""
    with _whole_headers():
        tiff = read_directory(file, offset)
    numbers, blocks = dict(tiff.numbers), list[bytes]()
    for tag, counts in _OFFSETS.items():
        if tag in numbers:
            blocks += _blocks(file, numbers[tag], numbers.get(counts, ()))
    after = 8 + 2 + 12 * (len(numbers) + len(tiff.texts)) + 4
    sizes = [*(4 * len(tag_numbers) for tag_numbers in numbers.values()), *map(len, tiff.texts.values())]
    end = after + sum(size for size in sizes if size > 4)
    starts = tuple(accumulate(map(len, blocks), initial=end))[:-1]
    numbers |= {tag: starts for tag in _OFFSETS if tag in numbers}
    return _file(Directory(tiff.order, numbers, tiff.texts), after) + b"".join(blocks)


@contextmanager
def _whole_headers() -> Iterator[None]:
    """Refuse a file that ends within a header."""
    try:
        yield
    except (struct.error, IndexError, KeyError) as error:
        raise BadPair("ends within a header") from error


def _blocks(file: BinaryIO, offsets: Sequence[int], counts: Sequence[int]) -> list[bytes]:
    """Return the strips or tiles of a page."""
    length = file.seek(0, SEEK_END)
    if len(offsets) != len(counts) or sum(counts) > length:
        raise BadPair(f"is damaged: its {len(offsets)} blocks claim {sum(counts)} of {length} bytes")
    if sum(counts) > MOST_BYTES:
        raise BadPair(f"has a page of {sum(counts):,} bytes; {MOST_BYTES:,} are read at most")
    blocks = list[bytes]()
    for offset, count in zip(offsets, counts, strict=True):
        if offset + count > length:
            raise BadPair("is damaged: a block is outside the file")
        file.seek(offset)
        blocks.append(file.read(count))
    return blocks


def _file(tiff: Directory, after: int) -> bytes:
    """Return a file without blocks, whose values begin at `after`, behind the directory."""
    contents = [(tag, _BYTES, len(text), text) for tag, text in tiff.texts.items()]
    for tag, tag_numbers in tiff.numbers.items():
        small = (min(number, _MOST_LONG) for number in tag_numbers)
        contents.append((tag, _LONG, len(tag_numbers), struct.pack(f"{tiff.order}{len(tag_numbers)}I", *small)))
    entries, values = list[bytes](), list[bytes]()
    for tag, kind, count, content in sorted(contents):
        inline = content.ljust(4, b"\0")
        if len(content) > 4:
            inline = struct.pack(tiff.order + "I", after)
            values.append(content)
            after += len(content)
        entries.append(struct.pack(tiff.order + "HHI", tag, kind, count) + inline)
    head = {"<": b"II", ">": b"MM"}[tiff.order] + struct.pack(tiff.order + "HIH", 42, 8, len(entries))
    return b"".join([head, *entries, bytes(4), *values])


def _text(header: Header) -> str:
    return f"{header} of {size_text(header.size)}"
