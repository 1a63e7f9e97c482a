"""Open whole-slide pictures with openslide, a library in C of the extra `slides`: their levels and their versions.

Opening reads most of a file's headers, and a damaged one may crash the library. So only processes that may crash do it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from packer.decoding.header import Header
from packer.decoding.rules import check_size
from packer.errors import BadPair, UsageError, first_of, library_of_extra
from readers.contract.tiles import Size, size_text

MOST_LEVELS, MOST_SIDE = 64, 1 << 24
MOST_NAMED = 8
"""The most levels that a message names."""
NEEDED = "slides are read by openslide: pip install 'segpack[slides]'"


@lru_cache(maxsize=1)
def library() -> ModuleType:
    """Return openslide. Raise UsageError if it is not installed."""
    return library_of_extra("openslide", NEEDED)


def slide_tools() -> tuple[str, ...]:
    """Return the versions of openslide and of the wheel that has its decoders: other ones may give other pixels."""
    try:
        version = library().__library_version__
    except UsageError:
        return ("openslide is not installed",)
    from importlib import metadata  # takes 10 ms, which builds without slides need not spend

    try:
        return (f"openslide {version} of openslide-bin {metadata.version('openslide-bin')}",)
    except metadata.PackageNotFoundError:
        return (f"openslide {version} of this system",)


def open_slide(path: Path) -> Any:
    """Open a slide, whose file is a regular one."""
    try:
        return library().OpenSlide(str(path))
    except library().OpenSlideError as error:
        raise unreadable(error) from error


def unreadable(error: Exception) -> BadPair:
    """Return the reason why a slide is bad, in the words of openslide."""
    return BadPair(f"is damaged, or not a slide that openslide reads ({error})")


def levels_of(slide: Any) -> tuple[Size, ...]:
    """Return the height and width of each level. Raise BadPair if they are impossible."""
    sizes = tuple((int(height), int(width)) for width, height in slide.level_dimensions[: MOST_LEVELS + 1])
    if not 0 < len(sizes) <= MOST_LEVELS or not all(0 < side <= MOST_SIDE for size in sizes for side in size):
        raise BadPair(f"is damaged: it claims {len(sizes)} levels, which are {levels_text(sizes)}")
    return sizes


def downsample_of(slide: Any, level: int) -> float:
    """Return how many times smaller than level 0 a level is. Raise BadPair if that is impossible."""
    factor = float(slide.level_downsamples[level])
    if not 1 <= factor <= MOST_SIDE:
        raise BadPair(f"is damaged: its level {level} is {factor:g} times smaller than level 0")
    return factor


def slide_header(levels: Sequence[Size], level: int, max_pixels: int) -> Header:
    """Return the header of a level of a slide. Its numbers are not exact: most slides are JPEG."""
    if level >= len(levels):
        raise BadPair(f"has no level {level}; its levels are {levels_text(levels)}; choose one with --slide-level")
    height, width = levels[level]
    try:
        check_size(height, width, 3, max_pixels)
    except BadPair as bad:
        fits = [number for number, size in enumerate(levels) if size[0] * size[1] <= max_pixels]
        hint = f", or --slide-level {fits[0]}, which is {size_text(levels[fits[0]])}" if fits else ""
        raise BadPair(f"{bad}{hint}") from None
    return Header("slide", width, height, 8, 3, is_lossy=True)


def levels_text(levels: Sequence[Size]) -> str:
    """Describe levels, such as `0: 1024x2048, 1: 256x512 (height x width)`."""
    sizes = [f"{number}: {size_text(size)}" for number, size in enumerate(levels)]
    return f"{', '.join(first_of(sizes, MOST_NAMED))} (height x width)"
