"""Volumes as a source of volumes: a row is a pair of files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar

from blake3 import blake3
from numpy.typing import NDArray

from packer.decoding.decode import compared, elsewhere_in
from packer.decoding.header import Header, Strip
from packer.decoding.raw_file import naming
from packer.errors import BadPair, LostFile
from packer.recipe.row_ref import RowRef
from packer.recipe.source import Lines, Loaded, Slices
from packer.sources.volumes.scan import Scan
from packer.sources.volumes.volume import Volume
from packer.sources.volumes.volume_lines import VolumeLines
from packer.sources.volumes.volume_place import volume_place
from packer.sources.volumes.volume_source import VolumeSource, class_slice, notes_of


class WholeVolumes(VolumeSource):
    """Pairs of whole volumes, whose slices follow each other along an axis."""

    kind: ClassVar[str] = "nifti volumes"
    tool: ClassVar[str] = "nifti volumes 1"
    gives_lines: ClassVar[bool] = True
    gives_volumes: ClassVar[bool] = True

    def as_volumes(self) -> WholeVolumes:
        return self

    def rows(self) -> Iterator[RowRef]:
        for (split, key), paths in self.volumes.items():
            yield RowRef(split, key, paths)

    def load(self, ref: RowRef) -> Loaded:
        """Read both files. The slices are scaled and checked when they are stored."""
        return self._loaded(ref, self._read)

    def load_lines(self, ref: RowRef) -> Loaded:
        """Identify both files of a row that is too large for memory, which are then read once more."""
        return self._loaded(ref, self._lines)

    def _loaded(self, ref: RowRef, read: Callable[[int, str, Scan], tuple[Slices | Lines, str]]) -> Loaded:
        data: list[Slices | Lines] = []
        identities = [""] * len(ref.parts)
        try:
            scans = list(self._scans(ref.parts))
            heads = self._heads(ref, scans)
            for field, (part, scan) in enumerate(zip(ref.parts, scans, strict=True)):
                with naming(part):
                    volume, identities[field] = read(field, part, scan)
                    data.append(volume)
        except BadPair as bad:
            return Loaded.refused(bad, data, identities)
        place, notes = volume_place(scans[0]), notes_of(scans)
        return Loaded(tuple(data), tuple(identities), notes=notes, place=place, elsewhere=elsewhere_in(heads))

    def _heads(self, ref: RowRef, scans: Sequence[Scan]) -> tuple[Header, ...]:
        heads = []
        for field, (part, scan) in enumerate(zip(ref.parts, scans, strict=True)):
            with naming(part):
                heads.append(self._header(field, scan))
        return heads[0], compared(ref.parts[0], heads[0], ref.parts[1], heads[1])

    def _slices(self, scan: Scan) -> int | None:
        return scan.slices

    def _read(self, field: int, part: str, scan: Scan) -> tuple[Slices, str]:
        """Return a volume, and the BLAKE3 of the bytes of its files, unpacked."""
        states = [volume.states() for volume in scan.volumes]
        wholes = [volume.all_bytes() for volume in scan.volumes]
        if [volume.states() for volume in scan.volumes] != states:
            raise LostFile("changed while it was read; build again")

        def values(number: int) -> NDArray[Any] | Strip:
            picture = scan.slice(number, wholes)
            return class_slice(picture) if field and not isinstance(picture, Strip) else picture

        digests = [_digest(volume, [data]) for volume, data in zip(scan.volumes, wholes, strict=True)]
        return Slices(scan.upright, values, part), _together(digests)

    def _lines(self, field: int, part: str, scan: Scan) -> tuple[VolumeLines, str]:
        """Return a volume that is read when its slices are asked for, and the BLAKE3 of its files' bytes, unpacked."""
        lines = VolumeLines(scan, part, class_slice if field else None)
        digests = [_digest(volume, volume.pieces()) for volume in scan.volumes]
        lines.check_unchanged()
        return lines, _together(digests)


def _digest(volume: Volume, pieces: Iterable[bytes | memoryview]) -> str:
    """Return the BLAKE3 of the header and the numbers of a file, unpacked."""
    digest = blake3(volume.header.text)
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def _together(digests: list[str]) -> str:
    """Return the digest of a file, or one for several files."""
    return digests[0] if len(digests) == 1 else blake3("".join(digests).encode()).hexdigest()
