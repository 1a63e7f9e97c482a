"""`IndexedSource`: a folder of pictures, and files with the annotations of many pictures, such as COCO has."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from packer.annotations import panoptic
from packer.annotations.annotation import AnnotatedPicture
from packer.decoding.raw_file import naming
from packer.errors import BadPair
from packer.recipe.row_ref import RowRef
from packer.recipe.source import UNKNOWN
from packer.sources.annotated.annotated import AnnotatedSource, CountedObjects
from packer.sources.annotated.indexed_files import IndexedFiles
from packer.sources.annotated.kept_indexes import forget_indexes
from packer.sources.annotated.known_sizes import KnownSizes
from packer.sources.annotated.segment_ids import segment_ids, stored_size
from readers.contract.tiles import Size

STATE = 7
"""The bytes of a digest that are the state of a row."""


@dataclass(frozen=True)
class IndexedSource(AnnotatedSource):
    """The files below a folder. The part of a painted field is a file and the name that it gives the picture."""

    indexed: IndexedFiles = field(default_factory=lambda: IndexedFiles(Path(), {}))
    kind: ClassVar[str] = "indexed"

    def states(self, refs: Sequence[RowRef]) -> NDArray[np.int64]:
        """Return the states of the files of each row, and digests of its annotations.

        Where a file is another one than was planned, they prove nothing.
        """
        try:
            return self._states(refs)
        except BadPair:
            states = self.files.states([self.files_of(ref) for ref in refs])
            states[:, 0] = UNKNOWN
            return states

    def identities(self, refs: Sequence[RowRef]) -> Iterator[tuple[str, ...] | None]:
        identities = self.files.identities([self._pngs_of(ref) for ref in refs])
        for ref, identity in zip(refs, identities, strict=True):
            yield None if identity is None else self._identity(ref, identity)

    def read(self, part: str) -> tuple[AnnotatedPicture, str]:
        path = self._png(part)
        if not path:
            return self.indexed.read(part)
        data = self.files.read(path)
        with naming(path):
            ids = segment_ids(data, self.indexed.size(part), self.files.max_pixels)
        picture, identity = self.indexed.read(part, ids)
        return picture, _together(bytes.fromhex(identity), blake3(data).digest()).hex()

    def size_of(self, part: str) -> Size | None:
        size, path = self.indexed.size(part), self._png(part)
        if not path:
            return size
        header = self.files.header(path)
        with naming(path):
            return stored_size(header, size)

    def count(self, refs: Iterable[RowRef]) -> CountedObjects:
        return CountedObjects(self.indexed.counts, KnownSizes(), self.indexed.outlines, self.indexed.lost)

    def prepare(self) -> None:
        """Read the files of annotations once, for all workers on this machine."""
        self.indexed.prepare()

    def close(self) -> None:
        """Delete what was kept for workers."""
        forget_indexes()

    def to_text(self) -> str:
        return json.dumps({**json.loads(super().to_text()), "kind": self.kind, "files": self.indexed.states})

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> IndexedSource:
        plain = AnnotatedSource.from_json(facts)
        values = {attribute.name: getattr(plain, attribute.name) for attribute in fields(plain)}
        return cls(**values, indexed=IndexedFiles(plain.files.raw, facts["files"]))

    def _states(self, refs: Sequence[RowRef]) -> NDArray[np.int64]:
        states = self.files.states([self._pngs_of(ref) for ref in refs])
        for row, ref in enumerate(refs):
            for target in self.painted:
                if part := ref.parts[target.number]:
                    size = int(states[row, 3 * target.number])  # of the PNG, whose times stay next to it
                    digest = self.indexed.digest(part)
                    both = _together(digest, size.to_bytes(8, "little")) if self._png(part) else digest
                    states[row, 3 * target.number] = int.from_bytes(both[:STATE], "little")
        return states

    def _png(self, part: str) -> str:
        """Return the path of the PNG with the ids of a picture's segments; empty if there is none."""
        return self.indexed.png(part) if self.format == panoptic.NAME else ""

    def _pngs_of(self, ref: RowRef) -> RowRef:
        """Return a row whose painted fields have the PNG of their segments as their part, if there is one."""
        painted = {target.number for target in self.painted}
        return ref._replace(
            parts=tuple(
                part and self._png(part) if number in painted else part for number, part in enumerate(ref.parts)
            )
        )

    def _identity(self, ref: RowRef, identity: tuple[str, ...]) -> tuple[str, ...] | None:
        combined = list(identity)
        try:
            for target in self.painted:
                if part := ref.parts[target.number]:
                    digest, png = self.indexed.digest(part), identity[target.number]
                    combined[target.number] = (_together(digest, bytes.fromhex(png)) if png else digest).hex()
        except BadPair:
            return None
        return tuple(combined)


def _together(annotations: bytes, png: bytes) -> bytes:
    """Return a digest of annotations and of what identifies the PNG of their segments."""
    return blake3(annotations + png).digest()
