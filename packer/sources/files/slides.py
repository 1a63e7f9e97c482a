"""Slides among the files of a folder: which ones they are, what belongs to each, and the levels that it has."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packer.decoding.decode import check_same_size
from packer.decoding.slide import levels_of, levels_text, library, open_slide
from packer.errors import BadPair, UsageError
from packer.pairs.template import SLIDES
from packer.recipe.ref_table import CHUNK, RefTable
from packer.sources.library_process import ask
from readers.contract.regular_files import open_raw
from readers.contract.tiles import Size

Levels = tuple[Size, ...]
"""The height and width of each level of a slide."""
_IN_FOLDER = ".mrxs"
_ENDS = b"\0\t\n"
"""The characters that follow a path in a table of references."""


def is_slide(path: str) -> bool:
    """Return whether openslide reads a file. The suffix decides, because most slides are TIFFs by their first bytes."""
    return path.lower().endswith(SLIDES)


def has_slides(refs: RefTable) -> bool:
    """Return whether a file of a row is a slide."""
    endings = [suffix.encode() + bytes([end]) for suffix in SLIDES for end in _ENDS]
    for first in range(0, len(refs), CHUNK):
        text = refs.lines(first, min(first + CHUNK, len(refs))).lower()
        if any(ending in text for ending in endings):
            return True
    return False


def check_readable(are_objects: bool) -> None:
    """Raise UsageError if openslide is not installed, or if the slides are objects of a store."""
    if are_objects:
        raise UsageError("slides are not read from a store, because openslide reads files; copy them into a folder")
    library()


def has_folder(path: str) -> bool:
    """Return whether the pixels of a slide are in the files of a folder with its name."""
    return path[-len(_IN_FOLDER) :].lower() == _IN_FOLDER


def files_of_slide(raw: Path, path: str) -> list[str]:
    """Return the paths of a slide's file and of all files that belong to it."""
    if not has_folder(path):
        return [path]
    folder = path[: -len(_IN_FOLDER)]
    try:
        names = sorted(file.name for file in (raw / folder).iterdir() if file.is_file())
    except OSError:
        names = []
    if not names:
        raise BadPair(f"its pixels are in the folder {folder}, which is not there or has no files")
    return [path, *(f"{folder}/{name}" for name in names)]


def check_level(image: str, levels: Levels, level: int, other: str, size: tuple[int, ...], noun: str) -> None:
    """Refuse a label, or another file, of another size than the level of a slide; name the level that has its size."""
    if size == levels[level]:
        return
    try:
        check_same_size(image, levels[level], other, size, noun)
    except BadPair as bad:
        fits = [number for number, level_size in enumerate(levels) if level_size == size]
        hint = f"--slide-level {fits[0]} has this size" if fits else f"the levels are {levels_text(levels)}"
        raise BadPair(f"{bad}; {hint}") from None


def slide_levels(raw: Path, paths: Sequence[str]) -> Iterator[tuple[str, Levels | BadPair]]:
    """Yield each path with the levels of the slide, or why it cannot be read.

    Slides are opened in another process, which a damaged one may end.
    """
    left = list(paths)
    while left:
        opened = 0
        try:
            for sizes, problem in ask(SlideHeads(raw, left), "levels"):
                levels = tuple((height, width) for height, width in sizes)
                yield left[opened], levels if problem is None else BadPair(problem)
                opened += 1
        except BadPair as bad:
            yield left[opened], bad
            opened += 1
        left = left[opened:]


@dataclass(frozen=True)
class SlideHeads:
    """Slides below a folder, whose levels another process reads."""

    raw: Path
    paths: Sequence[str]

    def levels(self) -> Iterator[tuple[Levels, str | None]]:
        """Yield the levels of each slide, or none and the reason."""
        for path in self.paths:
            try:
                yield self._levels(path), None
            except BadPair as bad:
                yield (), str(bad)

    def _levels(self, path: str) -> Levels:
        for name in files_of_slide(self.raw, path):
            try:
                open_raw(self.raw / name).close()  # it is a regular file, so openslide does not wait for it
            except OSError as error:
                named = "" if name == path else f"{name}: "
                raise BadPair(f"{named}cannot be read ({error.strerror})") from error
        slide = open_slide(self.raw / path)
        try:
            return levels_of(slide)
        finally:
            slide.close()

    def to_text(self) -> str:
        return json.dumps({"raw": str(self.raw.absolute()), "paths": list(self.paths)})

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> SlideHeads:
        return cls(Path(facts["raw"]), facts["paths"])
