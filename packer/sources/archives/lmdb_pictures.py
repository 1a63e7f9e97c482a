"""LMDBs of picture files: an entry for each image and each label. liblmdb is not used, so no lock file is written."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import ClassVar

from packer.errors import BadPair, UsageError
from packer.recipe.row_ref import RowRef
from packer.sources.archives.byte_ranges import ByteRanges
from packer.sources.archives.field_names import IMAGE_WORDS, LABEL_WORDS
from packer.sources.archives.position import Position
from readers.contract.errors import DamagedError
from readers.formats.lmdb import nodes

MAGIC = struct.pack("<II", 0xBEEFC0DE, 1)
PAGE_HEADER = 16
"""The bytes in front of the magic number."""


class LmdbPicturesSource(ByteRanges):
    """The entries of LMDBs whose keys fit two patterns, such as image-{key} and label-{key}."""

    kind: ClassVar[str] = "lmdb-pictures"
    suffix: ClassVar[re.Pattern[str]] = re.compile(r"\.(mdb|lmdb)$")
    in_stores: ClassVar[bool] = False  # a tree of pages has a request for each

    @staticmethod
    def knows(head: bytes) -> bool:
        return head[PAGE_HEADER : PAGE_HEADER + len(MAGIC)] == MAGIC

    @classmethod
    def find(cls, path: Path) -> tuple[Path, list[str]]:
        """Return the data files of an environment, or of those in a folder. Their locks are not used."""
        root, files = super().find(path)
        return root, [file for file in files if os.path.basename(file) != "lock.mdb"]  # noqa: PTH119 - a text

    def samples(self, file: str) -> Iterator[RowRef]:
        image, label = (
            _pattern("image", self.names.image, IMAGE_WORDS),
            _pattern("label", self.names.label, LABEL_WORDS),
        )
        waiting: dict[tuple[str, bool], Position] = {}
        for name, position in self._entries(file):
            matches = image.fullmatch(name), label.fullmatch(name)
            if all(matches):
                raise BadPair(f"has the key {name!r}, which fits --image and --label equally well")
            if not (match := matches[0] or matches[1]):
                continue
            key, is_image = "".join(filter(None, match.groups())), matches[0] is not None
            if (key, is_image) in waiting:
                raise BadPair(
                    f"has several {'images' if is_image else 'labels'} of {key!r}; name them: --image, --label"
                )
            other = waiting.pop((key, not is_image), None)
            if other is None:
                waiting[key, is_image] = position
            elif is_image:
                yield from self.row(file, key, position, other)
            else:
                yield from self.row(file, key, other, position)
        for (key, is_image), position in waiting.items():
            if is_image:
                yield from self.row(file, key, position, None)
            else:
                yield from self.row(file, key, None, position)

    def _entries(self, file: str) -> Iterator[tuple[str, Position]]:
        """Yield every key as a text, and the position of its value."""
        size = self.files.states[file][0]
        try:
            with self.open(file) as opened:
                for key, start, length in nodes(Path(file), size, partial(_read, opened.fileno())):
                    if start + length > size:
                        raise BadPair(f"has a value of {length} bytes that ends beyond it; it was cut off")
                    name = key.decode("utf-8", "surrogateescape")
                    yield name, Position(file, start, length, name)
        except DamagedError as error:
            raise BadPair(str(error).removeprefix(f"{file}: ")) from error
        except (struct.error, LookupError, ValueError, OverflowError, RecursionError) as error:
            raise BadPair(f"is damaged or cut off: {error}") from error


def _read(descriptor: int, start: int, size: int) -> memoryview:
    """Read a page. A map would kill this process if the file were cut."""
    return memoryview(os.pread(descriptor, size, start))


def _pattern(option: str, template: str | None, words: str) -> re.Pattern[str]:
    """Return the pattern of --image or --label; without one, of keys that begin or end with such a word."""
    if template is None:
        return re.compile(rf"(?:{words})[-_/:.](.+)|(.+)[-_/:.](?:{words})(?:\.\w+)?", re.IGNORECASE | re.DOTALL)
    before, key, after = template.partition("{key}")
    if not key or "{" in before + after:
        raise UsageError(
            f"--{option} {template!r}: expected the key of an entry with {{key}} once, such as {option}-{{key}}"
        )
    return re.compile(f"{re.escape(before)}(.+){re.escape(after)}", re.DOTALL)
