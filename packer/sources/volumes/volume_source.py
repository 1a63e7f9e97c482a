"""A folder with volumes of images and of labels: the base of the sources of their slices and of whole volumes."""

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
from packer.decoding.decode import check_same_size
from packer.decoding.header import Header
from packer.decoding.raw_file import SEPARATOR, naming
from packer.decoding.rules import MOST_PIXELS, check_size
from packer.errors import BadPair
from packer.pairs.fold_file import NAME as FOLDS
from packer.pairs.template import PICTURES
from packer.recipe.row_ref import RowRef
from packer.recipe.source import UNKNOWN, Heads, Listing, ListingRules, Source
from packer.sources.container import Names
from packer.sources.file_states import FileState, as_three_numbers, is_young, state_of
from packer.sources.volumes.data_set_file import DataSetFile
from packer.sources.volumes.dicom import FOLDER, is_slice
from packer.sources.volumes.dicom_slice import dicom_tools, library
from packer.sources.volumes.formats import files_of
from packer.sources.volumes.scan import Scan
from packer.sources.volumes.unpacked_volumes import UnpackedVolumes
from packer.sources.volumes.volume import Volume
from packer.sources.volumes.volume_pairs import Volumes, find_volumes, is_volume
from packer.sources.volumes.volume_rules import VolumeRules
from packer.sources.volumes.volume_scaling import NEAREST, VolumeScaling

if TYPE_CHECKING:
    from typing_extensions import Self

MOST_SEEN = 10_000
"""The files and folders that decide whether a folder is one of volumes."""
TURNS = "axes as the image 1"
"""The rule that turns the other files of a row."""
PART = re.compile(r"(.*)\[(\d{1,9}|\d{1,9},:,:|:,\d{1,9},:)\]", re.DOTALL)
"""The name of a slice in a reference."""


class VolumeSource(Source):
    """Pairs of volumes: `--image imagesTr/{key}_{channel} --label labelsTr/{key}` name the files of pairs."""

    gives_arrays: ClassVar[bool] = True
    tool: ClassVar[str]
    """The version of the rules that make rows of files."""
    templates: tuple[str, ...] = ("", "")

    def __init__(
        self,
        root: Path,
        templates: tuple[str, ...],
        volumes: Volumes,
        rules: VolumeRules = VolumeRules(),  # noqa: B008 - it never changes
        channels: tuple[str, ...] = (),
        has_series: bool = False,
    ) -> None:
        self.root, self.templates, self.rules = root, templates, rules
        self.volumes, self.channels = volumes, channels
        self.has_series = has_series
        """True if volumes are folders of DICOM files."""
        self._known: dict[str, tuple[list[FileState], Volume]] = {}
        self._unpacked = UnpackedVolumes()

    @classmethod
    def fits(cls, path: Path, head: bytes) -> bool:
        """Return whether this is a folder with volumes and without pictures, by the first files in it."""
        if head or not path.is_dir():
            return False
        has_volume = False
        for file in islice(chain.from_iterable(map(path.glob, ("*", "*/*", "*/*/*"))), MOST_SEEN):
            if file.name.lower().endswith(PICTURES):
                return False
            has_volume |= is_volume(file.name) or is_slice(file.name)
        return has_volume

    @classmethod
    def at(cls, path: Path, names: Names) -> Self:
        """Find the pairs of volumes. A volume without a partner is an error."""
        templates, volumes, channels = find_volumes(path, names)
        parts = chain.from_iterable(part.split(SEPARATOR) for pair in volumes.values() for part in pair)
        has_series = any(part.endswith(FOLDER) for part in parts)
        if has_series:
            library()
        names_of = DataSetFile.of(path).names_of(channels)
        return cls(path.absolute(), templates, volumes, channels=names_of, has_series=has_series)

    def list_rows(self, rules: ListingRules) -> Listing:
        notes = (
            [f"{FOLDS} has folds; to pack them: --folds {self.root / FOLDS}"] if (self.root / FOLDS).is_file() else []
        )
        return Listing(self.rows(), type(self).__name__, named=lambda: DataSetFile.of(self.root).classes, notes=notes)

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> Source:
        templates, channels = tuple(facts["templates"]), tuple(facts.get("channels", ()))
        return cls(
            Path(facts["root"]), templates, {}, VolumeRules(*facts["rules"]), channels, facts.get("series", False)
        )

    def along(self, axis: int) -> Self:
        return self._with(self.rules._replace(axis=axis))

    def oriented(self, code: str) -> Self:
        return self._with(self.rules._replace(orient=code))

    def spaced(self, spacing: tuple[float, ...], interpolation: str) -> Self:
        return self._with(self.rules._replace(spacing=spacing, interpolation=interpolation))

    def _with(self, rules: VolumeRules) -> Self:
        return type(self)(self.root, self.templates, self.volumes, rules, self.channels, self.has_series)

    @property
    def sides(self) -> str:
        return ", ".join(self.rules.tools)

    @property
    def tools(self) -> tuple[str, ...]:
        return (self.tool, TURNS, *self.rules.tools, *(dicom_tools() if self.has_series else ()))

    def to_text(self) -> str:
        facts = {"root": str(self.root), "templates": self.templates, "rules": self.rules}
        more = {"channels": self.channels, "series": self.has_series}
        return json.dumps({"kind": self.kind, **facts, **{name: fact for name, fact in more.items() if fact}})

    def heads(self, refs: Sequence[RowRef]) -> Iterator[Heads]:
        for ref in refs:
            try:
                yield self._heads(ref, list(self._scans(ref.parts)))
            except BadPair as bad:
                yield str(bad)

    def states(self, refs: Sequence[RowRef]) -> NDArray[np.int64]:
        """Return the states of the image and of the label of each row. The number of the slice is in its reference."""
        states_of: dict[str, FileState] = {}
        states = np.empty((len(refs), 6), np.int64)
        for row, ref in zip(states, refs, strict=True):
            for field, part in enumerate(ref.parts):
                paths = SEPARATOR.join(paths_of(part))
                if paths not in states_of:
                    states_of[paths] = self._state(paths.split(SEPARATOR))
                row[3 * field : 3 * field + 3] = states_of[paths]
        return states

    def _state(self, paths: Sequence[str]) -> FileState:
        """Return the state of a file, or one that stands for the states of several. A young file may still change."""
        file_states = [state for path in paths for state in self._states_of(path)]
        size, written, changed = file_states[0] if len(file_states) == 1 else as_three_numbers(repr(file_states))
        return UNKNOWN if any(map(is_young, file_states)) else size, written, changed

    @abstractmethod
    def _heads(self, ref: RowRef, scans: Sequence[Scan]) -> tuple[Header, ...]:
        """Return the headers of a row. Raise BadPair if they do not fit."""

    def _header(self, field: int, scan: Scan) -> Header:
        _, height, width = scan.upright
        check_size(height, width, scan.channels, MOST_PIXELS)
        if not field:
            return scan.header(self._slices(scan))
        label = scan.volumes[0].header
        if scan.channels > 1:
            raise BadPair(f"has {scan.channels} volumes; a label has one")
        if label.is_scaled:
            raise BadPair(f"has numbers that are scaled by {label.slope:g}; a label has the numbers of its classes")
        # The numbers of a label are checked when it is read.
        header = header_by(label.kind, (height, width), np.dtype(np.uint16))
        return replace(header, slices=self._slices(scan), grid=scan.grid)

    def _slices(self, scan: Scan) -> int | None:
        """Return the slices of a row that is a volume."""
        return None

    def _scans(self, parts: Sequence[str]) -> Iterator[Scan]:
        """Yield the headers of the files of each field, which have the axes of the first file."""
        image: Scan | None = None
        for field, part in enumerate(parts):
            with naming(part):
                scan = self._scan(field, part, image)
            image = image or scan
            yield scan

    def _scan(self, field: int, part: str, image: Scan | None) -> Scan:
        """Return the headers of the files of a field, with the axes of the image."""
        paths = paths_of(part)
        volumes = list(map(self._volume, paths))
        first = volumes[0].turned(self.rules.turn_of(volumes[0])) if image is None else image.volumes[0]
        alike = [volume.like(first) for volume in volumes]
        notes = (
            f"{path} is turned to the axes of {first.path.name}"
            for path, volume in zip(paths, alike, strict=True)
            if volume.turn != first.turn
        )
        scan = Scan.of(paths, alike, () if field else self.channels)
        return replace(scan, notes=tuple(notes), scaling=self._scaling(paths[0], alike[0], image))

    def _scaling(self, path: str, volume: Volume, image: Scan | None) -> VolumeScaling | None:
        """Return the way of a field to the stored size: of a label the way of its image, as nearest."""
        if image is None:
            return self.rules.scaling_of(volume)
        if image.scaling is None:
            return None
        check_same_size(image.volumes[0].path.name, image.scaling.source, path, volume.upright)
        return image.scaling._replace(interpolation=NEAREST)

    def _volume(self, path: str) -> Volume:
        """Return the header of a file, which is read again when the file changed."""
        states = self._states_of(path)
        kept = self._known.get(path)
        if kept is None or kept[0] != states:
            kept = self._known[path] = states, Volume.open(self.root / path)
        return kept[1]

    def _states_of(self, path: str) -> list[FileState]:
        """Return the states of all files that a volume has."""
        return [state_of(str(file)) for file in files_of(self.root / path)]


def paths_of(part: str) -> list[str]:
    """Return the files of a field, without the number of a slice."""
    return [PART.sub(r"\1", path) for path in part.split(SEPARATOR)]


def notes_of(scans: Sequence[Scan]) -> tuple[str, ...]:
    """Return the notes of all fields of a row."""
    return tuple(note for scan in scans for note in scan.notes)


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
