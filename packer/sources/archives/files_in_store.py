"""`FilesInStore`: the files of an archive below a URL. Every answer must come from the version that was listed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property, partial
from itertools import islice
from typing import Any, BinaryIO

from packer.errors import LostFile
from packer.recipe.row_ref import RowRef
from packer.recipe.source import UNKNOWN
from packer.sources.archives.archive_files import CHANGED, ArchiveFiles, Span
from packer.sources.archives.columns_file import ColumnsFile
from packer.sources.archives.parquet_footer import ranges_of
from packer.sources.archives.ranges_ahead import RangesAhead
from packer.sources.archives.streamed_file import StreamedFile
from packer.sources.file_states import FileState, as_three_numbers
from packer.sources.files.ranged_file import BLOCK, RangedFile
from packer.sources.store_answers import explained
from readers.stores.open_store import open_store
from readers.stores.store import Store

THREADS = 16
"""Requests of a process at the same time."""
FILES = 8
"""Files that are listed at the same time. Each has 16 MiB in memory at most: see `StreamedFile`."""
FIRST_ROWS = 1 << 14
"""Rows that are listed of a file before the files in front of it are done."""


class FilesInStore(ArchiveFiles):
    """The files of an archive below a URL. Ranges of them are read, and nothing is copied to this machine."""

    def __init__(self, url: str, objects: Mapping[str, tuple[int, str]]) -> None:
        super().__init__({file: _state(size, tag) for file, (size, tag) in objects.items()})
        self.url, self.objects = url, objects
        """The size and the tag of each file when it was listed."""

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> FilesInStore:
        return cls(facts["url"], {file: (size, tag) for file, (size, tag) in facts["objects"].items()})

    def to_json(self) -> dict[str, Any]:
        return {"url": self.url, "objects": self.objects}

    @property
    def folder(self) -> str:
        return self.url

    @cached_property
    def store(self) -> Store:
        return open_store(self.url)

    @cached_property
    def threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(THREADS)

    @cached_property
    def ahead(self) -> RangesAhead:
        return RangesAhead(self._now, self.threads)

    def open(self, file: str) -> BinaryIO:
        return StreamedFile(self._size(file), partial(self._range, file), self.threads).buffered()

    def part(self, span: Span) -> BinaryIO:
        def read(start: int, stop: int) -> bytes:
            return self.read(Span(span.file, span.start + start, stop - start))

        return RangedFile(span.size, read).buffered()

    def head_of(self, span: Span) -> Span:
        return span._replace(size=min(span.size, BLOCK))

    def read(self, span: Span) -> bytes:
        data = self.ahead.take(span)
        return self._now(span) if data is None else data

    def columns(self, file: str) -> Any:
        return ColumnsFile(self._size(file), partial(self._range, file), self.threads)

    def follow(self, opened: Any, columns: Sequence[str]) -> None:
        if not opened.is_followed:
            opened.follow(ranges_of(opened.footer(), columns))

    def rest(self, opened: Any) -> None:
        opened.rest()

    def companion(self, file: str, most: int) -> bytes | None:
        try:
            with explained():
                return self.store.read(file, 0, most)[0]
        except LostFile:
            return None

    def state(self, file: str) -> FileState:
        """Return what was listed: a row that is read is a row of this version."""
        return self.states[file] if self.objects[file][1] else (UNKNOWN, -1, -1)

    def check(self, file: str) -> None:
        """Do nothing: every answer was checked."""

    def expect(self, spans: Iterable[Span]) -> None:
        self.ahead.expect(spans)

    def forget(self, spans: Iterable[Span]) -> None:
        self.ahead.forget(spans)

    def list_all(self, list_file: Callable[[str], Iterator[RowRef]]) -> Iterator[RowRef]:
        """List several files at the same time: after a jump each waits for an answer."""
        with ThreadPoolExecutor(FILES) as pool:
            started: deque[Future[tuple[list[RowRef], Iterator[RowRef]]]] = deque()
            for file in self.states:
                started.append(pool.submit(_begun, list_file(file)))
                if len(started) == FILES:
                    yield from _finished(started.popleft())
            while started:
                yield from _finished(started.popleft())

    def _size(self, file: str) -> int:
        return self.objects[file][0]

    def _now(self, span: Span) -> bytes:
        return self._range(span.file, span.start, span.start + span.size)

    def _range(self, file: str, start: int, stop: int) -> bytes:
        """Return bytes of the version that was listed."""
        size, planned = self.objects[file]
        if start >= size:
            return b""
        with explained():
            data, version = self.store.read(file, start, min(stop, size))
        if planned and version.tag and plain_tag(version.tag) != planned:
            raise LostFile(CHANGED)
        return data


def plain_tag(tag: str) -> str:
    """Return a tag as listings and answers agree on it: some stores put it between quotes in one of the two."""
    return tag.removeprefix("W/").strip('"')


def _state(size: int, tag: str) -> FileState:
    return size, *as_three_numbers(f"{size} {tag}")[1:]


def _begun(rows: Iterator[RowRef]) -> tuple[list[RowRef], Iterator[RowRef]]:
    return list(islice(rows, FIRST_ROWS)), rows


def _finished(begun: Future[tuple[list[RowRef], Iterator[RowRef]]]) -> Iterator[RowRef]:
    first, rest = begun.result()
    yield from first
    yield from rest
