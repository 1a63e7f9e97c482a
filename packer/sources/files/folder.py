"""A folder of files as a source. A row is a pair of files; its parts are their paths below the folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from io import BytesIO
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from packer.decoding.decode import compared, elsewhere_in
from packer.decoding.file_types import read_header
from packer.decoding.header import BANDS_OF_FILES, BandFiles, Header
from packer.decoding.raw_file import SEPARATOR, naming
from packer.decoding.raw_pixels import check_whole
from packer.decoding.rules import MOST_PIXELS
from packer.decoding.slide import slide_header, slide_tools
from packer.decoding.strips.slide import SlideFile
from packer.decoding.strips.strip_file import StripFile
from packer.decoding.tiff.pages import read_pages
from packer.errors import BadPair
from packer.pairs.pair import Pair
from packer.pairs.template import CHANNEL, SHAPEFILE, Template, has_channels
from packer.recipe.row_ref import RowRef
from packer.recipe.source import UNKNOWN, Given, Heads, Lines, Loaded, Source
from packer.sources.ask_all import THREADS, ask_all
from packer.sources.file_states import UNREADABLE, FileState, are_young, state_of
from packer.sources.files.file_lines import FileLines, OpenedFile
from packer.sources.files.files_below import check_below
from packer.sources.files.slides import Levels, check_level, files_of_slide, has_folder, is_slide, slide_levels
from packer.sources.volumes.tiff_volume import PageLines, volume_of
from readers.contract.regular_files import digest_raw, open_raw, read_raw

NO_LEVELS: Mapping[str, Levels | BadPair] = MappingProxyType({})
NO_FILE = (0, 0, 0)
"""The state of a file that a row lacks."""
MOST_DIGESTS = 256
"""The digests of large files that a worker keeps."""
SHAPEFILE_PARTS = (".shx", ".dbf", ".prj", ".cpg")
"""The suffixes of the files next to a shapefile: places of shapes, properties, coordinate system, and encoding."""
HEADER = 4096
"""The bytes of a file that are read at a time for its header: a file server may like to send megabytes."""
CHUNK = 256
"""Rows whose states are one answer: a state takes two microseconds."""


@dataclass(frozen=True)
class FolderSource(Source):
    """The files below a folder, and the pairs among them that have no table yet."""

    raw: Path
    pairs: tuple[Pair, ...] = field(default=(), repr=False)
    templates: tuple[str, ...] = ("", "")
    max_pixels: int = MOST_PIXELS
    volumes: bool = False
    """True if the pages of a TIFF are the slices of a volume."""
    slides: bool = False
    """True if some of the files are slides."""
    slide_level: int = 0
    """The level of a slide that is its picture."""
    kind: ClassVar[str] = "folder"
    gives_lines: ClassVar[bool] = True

    @property
    def gives_strips(self) -> bool:
        return self.gives_lines and not self.volumes

    @property
    def heads_apart(self) -> bool:
        return not self.slides

    @property
    def tools(self) -> tuple[str, ...]:
        """The versions of what reads slides, and the rule of bands in files of their own, if there are any."""
        return (*(slide_tools() if self.slides else ()), *((BANDS_OF_FILES,) if self._of_channels else ()))

    @property
    def gives_volumes(self) -> bool:
        return self.volumes

    def rows(self) -> Iterator[RowRef]:
        return refs_of(self.pairs)

    def heads(self, refs: Sequence[RowRef]) -> Iterator[Heads]:
        slides = [path for ref in refs for path in ref.parts if is_slide(path)] if self.slides else []
        levels = dict(slide_levels(self.raw, slides))
        yield from ask_all(lambda ref: self.heads_of(ref, levels), refs)

    def states(self, refs: Sequence[RowRef]) -> NDArray[np.int64]:
        """Return the states of the image and the label of each row."""
        if len(refs) <= CHUNK:
            return self._states(refs)
        chunks = [refs[first : first + CHUNK] for first in range(0, len(refs), CHUNK)]
        return np.concatenate(list(ask_all(self._states, chunks)))

    def identities(self, refs: Sequence[RowRef]) -> Iterator[tuple[str, ...] | None]:
        with ThreadPoolExecutor(THREADS) as pool:
            yield from pool.map(self._identity, refs)

    def load(self, ref: RowRef) -> Loaded:
        data: list[Given] = []
        identities = [""] * len(ref.parts)
        for number, part in enumerate(ref.parts):
            try:
                if is_slide(part):
                    opened = self.load_lines(ref._replace(parts=(part,)))
                    identities[number] = opened.identities[0]
                    data.append(_all_lines(part, opened))
                    continue
                paths = part.split(SEPARATOR)
                files = [self.read(path, is_alone=len(paths) == 1) for path in paths]
                digests = [blake3(file).hexdigest() if path else "" for path, file in zip(paths, files, strict=True)]
                identities[number] = _together(digests)
                content: Given = files[0] if len(files) == 1 else tuple(files)
                if names := self._bands(number, paths):
                    content = BandFiles(names, tuple(files))
                if part and self.volumes:
                    content = volume_of(part, [BytesIO(file) if file else None for file in files], self.max_pixels)
                data.append(content)
            except BadPair as bad:
                return Loaded.refused(bad, data, identities)
        return self._placed(ref, Loaded(tuple(data), tuple(identities)))

    def load_lines(self, ref: RowRef) -> Loaded:
        """Identify a row that is too large for memory, and open its files."""
        data: list[Lines | bytes] = []
        identities = [""] * len(ref.parts)
        with ExitStack() as opened:
            for number, part in enumerate(ref.parts):
                try:
                    try:
                        data.append(opened.enter_context(closing(self._lines(number, part))) if part else b"")
                    finally:  # a bad file has an identity, too
                        identities[number] = self._identity_of(part)
                except BadPair as bad:
                    return Loaded.refused(bad, data, identities)
            loaded = self._placed(ref, Loaded(tuple(data), tuple(identities)))
            if loaded.bad is None:
                opened.pop_all()
        return loaded

    def _placed(self, ref: RowRef, loaded: Loaded) -> Loaded:
        """Return a row of volumes with the words for a field at another place, which its slices do not show."""
        if not self.volumes or sum(map(bool, ref.parts)) < 2:
            return loaded
        heads = self.heads_of(ref)
        if isinstance(heads, str):
            return loaded._replace(bad=heads)
        return loaded._replace(elsewhere=elsewhere_in(heads))

    def _lines(self, number: int, part: str) -> Lines:
        """Open the files of a field."""
        if self.volumes:
            return PageLines(self.raw, part, self.max_pixels)
        paths = part.split(SEPARATOR)
        with naming(part):
            return FileLines(paths, self._opened, self._bands(number, paths))

    def _bands(self, number: int, paths: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the bands, if a field is a picture whose bands are in these files."""
        template = self._of_channels.get(number)
        matches = () if template is None else map(template.match, paths)
        return tuple(match[CHANNEL] for match in matches if match is not None)

    @cached_property
    def _of_channels(self) -> Mapping[int, Template]:
        """The templates of the fields that are pictures with a file for each band, by their numbers."""
        return {number: Template(text) for number, text in enumerate(self.templates) if has_channels(text)}

    def _identity_of(self, part: str) -> str:
        with naming(part):
            return _together([self._kept_digest(path) if path else "" for path in part.split(SEPARATOR)])

    def _kept_digest(self, path: str) -> str:
        """Return the digest of a large file, which is read for several shards, once for each state that it has."""
        state = _state(str(self.raw), path)
        before, digest = self._digests.get(path, (UNREADABLE, ""))
        if before != state or state == UNREADABLE or are_young(np.array([state]))[0]:
            digest = self.digest_of(path)
            if len(self._digests) >= MOST_DIGESTS:
                self._digests.clear()
            self._digests[path] = state, digest
        return digest

    @cached_property
    def _digests(self) -> dict[str, tuple[FileState, str]]:
        return {}

    def read(self, path: str, is_alone: bool = True) -> bytes:
        """Return the bytes of a file; none for a file that a field lacks, so no other of its files may be empty."""
        if not path:
            return b""
        with naming(path):
            data = read_raw(f"{self.raw}/{path}")
            if not data and not is_alone:
                raise BadPair("is empty")
        return data

    def to_text(self) -> str:
        facts = {"raw": str(self.raw), "max_pixels": self.max_pixels, "templates": self.templates}
        slides = {"slides": self.slides, "slide_level": self.slide_level}
        return json.dumps({"kind": self.kind, **facts, "volumes": self.volumes, **slides})

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> FolderSource:
        settings = {name: facts[name] for name in ("max_pixels", "volumes", "slides", "slide_level")}
        return cls(Path(facts["raw"]), templates=tuple(facts["templates"]), **settings)

    def heads_of(self, ref: RowRef, levels: Mapping[str, Levels | BadPair] = NO_LEVELS) -> Heads:
        """Return the header of each field of a row, or why it is bad."""
        try:
            heads = [self._heads_of_field(number, part, levels) for number, part in enumerate(ref.parts) if part]
            for number, files in enumerate(heads):
                image, first = heads[0][0]
                noun = "label" if number < 2 else "file"
                for index, (path, header) in enumerate(files):
                    if isinstance(of := levels.get(image), tuple):
                        check_level(image, of, self.slide_level, path, header.size, noun)
                    files[index] = path, compared(image, first, path, header, noun)
        except BadPair as bad:
            return str(bad)
        return tuple(_header_of_field([header for _, header in files]) for files in heads)

    def _heads_of_field(
        self, number: int, part: str, levels: Mapping[str, Levels | BadPair]
    ) -> list[tuple[str, Header]]:
        """Return the files of a field with their headers; of a picture in several files the first, and one header."""
        paths = [path for path in part.split(SEPARATOR) if path]
        headers = [self._header(path, levels) for path in paths]
        if names := self._bands(number, paths):
            from packer.decoding.band_files import join_headers  # most pictures are one file

            with naming(part):
                joined = join_headers(names, headers, self.max_pixels)
            headers = [replace(joined, elsewhere=joined.elsewhere and f"{paths[0]}: {joined.elsewhere}")]
        return list(zip(paths, headers, strict=False))

    def header(self, path: str) -> Header:
        if is_slide(path):
            return self._header(path, dict(slide_levels(self.raw, [path])))
        with naming(path), open_raw(f"{self.raw}/{path}", HEADER) as file:
            return read_pages(file, self.max_pixels).header if self.volumes else read_header(file, self.max_pixels)

    def _header(self, path: str, levels: Mapping[str, Levels | BadPair]) -> Header:
        """Return the header of a file, or of a slide with these levels."""
        if path not in levels:
            return self.header(path)
        with naming(path):
            if isinstance(answer := levels[path], BadPair):
                raise answer
            return slide_header(answer, self.slide_level, self.max_pixels)

    def check_parts(self, parts: Sequence[str]) -> None:
        check_below(self.raw, filter(None, SEPARATOR.join(parts).split(SEPARATOR)))

    def size_of(self, path: str) -> int:
        """Return the number of bytes of a regular file."""
        with open_raw(self.raw / path) as file:
            return file.seek(0, 2)

    def digest_of(self, path: str) -> str:
        """Return a text that equal files share."""
        if not is_slide(path) and not is_shapefile(path):
            return digest_raw(self.raw / path)
        names = files_of_slide(self.raw, path) if is_slide(path) else files_of_shapefile(self.raw, path)
        return identity_of_files([digest_raw(self.raw / name) for name in names], names)

    def _opened(self, path: str) -> OpenedFile:
        """Open a file whose lines are decoded in order."""
        if not is_slide(path):
            return StripFile(self.raw / path, self.max_pixels)
        files = [self.raw / name for name in files_of_slide(self.raw, path)]
        return SlideFile(files, self.slide_level, self.max_pixels)

    def _states(self, refs: Sequence[RowRef]) -> NDArray[np.int64]:
        raw = str(self.raw)
        parts = [part for ref in refs for part in ref.parts]
        file_states = (_state(raw, part) if part else NO_FILE for part in parts)
        width = 3 * len(refs[0].parts if refs else self.templates)
        states = np.fromiter(chain.from_iterable(file_states), np.int64, 3 * len(parts)).reshape(-1, width)
        states[are_young(states), 0] = UNKNOWN
        return states

    def _identity(self, ref: RowRef) -> tuple[str, ...] | None:
        try:
            return tuple(
                _together([self.digest_of(path) if path else "" for path in part.split(SEPARATOR)])
                for part in ref.parts
            )
        except (OSError, BadPair):
            return None


def refs_of(pairs: Iterable[Pair]) -> Iterator[RowRef]:
    """Yield the reference to each pair."""
    return (
        RowRef(pair.split, pair.key, (_image(pair), pair.label, *map(SEPARATOR.join, pair.further))) for pair in pairs
    )


def images_of(pairs: Iterable[Pair]) -> Iterator[RowRef]:
    """Yield the reference to each image, with its further fields and without a label."""
    return (RowRef(pair.split, pair.key, (_image(pair), *map(SEPARATOR.join, pair.further))) for pair in pairs)


def _image(pair: Pair) -> str:
    return SEPARATOR.join(pair.channels or (pair.image,))


def _all_lines(part: str, opened: Loaded) -> Given:
    """Return all lines of a picture that is opened alone."""
    opened.check()
    lines: Lines = opened.data[0]
    with naming(part), closing(lines):
        check_whole("slide", lines.size)
        return lines.lines(0, lines.size[0])


def _state(raw: str, part: str) -> FileState:
    """Return the state of a file, or one that stands for the states of several."""
    if has_folder(part):
        try:
            paths = files_of_slide(Path(raw), part)
        except BadPair:
            return UNREADABLE
    elif is_shapefile(part):
        paths = files_of_shapefile(Path(raw), part)
    elif SEPARATOR not in part:
        return state_of(f"{raw}/{part}")
    else:
        paths = part.split(SEPARATOR)
    states = [state_of(f"{raw}/{path}") if path else NO_FILE for path in paths]
    digest = int.from_bytes(blake3(repr(states).encode()).digest(length=7), "little")
    return digest, max(state[1] for state in states), max(state[2] for state in states)


def _header_of_field(headers: Sequence[Header]) -> Header:
    """Return the header of the first file of a field. It has the words for any of them that is at another place."""
    elsewhere = elsewhere_in(headers)
    return replace(headers[0], elsewhere=elsewhere) if elsewhere else headers[0]


def identity_of_files(digests: Sequence[str], names: Sequence[str]) -> str:
    """Return the identity of a file with others that belong to it, whose names count, too."""
    return _together([*digests, *names[1:]])


def is_shapefile(path: str) -> bool:
    return path[-len(SHAPEFILE) :].lower() == SHAPEFILE


def files_of_shapefile(raw: Path, path: str) -> list[str]:
    """Return the path of a shapefile, and the paths of the files next to it that belong to it."""
    stem = path[: -len(SHAPEFILE)]
    names = [name for part in SHAPEFILE_PARTS for name in (stem + part, stem + part.upper())]
    return [path, *(name for name in names if (raw / name).is_file())]


def _together(digests: Sequence[str]) -> str:
    """Return the digest of a file, or one of the digests of several."""
    return digests[0] if len(digests) == 1 else blake3(SEPARATOR.join(digests).encode()).hexdigest()
