"""The facts of a shard of a pack that its rows are known by: digests, checksums and notes."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from readers.contract.place import Place
from readers.contract.receipt import Receipt

HALF = (1 << 63) - 1
"""A number of a state has 63 bits, so that it is not negative."""


class PackedShard(NamedTuple):
    """The facts of a shard that are kept of its receipt."""

    digests: NDArray[np.uint8]
    """For each row, and for each field of the shard: 128 bits of the SHA-256 of the recipe, the key, the identity of
    what the field was made of, its checksum, the note of the row and its place."""
    crc32: dict[str, NDArray[np.uint32]]
    """For each field the checksum of each row."""
    notes: dict[str, str]
    """The notes of the rows that have one, by their key."""
    files: tuple[str, ...]
    places: tuple[Place | None, ...]
    """The place of each row; nothing if no row has one."""

    def state(self, row: int) -> list[int]:
        """Return 63 bits of the digest of each field of a row."""
        return [number & HALF for number in self.digests[row].view("<u8")[:, 0].tolist()]

    def place(self, row: int) -> Place | None:
        return self.places[row] if self.places else None

    def notes_of(self, key: str) -> tuple[str, ...]:
        return (self.notes[key],) if key in self.notes else ()

    @classmethod
    def of(cls, receipt: Receipt, stem: Path) -> PackedShard:
        """Take the facts out of the receipt of the shard whose files begin with `stem`."""
        inputs = {source.key: source for source in receipt.sources}
        notes = dict(receipt.notes)
        places = receipt.places or (None,) * receipt.rows
        texts = (
            "\0".join((receipt.recipe, key, identity, f"{number:08x}", notes.get(key, ""), *_texts(place)))
            for key, sums, place in zip(receipt.keys, receipt.row_checksums, places, strict=True)
            for identity, number in zip(inputs[key].identities, sums, strict=True)
        )
        digests = b"".join(hashlib.sha256(text.encode()).digest()[:16] for text in texts)
        files = tuple(f"{stem}{file.suffix}" for file in receipt.files)
        sums = {name: np.array(numbers, np.uint32) for name, numbers in receipt.crc32.items()}
        rows = np.frombuffer(digests, np.uint8).reshape(-1, len(receipt.fields), 16)
        return cls(rows, sums, notes, files, receipt.places)


def _texts(place: Place | None) -> list[str]:
    """Return the place of a row as texts; none if it has no place."""
    return [] if place is None else [str(place.system), place.no_data, *map(repr, place.transform)]
