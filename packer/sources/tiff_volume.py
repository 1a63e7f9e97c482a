"""TIFFs with many pages as volumes: a page is a slice."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO

from packer.decoding.decode import check_same_size
from packer.decoding.raw_file import SEPARATOR, naming
from packer.decoding.tiff.pages import page_alone, read_pages
from packer.recipe.source import Slices


def volume_of(part: str, files: Sequence[bytes], max_pixels: int) -> Slices:
    """Return the volume in the file of a field, or in its files: one for each class, empty if there is none."""
    names, pages = part.split(SEPARATOR), []
    for name, data in zip(names, files, strict=True):
        with naming(name):
            pages.append(read_pages(BytesIO(data), max_pixels) if data else None)
    sizes = {name: each.size for name, each in zip(names, pages, strict=True) if each is not None}
    first = next(iter(sizes))
    for name, size in sizes.items():
        check_same_size(first, sizes[first], name, size, "file")

    def page(number: int) -> bytes | tuple[bytes, ...]:
        alone = [
            b"" if found is None else page_alone(data, found.offsets[number])
            for data, found in zip(files, pages, strict=True)
        ]
        return alone[0] if len(alone) == 1 else tuple(alone)

    return Slices(sizes[first], page, part)
