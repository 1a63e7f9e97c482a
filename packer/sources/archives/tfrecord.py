"""TFRecord files of `tf.train.Example`: every length and every record has a checksum, and each is checked."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import BinaryIO, ClassVar

from google_crc32c import value as crc32c

from packer.decoding.file_types import kind_of
from packer.errors import BadPair
from packer.recipe.row_ref import RowRef
from packer.sources.archives.archive import ArchiveSource
from packer.sources.archives.archive_files import Span
from packer.sources.archives.field_names import image_and_label
from packer.sources.archives.position import Position
from packer.sources.archives.tf_example import Features, features_of, first_values

HEAD, TAIL = struct.Struct("<QI"), struct.Struct("<I")
"""In front of a record: its length and the checksum of the length; behind it: its own checksum."""
MOST_BYTES = 1 << 31
"""The most bytes of a record. Protocol Buffers allow no longer message."""


class TfRecordSource(ArchiveSource):
    """Records that are Examples, with the bytes of picture files in their features."""

    kind: ClassVar[str] = "tfrecord"
    suffix: ClassVar[re.Pattern[str]] = re.compile(r"\.(tfrecords?|tfrec)(-\d+-of-\d+)?$")
    has_keys: ClassVar[bool] = True
    _last: tuple[str, int, Features] = ("", -1, {})
    """The record that was read last: image and label are in the same one."""

    @staticmethod
    def knows(head: bytes) -> bool:
        return len(head) >= HEAD.size and masked_crc(head[:8]) == HEAD.unpack_from(head)[1]

    def samples(self, file: str) -> Iterator[RowRef]:
        stem, fields = re.sub(r"\.(tfrecords?|tfrec)", "", file), ("", "")
        with self.open(file) as opened:
            for number, (start, size) in enumerate(self._records(file, opened)):
                features: Features = {}
                if number == 0 or self.names.key is not None:
                    opened.seek(start)
                    features = _features(opened.read(size + TAIL.size), start, size)
                if number == 0:
                    fields = self._fields(features)
                key = f"{stem}/{number:08}" if self.names.key is None else _key(features, start, self.names.key)
                yield from self.row(file, key, *(Position(file, start, size, name) for name in fields))
        self.files.check(file)

    def read(self, position: Position) -> bytes:
        file, start, features = self._last
        if (file, start) != (position.file, position.start):
            features = _features(self.files.read(self.span(position)), position.start, position.size)
            self._last = (position.file, position.start, features)
        values = first_values(features.get(position.name, memoryview(b"")))
        if len(values) != 1 or not isinstance(value := values[0], bytes):
            content = ("no value", "a number", "several values")[len(values)]
            raise BadPair(f"has {content}; expected the bytes of one picture file")
        return value

    def span(self, position: Position) -> Span:
        return Span(position.file, position.start, position.size + TAIL.size)

    def _records(self, file: str, opened: BinaryIO) -> Iterator[tuple[int, int]]:
        """Yield where each record begins, and its size."""
        at, whole = 0, self.files.states[file][0]
        while at < whole:
            opened.seek(at)
            head = opened.read(HEAD.size)
            if len(head) < HEAD.size:
                raise BadPair(f"ends within the head of a record at byte {at}; it was cut off")
            size, checksum = HEAD.unpack(head)
            if masked_crc(head[:8]) != checksum:
                raise BadPair(f"is damaged: the length of the record at byte {at} does not have its checksum")
            if at + HEAD.size + size + TAIL.size > whole:
                raise BadPair(f"ends at byte {whole}, within a record of {size} bytes at byte {at}; it was cut off")
            if size > MOST_BYTES:
                raise BadPair(f"has a record of {size} bytes at byte {at}; {MOST_BYTES} are read at most")
            yield at + HEAD.size, size
            at += HEAD.size + size + TAIL.size

    def _fields(self, features: Features) -> tuple[str, str]:
        pictures = [name for name, feature in features.items() if _is_picture(first_values(feature))]
        return image_and_label(self.names, pictures, list(features), "feature")


def _features(record: bytes, start: int, size: int) -> Features:
    """Return the features of a record, which its checksum follows."""
    if len(record) != size + TAIL.size or masked_crc(record[:size]) != TAIL.unpack_from(record, size)[0]:
        raise BadPair(f"is damaged: the record at byte {start} does not have its checksum")
    return features_of(memoryview(record)[:size])


def _key(features: Features, start: int, name: str) -> str:
    values = first_values(features.get(name, memoryview(b"")))
    if len(values) != 1:
        content = "several values" if values else "no value"
        raise BadPair(f"has {content} of --key {name} in the record at byte {start}")
    value = values[0]
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def masked_crc(data: bytes) -> int:
    """Return the CRC-32C as TFRecord stores it, so that the CRC of data that hold CRCs has no pattern."""
    crc: int = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _is_picture(values: list[bytes | int]) -> bool:
    try:
        return len(values) == 1 and isinstance(values[0], bytes) and kind_of(values[0][:16]) is not None
    except BadPair:
        return False
