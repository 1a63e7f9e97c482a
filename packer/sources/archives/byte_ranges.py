"""`ByteRanges`: archives whose pictures are plain ranges of bytes of their files."""

from __future__ import annotations

from packer.decoding.file_types import read_header
from packer.decoding.header import Header
from packer.errors import BadPair
from packer.sources.archives.archive import ArchiveSource
from packer.sources.archives.archive_files import Span
from packer.sources.archives.position import Position

MOST_BYTES = 1 << 32
"""The most bytes of a picture, which is read whole. A TIFF has no more."""


class ByteRanges(ArchiveSource):
    """An archive from which a picture is read at its place, without what lies before it."""

    def read(self, position: Position) -> bytes:
        if position.size > MOST_BYTES:
            raise BadPair(f"has {position.size} bytes; {MOST_BYTES >> 30} GiB are read at most")
        data = self.files.read(self.span(position))
        if len(data) != position.size:
            raise BadPair(f"ends after {len(data)} of {position.size} bytes")
        return data

    def header(self, position: Position) -> Header:
        with self.files.part(self.span(position)) as part:
            return read_header(part, self.max_pixels)

    def span(self, position: Position) -> Span:
        return Span(*position[:3])

    def head_span(self, position: Position) -> Span:
        return self.files.head_of(self.span(position))
