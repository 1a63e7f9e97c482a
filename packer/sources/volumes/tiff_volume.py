"""TIFFs with many pages as volumes: a page is a slice."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import BinaryIO

from packer.decoding.decode import check_same_size
from packer.decoding.raw_file import SEPARATOR, naming
from packer.decoding.strips.part_file import PartFile
from packer.decoding.tiff.pages import page_alone, read_pages
from packer.recipe.source import Slices
from readers.contract.fields import Field
from readers.contract.tiles import Size


class PageLines:
    """The pages of the files of a field, read when they are requested, because the volume is too large for memory."""

    def __init__(self, raw: Path, part: str, max_pixels: int) -> None:
        self._files = list[PartFile]()
        with ExitStack() as exits:
            files = [self._open(raw, path, exits) if path else None for path in part.split(SEPARATOR)]
            self._volume = volume_of(part, files, max_pixels)
            self._exits = exits.pop_all()

    def _open(self, raw: Path, path: str, exits: ExitStack) -> BinaryIO:
        with naming(path):
            self._files.append(exits.enter_context(closing(PartFile(raw / path))))
        return self._files[-1].file

    @property
    def size(self) -> Size:
        return self._volume.size

    def lines(self, top: int, bottom: int) -> Slices:
        """Return the next pages. With the last one of all a file that changed is refused."""

        def page(number: int) -> bytes | tuple[bytes, ...]:
            data: bytes | tuple[bytes, ...] = self._volume.slice(top + number)
            if top + number == self.size[0] - 1:
                for file in self._files:
                    file.check_unchanged()
            return data

        return Slices((bottom - top, *self.size[1:]), page, self._volume.name, top)

    def stored(self, field: Field) -> None:
        return None

    def close(self) -> None:
        self._exits.close()


def volume_of(part: str, files: Sequence[BinaryIO | None], max_pixels: int) -> Slices:
    """Return the volume in the file of a field, or in its files: one for each class, or none."""
    names, volumes = part.split(SEPARATOR), []
    for name, file in zip(names, files, strict=True):
        with naming(name):
            volumes.append((file, read_pages(file, max_pixels)) if file is not None else None)
    sizes = {name: volume[1].size for name, volume in zip(names, volumes, strict=True) if volume is not None}
    first = next(iter(sizes))
    for name, size in sizes.items():
        check_same_size(first, sizes[first], name, size, "file")

    def page(number: int) -> bytes | tuple[bytes, ...]:
        alone = [b"" if volume is None else page_alone(volume[0], volume[1].offsets[number]) for volume in volumes]
        return alone[0] if len(alone) == 1 else tuple(alone)

    return Slices(sizes[first], page, part)
