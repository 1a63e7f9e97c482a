"""A folder of files as a source. A row is a pair of files; its parts are their paths below the folder."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from packer.decoding.decode import check_same_size
from packer.decoding.file_types import read_header
from packer.decoding.header import Header
from packer.decoding.raw_file import SEPARATOR, naming
from packer.decoding.rules import MOST_PIXELS
from packer.decoding.tiff.pages import read_pages
from packer.errors import BadPair
from packer.pairs.pair import Pair
from packer.recipe.row_ref import RowRef
from packer.recipe.source import UNKNOWN, Heads, Lines, Listing, Loaded, Slices, Wanted
from packer.sources.file_lines import FileLines
from packer.sources.file_states import MIN_FILE_AGE, FileState, state_of
from packer.sources.tiff_volume import PageLines, volume_of
from readers.contract.regular_files import digest_raw, open_raw, read_raw

THREADS = 16
"""Headers and digests wait for the disk, not for the processor."""
NO_FILE = (0, 0, 0)
"""The state of a file that a row lacks."""
CHUNK, TOGETHER = 256, 64
"""Rows whose states one thread asks for, and the chunks that all threads ask for before one tries alone again."""
SLOW = 50e-6
"""Seconds a file. If an answer takes longer, the disk or the network is waited for, and many threads wait together.
Otherwise threads are slower than one: each answer takes two microseconds, and they take turns to run Python."""


@dataclass(frozen=True)
class FolderSource:
    """The files below a folder, and the pairs among them of which there is no table yet."""

    raw: Path
    pairs: tuple[Pair, ...] = field(default=(), repr=False)
    templates: tuple[str, ...] = ("", "")
    max_pixels: int = MOST_PIXELS
    tools: tuple[str, ...] = ()
    volumes: bool = False
    """True if the pages of a TIFF are the slices of a volume."""
    kind: ClassVar[str] = "folder"
    gives_lines: ClassVar[bool] = True

    def rows(self) -> Iterator[RowRef]:
        return refs_of(self.pairs)

    def list_rows(self, wanted: Wanted) -> Listing:
        return Listing(self.rows(), type(self).__name__)

    def heads(self, refs: Sequence[RowRef]) -> Iterator[Heads]:
        with ThreadPoolExecutor(THREADS) as pool:
            yield from pool.map(self.heads_of, refs)

    def states(self, refs: Sequence[RowRef]) -> NDArray[np.int64]:
        """Return the states of the image and the label of each row. One thread asks a fast disk, many a slow one."""
        if len(refs) <= CHUNK:
            return self._states(refs)
        chunks = [refs[first : first + CHUNK] for first in range(0, len(refs), CHUNK)]
        states: list[NDArray[np.int64]] = []
        with ThreadPoolExecutor(THREADS) as pool:
            while len(states) < len(chunks):
                started, chunk = time.monotonic(), chunks[len(states)]
                states.append(self._states(chunk))
                if time.monotonic() - started > 2 * len(chunk) * SLOW:
                    states += pool.map(self._states, chunks[len(states) : len(states) + TOGETHER])
        return np.concatenate(states)

    def identities(self, refs: Sequence[RowRef]) -> Iterator[tuple[str, ...] | None]:
        with ThreadPoolExecutor(THREADS) as pool:
            yield from pool.map(self._identity, refs)

    def load(self, ref: RowRef) -> Loaded:
        data: list[bytes | tuple[bytes, ...] | Slices] = []
        identities = [""] * len(ref.parts)
        for number, part in enumerate(ref.parts):
            try:
                paths = part.split(SEPARATOR)
                files = [self.read(path, is_alone=len(paths) == 1) for path in paths]
                digests = [blake3(file).hexdigest() if path else "" for path, file in zip(paths, files, strict=True)]
                identities[number] = _together(digests)
                given: bytes | tuple[bytes, ...] | Slices = files[0] if len(files) == 1 else tuple(files)
                if part and self.volumes:
                    given = volume_of(part, [BytesIO(file) if file else None for file in files], self.max_pixels)
                data.append(given)
            except BadPair as bad:
                return Loaded(tuple(data), tuple(identities), str(bad))
        return Loaded(tuple(data), tuple(identities))

    def load_lines(self, ref: RowRef) -> Loaded:
        """Identify a row that is too large for memory, and open its files."""
        data: list[Lines | bytes] = []
        identities = [""] * len(ref.parts)
        with ExitStack() as opened:
            for number, part in enumerate(ref.parts):
                try:
                    try:
                        data.append(opened.enter_context(closing(self._lines(part))) if part else b"")
                    finally:  # a bad file has an identity, too
                        identities[number] = self._identity_of(part)
                except BadPair as bad:
                    return Loaded(tuple(data), tuple(identities), str(bad))
            opened.pop_all()
        return Loaded(tuple(data), tuple(identities))

    def _lines(self, part: str) -> Lines:
        """Open the files of a field."""
        if self.volumes:
            return PageLines(self.raw, part, self.max_pixels)
        with naming(part):
            return FileLines(self.raw, part.split(SEPARATOR), self.max_pixels)

    def _identity_of(self, part: str) -> str:
        with naming(part):
            return _together([self.digest_of(path) if path else "" for path in part.split(SEPARATOR)])

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
        facts = {"raw": str(self.raw), "max_pixels": self.max_pixels, "fields": len(self.templates)}
        return json.dumps({"kind": self.kind, **facts, "volumes": self.volumes})

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> FolderSource:
        fields, pixels, volumes = (facts[name] for name in ("fields", "max_pixels", "volumes"))
        return cls(Path(facts["raw"]), templates=("",) * fields, max_pixels=pixels, volumes=volumes)

    def heads_of(self, ref: RowRef) -> Heads:
        """Return the header of each field of a row, or why it is bad."""
        try:
            paths = [part.split(SEPARATOR) for part in ref.parts if part]
            heads = [[self.header(path) for path in files if path] for files in paths]
            for number, (files, found) in enumerate(zip(paths, heads, strict=True)):
                for path, header in zip(filter(None, files), found, strict=True):
                    noun = "label" if number < 2 else "file"
                    check_same_size(ref.parts[0], heads[0][0].size, path, header.size, noun)
        except BadPair as bad:
            return str(bad)
        return tuple(found[0] for found in heads)

    def header(self, path: str) -> Header:
        with naming(path), open_raw(self.raw / path) as file:
            return read_pages(file, self.max_pixels).header if self.volumes else read_header(file, self.max_pixels)

    def size_of(self, path: str) -> int:
        """Return the number of bytes of a regular file."""
        with open_raw(self.raw / path) as file:
            return file.seek(0, 2)

    def digest_of(self, path: str) -> str:
        """Return a text that equal files share."""
        return digest_raw(self.raw / path)

    def _states(self, refs: Sequence[RowRef]) -> NDArray[np.int64]:
        raw, trusted = str(self.raw), time.time_ns() - MIN_FILE_AGE
        parts = [part for ref in refs for part in ref.parts]
        found = (_state(raw, part) if part else NO_FILE for part in parts)
        width = 3 * len(refs[0].parts if refs else self.templates)
        states = np.fromiter(chain.from_iterable(found), np.int64, 3 * len(parts)).reshape(-1, width)
        states[(states[:, 1::3] >= trusted).any(1), 0] = UNKNOWN
        return states

    def _identity(self, ref: RowRef) -> tuple[str, ...] | None:
        try:
            return tuple(
                _together([digest_raw(f"{self.raw}/{path}") if path else "" for path in part.split(SEPARATOR)])
                for part in ref.parts
            )
        except OSError:
            return None


def refs_of(pairs: Iterable[Pair]) -> Iterator[RowRef]:
    """Yield the reference to each pair."""
    return (
        RowRef(pair.split, pair.key, (pair.image, pair.label, *map(SEPARATOR.join, pair.further))) for pair in pairs
    )


def images_of(pairs: Iterable[Pair]) -> Iterator[RowRef]:
    """Yield the reference to each image, with its further fields and without a label."""
    return (RowRef(pair.split, pair.key, (pair.image, *map(SEPARATOR.join, pair.further))) for pair in pairs)


def _state(raw: str, part: str) -> FileState:
    """Return the state of a file, or one that stands for those of several."""
    if SEPARATOR not in part:
        return state_of(f"{raw}/{part}")
    states = [state_of(f"{raw}/{path}") if path else NO_FILE for path in part.split(SEPARATOR)]
    digest = int.from_bytes(blake3(repr(states).encode()).digest(length=7), "little")
    return digest, max(state[1] for state in states), max(state[2] for state in states)


def _together(digests: Sequence[str]) -> str:
    """Return the digest of a file, or one of the digests of several."""
    return digests[0] if len(digests) == 1 else blake3(SEPARATOR.join(digests).encode()).hexdigest()
