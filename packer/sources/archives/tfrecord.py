"""TFRecord files of `tf.train.Example`: every length and every record has a checksum, and each is checked."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import ClassVar

from google_crc32c import value as crc32c

from packer.decoding.file_types import kind_of
from packer.errors import BadPair
from packer.recipe.row_ref import RowRef
from packer.sources.archives.archive import ArchiveSource
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
        for number, (start, size) in enumerate(self._records(file)):
            if number == 0:
                fields = self._fields(self._features(file, start, size))
            key = f"{stem}/{number:08}" if self.names.key is None else self._key(file, start, size, self.names.key)
            yield from self.row(file, key, *(Position(file, start, size, name) for name in fields))

    def read(self, position: Position) -> bytes:
        file, start, features = self._last
        if (file, start) != (position.file, position.start):
            features = self._features(position.file, position.start, position.size)
        values = first_values(features.get(position.name, memoryview(b"")))
        if len(values) != 1 or not isinstance(value := values[0], bytes):
            content = ("no value", "a number", "several values")[len(values)]
            raise BadPair(f"has {content}; expected the bytes of one picture file")
        return value

    def _records(self, file: str) -> Iterator[tuple[int, int]]:
        """Yield where each record begins, and its size."""
        at, whole = 0, self.files[file][0]
        with self.open(file) as opened:
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
            self.check_state(file, opened)

    def _features(self, file: str, start: int, size: int) -> Features:
        with self.open(file) as opened:
            opened.seek(start)
            data = opened.read(size + TAIL.size)
            self.check_state(file, opened)
        if len(data) != size + TAIL.size or masked_crc(data[:size]) != TAIL.unpack_from(data, size)[0]:
            raise BadPair(f"is damaged: the record at byte {start} does not have its checksum")
        features = features_of(memoryview(data)[:size])
        self._last = (file, start, features)
        return features

    def _fields(self, features: Features) -> tuple[str, str]:
        pictures = [name for name, feature in features.items() if _is_picture(first_values(feature))]
        return image_and_label(self.names, pictures, list(features), "feature")

    def _key(self, file: str, start: int, size: int, name: str) -> str:
        features = self._features(file, start, size)
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
