"""A pack as a source: its rows as they are stored, of any format, without the files that they were packed from."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from zlib_ng.zlib_ng import crc32

from packer.decoding.header import Header
from packer.errors import UsageError
from packer.recipe.row_ref import RowRef
from packer.recipe.source import Heads, Listing, Loaded, PackedPixels, Wanted
from readers.checksums import read_receipt
from readers.contract.classes import ClassTable
from readers.contract.errors import DamagedError
from readers.contract.fields import IMAGE, LABEL
from readers.contract.kinds import ONEHOT
from readers.contract.onehot import collapse
from readers.contract.receipt import Receipt
from readers.pack import Pack

HALF = (1 << 63) - 1
"""A number of a state has 63 bits, so that it is not negative."""


class _ShardFacts(NamedTuple):
    """The facts of a shard that are kept of its receipt."""

    digests: NDArray[np.uint8]
    """For each row, and for image and label: 128 bits of the SHA-256 of the recipe, the key, the identity of what the
    field was made of, its checksum and the note of the row."""
    crc32: dict[str, NDArray[np.uint32]]
    """For each field the checksum of each row."""
    notes: dict[str, str]
    """The notes of the rows that have one, by their key."""
    files: tuple[str, ...]

    def notes_of(self, key: str) -> tuple[str, ...]:
        return (self.notes[key],) if key in self.notes else ()


class PackSource:
    """The rows of one generation of a pack. A part of a row is the name of its shard, and its number there."""

    kind: ClassVar[str] = "pack"
    templates: ClassVar[tuple[str, ...]] = ("", "")
    tools: ClassVar[tuple[str, ...]] = ("rows of a pack 1",)

    def __init__(self, pack: Pack) -> None:
        self._pack = pack
        self._known: dict[int, _ShardFacts] = {}
        self._image, self._label = pack.manifest.field(IMAGE), pack.manifest.field(LABEL)

    @classmethod
    def at(cls, root: Path) -> PackSource:
        """Open the current generation of a pack."""
        return cls(Pack.open(root))

    @property
    def root(self) -> Path:
        return self._pack.root

    @property
    def classes(self) -> ClassTable:
        return self._pack.manifest.classes

    def rows(self) -> Iterator[RowRef]:
        for split, shards, _ in self._pack.splits():
            for shard in shards:
                stem = self._pack.stem(shard).name
                for row, key in enumerate(self._receipt(shard).keys):
                    part = f"{stem}/{row}"
                    yield RowRef(split.name, key, (part, part))

    def list_rows(self, wanted: Wanted) -> Listing:
        """Return the rows of the pack. They cannot be packed into the pack itself."""
        source, target = self.root.resolve(), wanted.out.resolve()
        if source == target:
            raise UsageError(f"{wanted.out}: is the pack that the rows come from; name another folder for the new pack")
        if source in target.parents or target in source.parents:
            both = f"{wanted.out} and {self.root}, the pack that the rows come from"
            raise UsageError(f"{both}: one lies in the other; name another")
        return Listing(self.rows(), "rows of a pack", classes=self.classes)

    def heads(self, refs: Sequence[RowRef]) -> Iterator[Heads]:
        return map(self._heads, refs)

    def states(self, refs: Sequence[RowRef]) -> NDArray[np.int64]:
        """Return 63 bits of the identity of each field of each row, and the times of the files of its shard.

        `packer repair` writes files again, so a row that was damaged has another state then.
        """
        states = np.empty((len(refs), 3), np.int64)
        times: dict[int, int] = {}
        for number, ref in enumerate(refs):
            shard, row = self._position(ref)
            if shard not in times:
                times[shard] = self._time(shard)
            first, second = self._facts(shard).digests[row, :, :8].copy().view("<u8")[:, 0].tolist()
            states[number] = first & HALF, second & HALF, times[shard]
        return states

    def identities(self, refs: Sequence[RowRef]) -> Iterator[tuple[str, ...] | None]:
        return map(self._identity, refs)

    def load(self, ref: RowRef) -> Loaded:
        """Read a row and compare each field with its checksum."""
        try:
            image, label = self._read(ref)
        except DamagedError as error:
            return Loaded((), ("", ""), _bad(ref, str(error)))
        shard, row = self._position(ref)
        facts = self._facts(shard)
        for name, numbers in ((IMAGE, image), (LABEL, label)):
            if crc32(numbers.data) != facts.crc32[name][row]:
                return Loaded((), ("", ""), _bad(ref, f"its {name} does not have its checksum"))
        pixels = image.transpose(1, 2, 0)
        if pixels.dtype != np.uint8:
            pixels = pixels.astype(np.float32)
        if self._label.form == ONEHOT:
            label = collapse(label, self.classes.index_dtype)
        return Loaded((PackedPixels(pixels), PackedPixels(label)), self._identity(ref), notes=facts.notes_of(ref.key))

    def to_text(self) -> str:
        manifest = self._pack.manifest
        facts = {"generation": manifest.generation, "identity": manifest.identity}
        return json.dumps({"kind": self.kind, "root": str(self._pack.root), **facts})

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> PackSource:
        pack = Pack.open(Path(facts["root"]), facts["generation"])
        if pack.manifest.identity != facts["identity"]:
            raise DamagedError(f"{pack.root}: is another pack now than when the build was planned; build again")
        return cls(pack)

    def _heads(self, ref: RowRef) -> Heads:
        try:
            size = self._image.size or self._size(ref)
        except DamagedError as error:
            return _bad(ref, str(error))
        return Header("row", size[1], size[0], 8, 3), Header("row", size[1], size[0], 8, 1)

    def _size(self, ref: RowRef) -> tuple[int, int]:
        shard, row = self._position(ref)
        return self._pack.shard(shard).size(row)

    def _identity(self, ref: RowRef) -> tuple[str, ...]:
        shard, row = self._position(ref)
        return tuple(digest.tobytes().hex() for digest in self._facts(shard).digests[row])

    def _read(self, ref: RowRef) -> list[NDArray[Any]]:
        """Read the image and the label into memory of their own: what is checked is what is packed."""
        number, row = self._position(ref)
        shard = self._pack.shard(number)
        return [shard.read(field, row) for field in (self._image, self._label)]

    def _position(self, ref: RowRef) -> tuple[int, int]:
        """Return the number of a row's shard, and its number there."""
        stem, _, row = ref.parts[-1].partition("/")
        return self._numbers[stem], int(row)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {self._pack.stem(shard).name: shard for shard in range(len(self._pack.table))}

    def _time(self, shard: int) -> int:
        """Return the sum of the times of a shard's files, 0 for one that is missing."""
        return sum(map(_mtime, self._facts(shard).files)) & HALF

    def _facts(self, shard: int) -> _ShardFacts:
        if shard not in self._known:
            self._known[shard] = self._facts_of(self._receipt(shard), self._pack.stem(shard))
        return self._known[shard]

    def _facts_of(self, receipt: Receipt, stem: Path) -> _ShardFacts:
        inputs = {source.key: source for source in receipt.sources}
        notes = dict(receipt.notes)
        numbers = [receipt.fields.index(name) for name in (IMAGE, LABEL)]
        texts = (
            "\0".join((receipt.recipe, key, inputs[key].identities[number], f"{sums[number]:08x}", notes.get(key, "")))
            for key, sums in zip(receipt.keys, receipt.row_checksums, strict=True)
            for number in numbers
        )
        digests = b"".join(hashlib.sha256(text.encode()).digest()[:16] for text in texts)
        files = tuple(f"{stem}{file.suffix}" for file in receipt.files)
        sums = {name: np.array(column, np.uint32) for name, column in receipt.crc32.items()}
        return _ShardFacts(np.frombuffer(digests, np.uint8).reshape(-1, len(numbers), 16), sums, notes, files)

    def _receipt(self, shard: int) -> Receipt:
        pack = self._pack
        receipt = read_receipt(pack.root, pack.stem(shard), pack.table.receipt(shard))
        if receipt.rows != pack.table.rows(shard):
            raise DamagedError(f"{pack.stem(shard)}: its receipt has {receipt.rows} rows, the table another number")
        return receipt


def _mtime(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - called for every row, and a Path takes twice as long
    except OSError:
        return 0


def _bad(ref: RowRef, reason: str) -> str:
    return f"{ref.split}/{ref.key}: {reason}"
