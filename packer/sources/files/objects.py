"""A folder of files in a store as a source. It has the same pairs as a folder of this machine with the same files."""

from __future__ import annotations

import json
import math
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import gettempdir
from typing import Any, ClassVar
from weakref import finalize

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from packer.decoding.file_types import read_header
from packer.decoding.header import Header
from packer.decoding.raw_file import SEPARATOR, naming
from packer.errors import BadPair, InputError
from packer.pairs.files import RawFiles
from packer.recipe.row_ref import RowRef
from packer.recipe.source import UNKNOWN
from packer.sources.ask_all import THREADS
from packer.sources.file_states import UNREADABLE, FileState, as_three_numbers
from packer.sources.files.folder import NO_FILE, FolderSource
from packer.sources.files.ranged_file import RangedFile
from packer.sources.files.read_ahead import Object, ObjectsAhead
from packer.sources.store_answers import explained
from readers.contract.atomic import partial_path
from readers.contract.leftovers import sweep
from readers.contract.manifest import MANIFEST, MARK, SHARDS
from readers.stores.open_store import open_store, url_of
from readers.stores.store import Store

TEXTS = (".txt", ".csv", ".tsv", ".lst", ".json", ".toml")
"""Suffixes of split lists, tables of pairs and class tables. They are copied to this machine, where they are read."""
MOST_TEXTS, MOST_TEXT_BYTES = 200, 64 << 20
"""A folder with more of such files, or larger ones, has annotations, and not lists."""


class _Scratch:
    """A folder that is removed when no source needs it any more, or by the next one if its process is killed."""

    def __init__(self) -> None:
        parent = Path(gettempdir())
        sweep(parent, math.inf)
        self.folder = partial_path(parent, os.getpid(), secrets.token_hex(8))
        self.folder.mkdir(0o700)
        finalize(self, shutil.rmtree, self.folder, ignore_errors=True)


@dataclass(frozen=True)
class ObjectsSource(FolderSource):
    """The objects below a URL. `raw` is a folder with copies of the texts among them."""

    url: str = ""
    listed: Mapping[str, tuple[int, str]] | None = field(default=None, repr=False)
    """The size and the tag of each object. A worker lists nothing: it learns them from what it reads."""
    folders: Mapping[str, Sequence[str]] = field(default_factory=dict, repr=False)
    """The names of the files in each folder."""
    packs: tuple[str, ...] = ()
    """Folders of packs, which are passed over."""
    scratch: _Scratch | None = field(default=None, repr=False)
    """Removes the folder `raw` when the source is not needed any more."""
    kind: ClassVar[str] = "objects"
    gives_lines: ClassVar[bool] = False

    @classmethod
    def at(cls, url: str) -> ObjectsSource:
        """List the objects below a URL, with one request for each thousand."""
        source = cls(Path(), url=url.rstrip("/"))
        listed: dict[str, tuple[int, str]] = {}
        with explained():
            for entry in source.store.list(""):
                if not any(part.startswith(".") and part != MARK for part in entry.name.split("/")):
                    listed[entry.name] = entry.size, entry.tag
        folders, packs = _folders(url, listed)
        scratch = _Scratch()
        source = replace(source, raw=scratch.folder, listed=listed, folders=folders, packs=packs, scratch=scratch)
        source._copy_texts()
        return source

    @property
    def heads_apart(self) -> bool:
        return False  # only this process has the listing

    @property
    def files(self) -> RawFiles:
        """The files to find pairs among. The search may change them."""
        return RawFiles.of(self.folders, self.packs)

    @cached_property
    def store(self) -> Store:
        return open_store(self.url)

    @cached_property
    def ahead(self) -> ObjectsAhead:
        return ObjectsAhead(self._object)

    def expect(self, refs: Iterable[RowRef]) -> None:
        self.ahead.expect(path for ref in refs for part in ref.parts for path in part.split(SEPARATOR) if path)

    def states(self, refs: Sequence[RowRef]) -> NDArray[np.int64]:
        """Return the sizes and tags of the objects of each row, from the listing or from what was read."""
        width = 3 * len(refs[0].parts if refs else self.templates)
        rows = [[number for part in ref.parts for number in self._state(part)] for ref in refs]
        return np.array(rows, np.int64).reshape(-1, width)

    def header(self, path: str) -> Header:
        with naming(path), explained(), RangedFile(self.size_of(path), self._range_of(path)).buffered() as file:
            return read_header(file, self.max_pixels)

    def copy_of(self, location: Any) -> Any:
        """Return the path of the copy of a text, if this is its URL."""
        url = url_of(location) if isinstance(location, (str, Path)) else None
        below = f"{self.url}/"
        return str(self.raw / url.removeprefix(below)) if url and url.startswith(below) else location

    def size_of(self, path: str) -> int:
        """Return the number of bytes of an object."""
        return self.listed[path][0] if self.listed and path in self.listed else len(self.ahead.look(path)[0])

    def digest_of(self, path: str) -> str:
        """Return a text that equal objects share, though not all: the digest from the store."""
        if self.listed and path in self.listed:
            return self.listed[path][1]
        return blake3(self.read(path, is_alone=True)).hexdigest()

    def to_text(self) -> str:
        facts = {"url": self.url, "max_pixels": self.max_pixels, "templates": self.templates}
        return json.dumps({"kind": self.kind, **facts})

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> ObjectsSource:
        return cls(Path(), templates=tuple(facts["templates"]), max_pixels=facts["max_pixels"], url=facts["url"])

    @contextmanager
    def named(self) -> Iterator[None]:
        """Let errors name the URL instead of the folder with the texts."""
        try:
            yield
        except InputError as error:
            folder = str(self.raw)
            error.args = tuple(str(text).replace(folder, self.url) for text in error.args)
            error.problems = tuple(problem.replace(folder, self.url) for problem in error.problems)
            raise

    def _object(self, path: str) -> Object:
        return self.store.read(path)

    def read(self, path: str, is_alone: bool = True) -> bytes:
        if not path:
            return b""
        with naming(path), explained():
            data, _ = self.ahead.take(path)
            if not data and not is_alone:
                raise BadPair("is empty")
        return data

    def _range_of(self, path: str) -> Any:
        return lambda start, stop: self.store.read(path, start, stop)[0]

    def _state(self, part: str) -> FileState:
        """Return the state of an object, or one that stands for the states of several."""
        if SEPARATOR not in part:
            return self._state_of(part)
        states = [self._state_of(path) for path in part.split(SEPARATOR)]
        return as_three_numbers(repr(states))

    def _state_of(self, path: str) -> FileState:
        if not path:
            return NO_FILE
        size, tag = self._learned(path) if self.listed is None else self.listed.get(path, (-1, ""))
        if size < 0:
            return UNREADABLE
        return as_three_numbers(f"{size} {tag}") if tag else (UNKNOWN, -1, -1)

    def _learned(self, path: str) -> tuple[int, str]:
        """Return the size and the tag of an object that is read for it, and kept until it is loaded."""
        try:
            with explained():
                data, version = self.ahead.look(path)
        except BadPair:
            return -1, ""
        return len(data), version.tag

    def _identity(self, ref: RowRef) -> tuple[str, ...] | None:
        loaded = self.load(ref)
        return None if loaded.bad is not None else loaded.identities

    def _copy_texts(self) -> None:
        """Copy the texts that may be lists and tables, without folders that have an annotation for each picture."""
        assert self.listed is not None
        chosen: list[str] = []
        for folder, names in self.folders.items():
            texts = [folder + name for name in names if name.lower().endswith(TEXTS)]
            if len(texts) <= MOST_TEXTS and math.fsum(self.listed[name][0] for name in texts) <= MOST_TEXT_BYTES:
                chosen += texts
        with explained(), ThreadPoolExecutor(THREADS) as pool:
            for name, (data, _) in zip(chosen, pool.map(self._object, chosen), strict=True):
                path = self.raw / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)


def _folders(url: str, listed: Mapping[str, tuple[int, str]]) -> tuple[dict[str, list[str]], tuple[str, ...]]:
    """Return the names of the objects in each folder, and the packs, which are passed over.

    Some tools write empty objects that stand for folders. These are left out, too.
    """
    if not listed:
        raise InputError(f"{url}: there is no object below this URL")
    if MARK in listed or (MANIFEST in listed and any(name.startswith(f"{SHARDS}/") for name in listed)):
        raise InputError(f"{url}: is a packed data set, not a raw folder")
    packs = tuple(name.removesuffix(MARK) for name in listed if name.endswith(f"/{MARK}"))
    folders: dict[str, list[str]] = {}
    for name in listed:
        if not name.startswith(packs or "/"):
            folder, _, file = name.rpartition("/")
            folders.setdefault(f"{folder}/" if folder else "", []).append(file)
    markers = {folder[:-1] for folder in folders}
    for folder, names in folders.items():
        names[:] = [name for name in names if folder + name not in markers]
    return {folder: names for folder, names in folders.items() if names}, tuple(pack[:-1] for pack in packs)
