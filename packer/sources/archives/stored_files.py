"""`StoredFiles`: the files that a URL stands for: one object, the objects below it, or the objects of a pattern."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import takewhile

from packer.errors import InputError, Problem, UsageError
from packer.pairs.paths import is_picture
from packer.sources.archives.file_patterns import BRACES, expanded
from packer.sources.archives.files_in_store import FilesInStore, plain_tag
from packer.sources.store_answers import explained
from readers.stores.open_store import open_store

_WILD = re.compile(r"[*\[]")


@dataclass(frozen=True)
class StoredFiles:
    """Files below a URL, with their sizes and tags."""

    url: str
    listed: Mapping[str, tuple[int, str]]
    is_folder: bool
    """True if the URL is a folder; then `listed` has all that is below it."""

    @classmethod
    def find(cls, url: str) -> StoredFiles:
        """List what a URL stands for. Raise one error that names all missing files."""
        if "?" in url or "#" in url:
            open_store(url)  # refuses options, which may be a key
            raise UsageError("--from: a URL has no ? and no #; patterns have braces or *")
        if BRACES.search(url) or _WILD.search(url):
            return cls._matching(url)
        below = _listed(url)
        if below:
            return cls(url, below, is_folder=True)
        return cls._named(url, [url])

    @classmethod
    def _matching(cls, url: str) -> StoredFiles:
        parts = url.split("/")
        plain = list(takewhile(lambda part: not (BRACES.search(part) or _WILD.search(part)), parts))
        folder = "/".join(plain)
        open_store(folder)  # refuses keys before a message may show them
        patterns = expanded(url)
        if not any(map(_WILD.search, patterns)):
            return cls._named(url, patterns)
        listed = _listed(folder)
        shown = sorted(filter(_is_shown, listed))
        below = [text.removeprefix(f"{folder}/") for text in patterns]
        names = [name for pattern in below for name in shown if _fits(name, pattern)]
        return cls._below(url, folder, names, listed)

    @classmethod
    def _named(cls, url: str, urls: Iterable[str]) -> StoredFiles:
        every = list(dict.fromkeys(urls))
        scheme = every[0].partition("://")[0]
        paths = [text.removeprefix(f"{scheme}://") for text in every]
        folder = f"{scheme}://{posixpath.commonpath(map(posixpath.dirname, paths))}"
        names = [text.removeprefix(f"{folder}/") for text in every]
        return cls._below(url, folder, names, _listed(folder, names))

    @classmethod
    def _below(cls, url: str, folder: str, names: Iterable[str], listed: Mapping[str, tuple[int, str]]) -> StoredFiles:
        chosen = list(dict.fromkeys(names))
        lacking = [f"{folder}/{name}" for name in chosen if name not in listed]
        missing = [Problem("there is no such object", "", (name,)) for name in lacking]
        if missing or not chosen:
            raise InputError(f"{url}: {len(missing) or 'all'} of its files are missing", missing)
        top = posixpath.commonpath(map(posixpath.dirname, chosen))
        start = f"{top}/" if top else ""
        files = {name.removeprefix(start): listed[name] for name in chosen}
        return cls(f"{folder}/{top}".rstrip("/"), files, is_folder=False)

    def holds_only(self, suffix: re.Pattern[str]) -> bool:
        """Return whether the folder has such files and no pictures, as `named_files.holds_only` does."""
        shown = [name for name in self.listed if _is_shown(name)]
        return any(map(suffix.search, shown)) and not any(is_picture(name) or name.count("/") > 1 for name in shown)

    def with_suffix(self, suffix: re.Pattern[str]) -> FilesInStore:
        """Return the files of an archive."""
        if not self.is_folder:
            return FilesInStore(self.url, self.listed)
        names = sorted(name for name in self.listed if suffix.search(name) and _is_shown(name) and name.count("/") < 2)
        return FilesInStore(self.url, {name: self.listed[name] for name in names})

    def head(self, size: int) -> bytes:
        """Return the first bytes of the first file; none of a folder."""
        if self.is_folder:
            return b""
        with explained():
            return open_store(self.url).read(next(iter(self.listed)), 0, size)[0]


def _listed(url: str, names: Iterable[str] | None = None) -> dict[str, tuple[int, str]]:
    """Return the objects below a URL; with names these alone, and the listing ends as soon as it had them."""
    chosen = None if names is None else set(names)
    objects: dict[str, tuple[int, str]] = {}
    with explained():
        for entry in open_store(url).list(""):
            if chosen is None or entry.name in chosen:
                objects[entry.name] = entry.size, plain_tag(entry.tag)
                if chosen is not None and len(objects) == len(chosen):
                    break
    return objects


def _is_shown(name: str) -> bool:
    return not any(part.startswith(".") for part in name.split("/"))


def _fits(name: str, pattern: str) -> bool:
    """Return whether a name fits a pattern, in which * stays in one folder."""
    parts, patterns = name.split("/"), pattern.split("/")
    return len(parts) == len(patterns) and all(map(fnmatchcase, parts, patterns))
