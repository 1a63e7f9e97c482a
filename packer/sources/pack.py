"""A pack as a source: its stored rows, of any format, without the files that they were packed from."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from zlib_ng.zlib_ng import crc32

from packer.decoding.header import Header
from packer.errors import InputError, UsageError
from packer.recipe.row_ref import RowRef
from packer.recipe.source import Heads, Listing, ListingRules, Loaded, PackedPixels, Slices, Source
from packer.sources.pack_facts import HALF, PackedShard
from packer.sources.pack_lines import PackLines
from readers.contract.classes import ClassTable
from readers.contract.errors import DamagedError
from readers.contract.fields import LABEL, READABLE, Field, Sides
from readers.contract.kinds import CLASSES, PICTURE
from readers.contract.receipt import Receipt
from readers.contract.slices import slices_of
from readers.contract.tiles import picture_of
from readers.pack import Pack
from readers.stores.checksums import read_receipt

MOST_DIGITS = 18
"""Digits of the number of a row in a shard. Python refuses to read thousands of digits."""


SLICES = "nifti slices 1"
"""The tool of packs whose rows are slices: their keys end with the number of the slice."""


class PackSource(Source):
    """The rows of one generation of a pack. A part of a row is the name of its shard, and its number there."""

    kind: ClassVar[str] = "pack"
    gives_arrays: ClassVar[bool] = True

    def __init__(self, pack: Pack, chosen: Mapping[int, Sequence[int]] | None = None) -> None:
        self._pack, self._chosen = pack, chosen
        self._known: dict[int, PackedShard] = {}
        self.fields = pack.manifest.fields

    @classmethod
    def at(cls, root: Path) -> PackSource:
        """Open the current generation of a pack."""
        return cls(Pack.open(root))

    def only(self, rows: Iterable[int]) -> PackSource:
        """Return the source of these rows of the pack alone."""
        chosen = defaultdict[int, list[int]](list)
        for row in sorted(rows):
            shard, index = self._pack.table.locate(row)
            chosen[shard].append(index)
        return PackSource(self._pack, chosen)

    @property
    def templates(self) -> tuple[str, ...]:
        return ("",) * len(self.fields)

    def group_of(self, key: str) -> str:
        """Return the picture of a tile, or the volume of a slice."""
        picture = picture_of(key)
        return picture.rpartition("/")[0] if SLICES in self.tools else picture

    @property
    def tools(self) -> tuple[str, ...]:
        """The rule of these rows, and whether they are slices, which a pack of them must know, too."""
        return ("rows of a pack 1", *(tool for tool in self._pack.manifest.recipe.get("tools", ()) if tool == SLICES))

    @property
    def gives_volumes(self) -> bool:
        return any(field.is_volume for field in self.fields)

    def as_volumes(self) -> PackSource:
        if not self.gives_volumes:
            raise UsageError("--volumes: the rows of this pack are pictures; build from the files")
        return self

    def check_parts(self, parts: Sequence[str]) -> None:
        """Refuse rows that the pack has not, or not any more."""
        for part in filter(None, parts):
            stem, _, row = part.partition("/")
            number = self._numbers.get(stem)
            is_number = row.isdecimal() and len(row) <= MOST_DIGITS
            if number is None or not is_number or int(row) >= self._pack.table.rows(number):
                raise InputError(
                    f"{part}: is not a row of {self.root} any more; that pack was built again, build this too"
                )

    @property
    def root(self) -> Path:
        return self._pack.root

    @property
    def classes(self) -> ClassTable | None:
        """The classes of the label, if the rows have one."""
        return next((field.classes for field in self.fields if field.name == LABEL), None)

    def rows(self) -> Iterator[RowRef]:
        for split, shards, _ in self._pack.splits():
            for shard in shards if self._chosen is None else sorted(self._chosen.keys() & set(shards)):
                stem = self._pack.stem(shard).name
                receipt = self._receipt(shard)
                keys, present = receipt.keys, [field.name in receipt.fields for field in self.fields]
                for row in range(len(keys)) if self._chosen is None else self._chosen[shard]:
                    part = f"{stem}/{row}"
                    yield RowRef(split.name, keys[row], tuple(part if has else "" for has in present))

    def list_rows(self, rules: ListingRules) -> Listing:
        """Return the rows of the pack. They cannot be packed into the pack itself."""
        source, target = self.root.resolve(), rules.out.resolve()
        if source == target:
            raise UsageError(f"{rules.out}: is the pack that the rows come from; name another folder for the new pack")
        if source in target.parents or target in source.parents:
            both = f"{rules.out} and {self.root}, the pack that the rows come from"
            raise UsageError(f"{both}: one is inside the other; name another")
        self._check_fields()
        return Listing(self.rows(), "rows of a pack", classes=self.classes, packed=self.fields)

    def _check_fields(self) -> None:
        """Refuse fields that no build could have made."""
        for number, field in enumerate(self.fields):
            expected = CLASSES if field.name == LABEL else field.kind
            if number == 0:
                expected = PICTURE
            if field.kind != expected:
                raise UsageError(f"{self.root}: its field {field.name} is of the kind {field.kind}, not {expected}")
            if field.encoding not in READABLE:
                raise UsageError(f"{self.root}: its field {field.name} is encoded as {field.encoding}")

    def heads(self, refs: Sequence[RowRef]) -> Iterator[Heads]:
        return map(self._heads, refs)

    def states(self, refs: Sequence[RowRef]) -> NDArray[np.int64]:
        """Return 63 bits of the identity of each field of each row, and the times of the files of its shard.

        `packer repair` writes files again, so a row that was damaged has another state then.
        """
        states = np.zeros((len(refs), len(self.fields) + 1), np.int64)
        times: dict[int, int] = {}
        for number, ref in enumerate(refs):
            shard, row = self._position(ref)
            if shard not in times:
                times[shard] = self._time(shard)
            bits = iter(self._facts(shard).state(row))
            states[number] = [*(next(bits) if part else 0 for part in ref.parts), times[shard]]
        return states

    def identities(self, refs: Sequence[RowRef]) -> Iterator[tuple[str, ...] | None]:
        return map(self._identity, refs)

    def load(self, ref: RowRef) -> Loaded:
        """Read a row and compare each field with its checksum."""
        if not any(ref.parts):
            return Loaded(tuple(b"" for _ in ref.parts), self.templates)
        number, row = self._position(ref)
        fields = [field if part else None for field, part in zip(self.fields, ref.parts, strict=True)]
        try:
            shard = self._pack.shard(number)  # into memory of its own, so that what is checked is what is packed
            arrays = [None if field is None else shard.read_stored(field, row) for field in fields]
        except DamagedError as error:
            return Loaded((), self.templates, _bad(ref, str(error)))
        facts, data = self._facts(number), list[PackedPixels | Slices | bytes]()
        for field, stored in zip(fields, arrays, strict=True):
            if field is None or stored is None:
                data.append(b"")
                continue
            if crc32(stored.data) != facts.crc32[field.name][row]:
                return Loaded((), self.templates, _bad(ref, f"its {field.name} does not have its checksum"))
            try:
                data.append(_given(field, shard.numbers(field, row, stored), stored, f"{ref.split}/{ref.key}"))
            except DamagedError as error:
                return Loaded((), self.templates, _bad(ref, str(error)))
        return Loaded(tuple(data), self._identity(ref), notes=facts.notes_of(ref.key), place=facts.place(row))

    @property
    def gives_lines(self) -> bool:
        """True if parts of rows can be read: a frame or a JPEG file is read whole."""
        return all(field.is_tiled or not field.is_encoded for field in self.fields)

    def load_lines(self, ref: RowRef) -> Loaded:
        """Compare the stored bytes of a row with their checksums, without having them in memory."""
        number, row = self._position(ref)
        facts, data = self._facts(number), list[PackLines | bytes]()
        try:
            shard = self._pack.shard(number)
            for field, part in zip(self.fields, ref.parts, strict=True):
                if part and crc32(shard.stored(field, row).data) != facts.crc32[field.name][row]:
                    return Loaded((), self.templates, _bad(ref, f"its {field.name} does not have its checksum"))
                data.append(
                    PackLines(shard, field, row, partial(_strip, field, f"{ref.split}/{ref.key}")) if part else b""
                )
        except DamagedError as error:
            return Loaded((), self.templates, _bad(ref, str(error)))
        return Loaded(tuple(data), self._identity(ref), notes=facts.notes_of(ref.key), place=facts.place(row))

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
            size = self.fields[0].size or self._size(ref)
        except DamagedError as error:
            return _bad(ref, str(error))
        header = Header("row", size[-1], size[-2], 8, 1, slices=size[0] if len(size) == 3 else None)
        return (header,) * sum(map(bool, ref.parts))

    def _size(self, ref: RowRef) -> Sides:
        shard, row = self._position(ref)
        return self._pack.shard(shard).size(row)

    def _identity(self, ref: RowRef) -> tuple[str, ...]:
        shard, row = self._position(ref)
        digests = iter(self._facts(shard).digests[row])
        return tuple(next(digests).tobytes().hex() if part else "" for part in ref.parts)

    def _position(self, ref: RowRef) -> tuple[int, int]:
        """Return the number of a row's shard, and its number there."""
        stem, _, row = next(filter(None, ref.parts)).partition("/")
        return self._numbers[stem], int(row)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {self._pack.stem(shard).name: shard for shard in range(len(self._pack.table))}

    def _time(self, shard: int) -> int:
        """Return the sum of the times of a shard's files, 0 for one that is missing."""
        return sum(map(_mtime, self._facts(shard).files)) & HALF

    def _facts(self, shard: int) -> PackedShard:
        if shard not in self._known:
            self._known[shard] = PackedShard.of(self._receipt(shard), self._pack.stem(shard))
        return self._known[shard]

    def _receipt(self, shard: int) -> Receipt:
        pack = self._pack
        receipt = read_receipt(pack.root, pack.stem(shard), pack.table.receipt(shard))
        if receipt.rows != pack.table.rows(shard):
            raise DamagedError(f"{pack.stem(shard)}: its receipt has {receipt.rows} rows, the table another number")
        return receipt


def _given(field: Field, numbers: NDArray[Any], stored: NDArray[np.uint8], name: str) -> PackedPixels | Slices:
    """Return a row as the kind of its field takes it."""
    strip = _strip(field, name, numbers)
    return strip if isinstance(strip, Slices) else strip._replace(file=_file(field, stored))


def _strip(field: Field, name: str, numbers: NDArray[Any], top: int = 0) -> PackedPixels | Slices:
    """Return lines of a stored picture, or slices of a volume, as the kind of its field takes them."""
    if not field.is_volume:
        return PackedPixels.of(field, numbers)
    slices, sides = slices_of(field, numbers), numbers.shape[len(field.planes) :]
    return Slices(sides, lambda number: PackedPixels.of(field, slices[number]), name, top)


def _file(field: Field, stored: NDArray[np.uint8]) -> bytes:
    return stored.tobytes() if field.is_jpeg else b""


def _mtime(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - called for every row, and a Path takes twice as long
    except OSError:
        return 0


def _bad(ref: RowRef, reason: str) -> str:
    return f"{ref.split}/{ref.key}: {reason}"
