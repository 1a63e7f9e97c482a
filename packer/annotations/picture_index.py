"""`PictureIndex`: the bytes of a file of many pictures that have the annotations of each picture, in arrays.

`list_pictures` reads the file once. An annotation leaves 12 bytes: where it begins, and its length. The index can be
saved, and then processes map it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from packer.annotations import panoptic
from packer.annotations.annotation import AnnotatedPicture
from packer.annotations.coco import NAME, Id, name_of, read
from packer.annotations.json_stream import parse
from packer.annotations.whole_pictures import WHOLE, read_whole
from packer.errors import BadPair, LostFile
from readers.contract.regular_files import digest_raw
from readers.contract.tiles import Size

DIGEST = 16
"""Bytes of a digest."""
Longs = NDArray[np.int64]
_ARRAYS = ("names", "firsts", "starts", "lengths", "sizes", "digests")
_FACTS, _CHECKSUM = "facts.json", "checksum"


@dataclass(frozen=True)
class PictureIndex:
    """The places of all items, sorted by picture.

    The place of the picture itself comes before the places of its annotations.
    """

    names: Longs
    """The hash of the name of each picture, ascending."""
    firsts: Longs
    """The number of the first item of each picture, and of all items."""
    starts: Longs
    lengths: NDArray[np.int32]
    sizes: NDArray[np.int32]
    """The height and width of each picture; 0 if the file does not have them."""
    digests: NDArray[np.uint8]
    """For each picture a digest of its items and, where these have only the ids of categories, of all categories."""
    categories: Mapping[Id, str]
    counts: Mapping[str, int] = field(default_factory=dict)
    """The annotations of each category, in the order of the ids."""
    notes: tuple[str, ...] = ()
    """Annotations that belong to no picture, in words with their number."""
    outlines: int = 0
    """The number of annotations of these categories that can be painted."""
    lost: Mapping[str, int] = field(default_factory=dict)
    """The number of annotations that cannot be painted, by the reason."""
    format: str = NAME
    pngs: Sequence[str] = ()
    """The name of the PNG of each picture in a panoptic file; empty for a picture without an annotation."""

    def __len__(self) -> int:
        return len(self.names)

    def digest(self, name: str) -> bytes | None:
        """Return what identifies the annotations of the picture of this name; None if the file does not list it."""
        number = self._number(name)
        return None if number is None else self.digests[number].tobytes()

    def size(self, name: str) -> Size | None:
        """Return the size of a picture, if the file has it."""
        number = self._number(name)
        if number is None or not self.sizes[number].all():
            return None
        return int(self.sizes[number, 0]), int(self.sizes[number, 1])

    def png(self, name: str) -> str:
        """Return the name of the PNG that has the ids of the segments of a picture; empty if there is none."""
        number = self._number(name)
        return "" if number is None or not self.pngs else self.pngs[number]

    def read(self, file: BinaryIO, name: str, ids: NDArray[np.uint32] | None = None) -> tuple[AnnotatedPicture, bytes]:
        """Return the objects of a picture, and the digest of what was read. Raise BadPair if the file changed.

        `ids` are the ids in the picture's PNG, if it has one.
        """
        number = self._number(name)
        if number is None:
            raise BadPair(f"does not list {name}")
        items, digest = self._items(file, number), self.digests[number].tobytes()
        if self.format in WHOLE:
            return read_whole(self.format, items[0]), digest
        if self.format == panoptic.NAME:
            return panoptic.read(items[0], items[1:], self.categories, ids), digest
        return read(items[0], items[1:], self.categories), digest

    def save(self, folder: Path) -> None:
        """Write the arrays to a folder."""
        for name in _ARRAYS:
            np.save(folder / f"{name}.npy", getattr(self, name))
        facts: dict[str, Any] = {
            "categories": list(self.categories.items()),
            "counts": dict(self.counts),
            "notes": self.notes,
        }
        facts |= {"outlines": self.outlines, "lost": dict(self.lost)}
        facts |= {"format": self.format, "pngs": self.pngs}
        (folder / _FACTS).write_text(json.dumps(facts), encoding="utf-8")
        (folder / _CHECKSUM).write_text(_checksum(folder), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> PictureIndex:
        """Map what `save` wrote. Raise ValueError if it is damaged."""
        if (folder / _CHECKSUM).read_bytes() != _checksum(folder).encode():
            raise ValueError("its checksum differs")
        arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in _ARRAYS}
        facts = json.loads((folder / _FACTS).read_text(encoding="utf-8"))
        facts |= {"categories": dict(facts["categories"]), "notes": tuple(facts["notes"])}
        return cls(**arrays, **facts)

    def others(self, names: Iterable[str]) -> list[int]:
        """Return the numbers of all pictures that do not have these names."""
        is_named = np.zeros(len(self), np.bool_)
        for name in names:
            if (number := self._number(name)) is not None:
                is_named[number] = True
        return [int(number) for number in np.flatnonzero(~is_named)]

    def name(self, file: BinaryIO, number: int) -> str:
        """Return the name of a picture. Raise BadPair if the file changed."""
        raw = self._items(file, number)[0]
        return read_whole(self.format, raw).name or "" if self.format in WHOLE else name_of(parse(raw))

    def _items(self, file: BinaryIO, number: int) -> list[bytes]:
        """Return the bytes of a picture and of its annotations. Raise BadPair if these are not what was listed."""
        items = []
        for item in range(int(self.firsts[number]), int(self.firsts[number + 1])):
            file.seek(int(self.starts[item]))
            items.append(file.read(int(self.lengths[item])))
        names = digest_of_categories(self.format, self.categories)
        digest = digest_of_picture(b"".join(blake3(item).digest(DIGEST) for item in items), names)
        if digest != self.digests[number].tobytes():
            raise LostFile("changed after its rows were listed; build again")
        return items

    def _number(self, name: str) -> int | None:
        hashed = hash_of(name)
        number = int(np.searchsorted(self.names, hashed))
        return number if number < len(self.names) and self.names[number] == hashed else None


def _checksum(folder: Path) -> str:
    """Return what shows that no byte of an index has changed."""
    names = (*(f"{name}.npy" for name in _ARRAYS), _FACTS)
    return blake3("".join(digest_raw(folder / name) for name in names).encode()).hexdigest()


def digest_of_picture(items: bytes, categories: bytes) -> bytes:
    """Return what identifies the annotations of a picture: digests of its items and of all categories."""
    return blake3(items + categories).digest(DIGEST)


def digest_of_categories(name: str, categories: Mapping[Id, str]) -> bytes:
    """Return what identifies the names of all categories, if the annotations of a format have only their ids."""
    return blake3(b"" if name in WHOLE else json.dumps(list(categories.items())).encode()).digest(DIGEST)


def hash_of(name: str) -> int:
    """Return 64 bits that stand for a name."""
    return int.from_bytes(blake3(name.encode("utf-8", "surrogatepass")).digest(8), "little", signed=True)
