"""`FileLines`: the lines of the files of a field, decoded in order."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, TypeAlias

from packer.decoding.decode import check_same_size
from packer.decoding.header import BandFiles, Picture, Strip
from packer.decoding.raw_file import naming_number
from packer.decoding.raw_pixels import IN_PARTS
from packer.decoding.strips.slide import SlideFile
from packer.decoding.strips.strip_file import StripFile
from packer.errors import BadPair
from packer.recipe.source import Given
from readers.contract.fields import Field
from readers.contract.tiles import Size, size_text
from readers.machine import Machine

if TYPE_CHECKING:
    from packer.decoding.strips.repeated_lines import RepeatedLines

GIB = 1 << 30

OpenedFile: TypeAlias = "StripFile | SlideFile"


class FileLines:
    """The lines of one file, of a file for each band with a name, or of a file for each class; a class without a file
    has an empty path."""

    def __init__(self, paths: Sequence[str], opened: Callable[[str], OpenedFile], bands: tuple[str, ...] = ()) -> None:
        self._bands = bands
        self._band_lines: list[StripFile | RepeatedLines] = []
        self._files: list[OpenedFile | None] = []
        with ExitStack() as exits:
            for path in paths:
                self._files.append(opened(path) if path else None)
                if (file := self._files[-1]) is not None:
                    exits.callback(file.close)
                if isinstance(file, StripFile) and file.whole_bytes:
                    _check_memory(file)
            self._size = self._joined_size() if bands else self._same_size(paths)
            self._exits = exits.pop_all()

    def _same_size(self, paths: Sequence[str]) -> Size:
        sizes = [(path, file.size) for path, file in zip(paths, self._files, strict=True) if file is not None]
        for path, size in sizes[1:]:
            check_same_size(*sizes[0], path, size, "file")
        return sizes[0][1]

    def _joined_size(self) -> Size:
        """Return the size of the finest of the files of bands; let the others repeat their lines."""
        from packer.decoding.band_files import join_headers  # most pictures are one file
        from packer.decoding.strips.repeated_lines import RepeatedLines

        files = [file for file in self._files if isinstance(file, StripFile)]
        assert len(files) == len(self._bands), "slides have several bands, so their headers are refused"
        size = join_headers(self._bands, [file.header for file in files], sys.maxsize).size
        self._band_lines = [file if file.size == size else RepeatedLines(file, size) for file in files]
        return size

    @property
    def size(self) -> Size:
        return self._size

    def lines(self, top: int, bottom: int) -> Given:
        if self._bands:
            return BandFiles(self._bands, tuple(self._band_strips(top, bottom)))
        parts: list[Picture] = [b"" if file is None else file.lines(top, bottom) for file in self._files]
        return parts[0] if len(parts) == 1 else tuple(parts)

    def _band_strips(self, top: int, bottom: int) -> Iterator[Strip]:
        for number, lines in enumerate(self._band_lines):
            with naming_number(number):
                yield lines.lines(top, bottom)

    def stored(self, field: Field) -> None:
        return None

    def close(self) -> None:
        self._exits.close()


def _check_memory(file: StripFile) -> None:
    """Refuse a picture that is decoded at once and needs more memory than this machine has. If it has the memory, but
    not now, raise MemoryError: the row is tried again alone."""
    machine, needed = Machine.look(), file.whole_bytes
    if 0 < machine.memory < needed:
        raise BadPair(
            f"is a {file.header} of {size_text(file.size)} pixels, which is decoded at once and needs "
            f"{needed / GIB:.1f} GiB of memory; this machine has {machine.memory / GIB:.1f}; {IN_PARTS}"
        )
    if 0 < machine.available < needed:
        raise MemoryError(f"{needed:,} bytes for a picture that is decoded at once")
