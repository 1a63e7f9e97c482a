"""A folder with NIfTI volumes of images and of labels: the base of the sources of their slices and of whole volumes."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from packer.decoding.arrays import class_numbers, header_by
from packer.decoding.header import Header
from packer.decoding.rules import MOST_PIXELS, check_size
from packer.errors import BadPair
from packer.pairs.template import PICTURES
from packer.recipe.row_ref import RowRef
from packer.recipe.source import UNKNOWN, Heads, Source
from packer.sources.container import Names
from packer.sources.file_states import FileState, are_young, state_of
from packer.sources.volumes.nifti_pairs import Volumes, find_volumes, is_volume
from packer.sources.volumes.nifti_volume import THIRD, Volume

if TYPE_CHECKING:
    from typing_extensions import Self

KIND = "NIfTI"
MOST_SEEN = 10_000
"""The files and folders that decide whether a folder is one of volumes."""
PART = re.compile(r"(.*)\[(\d{1,9}|\d{1,9},:,:|:,\d{1,9},:)\]", re.DOTALL)
"""The name of a slice in a reference."""


class NiftiSource(Source):
    """Pairs of volumes: `--image imagesTr/{key}_0000 --label labelsTr/{key}` name the files of pairs."""

    gives_arrays: ClassVar[bool] = True
    templates: tuple[str, ...] = ("", "")

    def __init__(self, root: Path, templates: tuple[str, ...], volumes: Volumes, axis: int = THIRD) -> None:
        self.root, self.templates, self.axis = root, templates, axis
        self.volumes = volumes
        self._known: dict[str, tuple[FileState, Volume]] = {}

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
    def at(cls, path: Path, names: Names) -> Self:
        """Find the pairs of volumes. A volume without a partner is an error."""
        return cls(path.absolute(), *find_volumes(path, names))

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> Source:
        return cls(Path(facts["root"]), tuple(facts["templates"]), {}, facts["axis"])

    def along(self, axis: int) -> Self:
        return type(self)(self.root, self.templates, self.volumes, axis)

    def to_text(self) -> str:
        facts = {"root": str(self.root), "templates": self.templates, "axis": self.axis}
        return json.dumps({"kind": self.kind, **facts})

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
                path = PART.sub(r"\1", part)
                if path not in file_states:
                    file_states[path] = state_of(f"{self.root}/{path}")
                row[3 * field : 3 * field + 3] = file_states[path]
        states[are_young(states), 0] = UNKNOWN
        return states

    @abstractmethod
    def _heads(self, ref: RowRef) -> tuple[Header, ...]:
        """Return the headers of a row. Raise BadPair if they do not fit."""

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

    def _volume(self, path: str) -> Volume:
        """Return the header of a file, which is read again when the file changed."""
        state = state_of(f"{self.root}/{path}")
        kept = self._known.get(path)
        if kept is None or kept[0] != state:
            kept = self._known[path] = state, Volume.open(self.root / path, self.axis)
        return kept[1]


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
