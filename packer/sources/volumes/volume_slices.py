"""Volumes as a source: a folder with volumes of images and of labels. A row is a slice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, ClassVar

from numpy.typing import NDArray

from packer.decoding.decode import compared, elsewhere_in
from packer.decoding.header import Header, Strip
from packer.decoding.raw_file import SEPARATOR, naming
from packer.errors import BadPair
from packer.recipe.row_ref import RowRef
from packer.recipe.source import Loaded, Source
from packer.sources.given_fields import identity
from packer.sources.volumes.scan import Scan
from packer.sources.volumes.volume_place import slice_place
from packer.sources.volumes.volume_source import PART, VolumeSource, class_slice, notes_of
from packer.sources.volumes.whole_volumes import WholeVolumes

KEPT = 2
"""The rows whose volumes a worker keeps."""
_FORMS = ("[{},:,:]", "[:,{},:]", "[{}]")
"""Names of a slice along each axis in a reference, as NumPy would write them."""


class VolumeSlices(VolumeSource):
    """The slices of pairs of volumes along an axis."""

    kind: ClassVar[str] = "nifti"
    tool: ClassVar[str] = "nifti slices 1"

    def as_volumes(self) -> Source:
        return WholeVolumes(self.root, self.templates, self.volumes, self.rules, self.channels, self.has_series)

    def group_of(self, key: str) -> str:
        return key.rpartition("/")[0]

    def rows(self) -> Iterator[RowRef]:
        """Yield the slices of all volumes. One that cannot be read is a row, too, which is bad."""
        for (split, key), paths in self.volumes.items():
            counts, image = [1], None
            for field, part in enumerate(paths):
                with suppress(BadPair, OSError):
                    scan = self._scan(field, part, image)
                    counts.append(scan.slices)
                    image = image or scan
            for number in range(max(counts)):
                form = _FORMS[self.rules.axis].format(number)
                parts = (part.replace(SEPARATOR, form + SEPARATOR) + form for part in paths)
                yield RowRef(split, f"{key}/{number:04}", tuple(parts))

    def load(self, ref: RowRef) -> Loaded:
        data: list[NDArray[Any] | Strip] = []
        try:
            scans = list(self._scans(ref.parts))
            heads = self._heads(ref, scans)
            for field, (part, scan) in enumerate(zip(ref.parts, scans, strict=True)):
                with naming(part):
                    data.append(self._slice(field, part, scan))
        except BadPair as bad:
            return Loaded.refused(bad, (), ("",) * len(ref.parts))
        arrays = [picture.stored.numbers if isinstance(picture, Strip) else picture for picture in data]
        place = slice_place(scans[0], _slice_number(ref.parts[0]))
        identities = tuple(map(identity, arrays))
        return Loaded(tuple(data), identities, notes=notes_of(scans), place=place, elsewhere=elsewhere_in(heads))

    def _heads(self, ref: RowRef, scans: Sequence[Scan]) -> tuple[Header, ...]:
        """Return the headers of a row. Volumes with different numbers of slices have no good row."""
        heads, counts = [], []
        for field, (part, scan) in enumerate(zip(ref.parts, scans, strict=True)):
            with naming(part):
                heads.append(self._header(field, scan))
                counts.append(scan.slices)
        heads[1] = compared(ref.parts[0], heads[0], ref.parts[1], heads[1])
        if counts[0] != counts[1]:
            raise BadPair(f"{ref.parts[0]} is one of {counts[0]} slices, its label {ref.parts[1]} of {counts[1]}")
        return tuple(heads)

    def _slice(self, field: int, part: str, scan: Scan) -> NDArray[Any] | Strip:
        number = _slice_number(part)
        wholes = [
            self._unpacked.bytes(volume, KEPT * (len(scan.volumes) + 1)) if volume.is_read_whole else None
            for volume in scan.volumes
        ]
        picture = scan.slice(number, wholes)
        return class_slice(picture) if field and not isinstance(picture, Strip) else picture


def _slice_number(part: str) -> int:
    """Return the number of the slice that a reference names."""
    match = PART.fullmatch(part.split(SEPARATOR)[0])
    if match is None:
        raise BadPair("does not name a slice")
    return int(match[2].strip(",:"))
