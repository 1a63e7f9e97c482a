"""NIfTI volumes as a source: a folder with volumes of images and of labels. A row is a slice."""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from packer.decoding.arrays import class_numbers, header_by
from packer.decoding.decode import check_alike
from packer.decoding.header import Header
from packer.decoding.raw_file import naming
from packer.decoding.rules import MOST_PIXELS, check_size
from packer.errors import BadPair, LostFile
from packer.pairs.template import PICTURES
from packer.recipe.row_ref import RowRef
from packer.recipe.source import UNKNOWN, Heads, Loaded, Source
from packer.sources.container import Names
from packer.sources.file_states import FileState, are_young, state_of
from packer.sources.given_fields import identity
from packer.sources.volumes.nifti_pairs import Volumes, find_volumes, is_volume
from packer.sources.volumes.nifti_volume import THIRD, Volume

KIND = "NIfTI"
MOST_SEEN = 10_000
"""The files and folders that decide whether a folder is one of volumes."""
KEPT, MOST_KEPT = 4, 1 << 32
"""The volumes read whole that a worker keeps, and their bytes, but always one besides the new one."""
_PART = re.compile(r"(.*)\[(\d{1,9}|\d{1,9},:,:|:,\d{1,9},:)\]", re.DOTALL)
_FORMS = ("[{},:,:]", "[:,{},:]", "[{}]")
"""Names of a slice along each axis in a reference, as NumPy would write them."""


class NiftiSlices(Source):
    """The slices of pairs of volumes: `--image imagesTr/{key}_0000 --label labelsTr/{key}` name the files of pairs."""

    kind: ClassVar[str] = "nifti"
    gives_arrays: ClassVar[bool] = True
    templates: tuple[str, ...] = ("", "")

    def __init__(self, root: Path, templates: tuple[str, ...], volumes: Volumes, axis: int = THIRD) -> None:
        self.root, self.templates, self.axis = root, templates, axis
        self.volumes = volumes
        self._lock = Lock()
        self._known: dict[str, tuple[FileState, Volume]] = {}
        self._unpacked: OrderedDict[str, tuple[FileState, bytes | str]] = OrderedDict()

    @classmethod
    def fits(cls, path: Path, head: bytes) -> bool:
        """Return whether this is a folder with volumes and without pictures, by the first files in it."""
        if head or not path.is_dir():
            return False
        has_volume = False
        for file in islice(chain.from_iterable(map(path.glob, ("*", "*/*", "*/*/*"))), MOST_SEEN):
            if file.name.lower().endswith(PICTURES):
                return False
            has_volume |= is_volume(file.name)
        return has_volume

    @classmethod
    def at(cls, path: Path, names: Names) -> NiftiSlices:
        """Find the pairs of volumes. A volume without a partner is an error."""
        return cls(path.absolute(), *find_volumes(path, names))

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> Source:
        return cls(Path(facts["root"]), tuple(facts["templates"]), {}, facts["axis"])

    def along(self, axis: int) -> NiftiSlices:
        return type(self)(self.root, self.templates, self.volumes, axis)

    def as_volumes(self) -> Source:
        from packer.sources.volumes.nifti_whole import NiftiVolumes  # which is a subclass of this class

        return NiftiVolumes(self.root, self.templates, self.volumes, self.axis)

    @property
    def tools(self) -> tuple[str, ...]:
        return ("nifti slices 1",) if self.axis == THIRD else ("nifti slices 1", f"along axis {self.axis}")

    def to_text(self) -> str:
        facts = {"root": str(self.root), "templates": self.templates, "axis": self.axis}
        return json.dumps({"kind": self.kind, **facts})

    def rows(self) -> Iterator[RowRef]:
        """Yield the slices of all volumes. One that cannot be read is a row, too, which is bad."""
        for (split, key), paths in self.volumes.items():
            counts = set()
            for path in paths:
                try:
                    counts.add(self._volume(path).slices)
                except (BadPair, OSError):
                    counts.add(1)
            for number in range(max(counts)):
                form = _FORMS[self.axis].format(number)
                yield RowRef(split, f"{key}/{number:04}", tuple(f"{path}{form}" for path in paths))

    def heads(self, refs: Sequence[RowRef]) -> Iterator[Heads]:
        for ref in refs:
            try:
                yield self._heads(ref)
            except BadPair as bad:
                yield str(bad)

    def states(self, refs: Sequence[RowRef]) -> NDArray[np.int64]:
        """Return the states of both files of each row. The number of the slice is in its reference."""
        file_states: dict[str, FileState] = {}
        states = np.empty((len(refs), 6), np.int64)
        for row, ref in zip(states, refs, strict=True):
            for field, part in enumerate(ref.parts):
                path = _PART.sub(r"\1", part)
                if path not in file_states:
                    file_states[path] = state_of(f"{self.root}/{path}")
                row[3 * field : 3 * field + 3] = file_states[path]
        states[are_young(states), 0] = UNKNOWN
        return states

    def load(self, ref: RowRef) -> Loaded:
        data: list[NDArray[Any]] = []
        try:
            self._heads(ref)
            for field, part in enumerate(ref.parts):
                with naming(part):
                    data.append(self._slice(field, part))
        except BadPair as bad:
            return Loaded.refused(bad, (), ("",) * len(ref.parts))
        return Loaded(tuple(data), tuple(map(identity, data)))

    def _heads(self, ref: RowRef) -> tuple[Header, ...]:
        """Return the headers of a row. Volumes with different numbers of slices have no good row."""
        heads, counts = [], []
        for field, part in enumerate(ref.parts):
            with naming(part):
                path, _ = _place(part)
                heads.append(self._header(field, path))
                counts.append(self._volume(path).slices)
        check_alike(ref.parts[0], heads[0], ref.parts[1], heads[1])
        if counts[0] != counts[1]:
            raise BadPair(f"{ref.parts[0]} is one of {counts[0]} slices, its label {ref.parts[1]} of {counts[1]}")
        return tuple(heads)

    def _header(self, field: int, path: str) -> Header:
        volume = self._volume(path)
        check_size(volume.height, volume.width, 1, MOST_PIXELS)
        dtype = (
            np.dtype(np.uint16) if field else volume.value_dtype
        )  # the numbers of a label are checked when it is read
        if field and volume.is_scaled:
            raise BadPair(f"has numbers that are scaled by {volume.slope:g}; a label has the numbers of its classes")
        return replace(
            header_by(KIND, (volume.height, volume.width), dtype), slices=self._slices(volume), grid=volume.grid
        )

    def _slices(self, volume: Volume) -> int | None:
        """Return the slices of a row that is a volume."""
        return None

    def _slice(self, field: int, part: str) -> NDArray[Any]:
        path, number = _place(part)
        volume = self._volume(path)
        values = volume.values(volume.numbers(number, self._bytes(path, volume) if volume.is_read_whole else None))
        return class_slice(values) if field else values

    def _volume(self, path: str) -> Volume:
        """Return the header of a file, which is read again when the file changed."""
        state = state_of(f"{self.root}/{path}")
        kept = self._known.get(path)
        if kept is None or kept[0] != state:
            kept = self._known[path] = state, Volume.open(self.root / path, self.axis)
        return kept[1]

    def _bytes(self, path: str, volume: Volume) -> bytes:
        """Return all bytes of a volume, and keep the bytes of the last volumes."""
        with self._lock:
            state = state_of(f"{self.root}/{path}")
            kept = self._unpacked.pop(path, None)
            if kept is None or kept[0] != state:
                self._make_room(volume.size)
                kept = state, self._whole(volume)
                if state_of(f"{self.root}/{path}") != state:
                    raise LostFile("changed while it was read; build again")
            self._unpacked[path] = kept
        if isinstance(kept[1], str):
            raise BadPair(kept[1])
        return kept[1]

    def _make_room(self, size: int) -> None:
        while len(self._unpacked) > 1:
            kept = sum(len(data) for _, data in self._unpacked.values())
            if len(self._unpacked) < KEPT and kept + size <= MOST_KEPT:
                break
            self._unpacked.popitem(last=False)

    @staticmethod
    def _whole(volume: Volume) -> bytes | str:
        """Return all bytes, or why they cannot be read, which is the reason for all slices."""
        try:
            return volume.all_bytes()
        except BadPair as bad:
            return str(bad)


def _place(part: str) -> tuple[str, int]:
    """Return the path and the number of a slice."""
    match = _PART.fullmatch(part)
    if match is None:
        raise BadPair("does not name a slice")
    return match[1], int(match[2].strip(",:"))


def class_slice(values: NDArray[Any]) -> NDArray[Any]:
    """Return class numbers, which some programs store as floating-point numbers."""
    if values.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # a signalling NaN
            wrong = ~(np.abs(values) < 1 << 31) | (values != np.rint(values))
        if wrong.any():
            row, column = np.argwhere(wrong)[0].tolist()
            raise BadPair(f"has the number {values[row, column]} at ({row}, {column}); a label has whole numbers")
        values = values.astype(np.int64)
    return class_numbers(values)
