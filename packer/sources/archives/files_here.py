"""`FilesHere`: the files of an archive in a folder of this machine."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

from packer.errors import LostFile
from packer.recipe.source import UNKNOWN
from packer.sources.archives.archive_files import CHANGED, ArchiveFiles, Span
from packer.sources.file_states import FileState, is_young, state_here, state_of
from packer.sources.files.seekable_file import SeekableFile
from readers.contract.regular_files import open_raw


class FilesHere(ArchiveFiles):
    """The files of an archive below a folder of this machine."""

    def __init__(self, root: Path, states: Mapping[str, FileState]) -> None:
        super().__init__(states)
        self.root = root

    @classmethod
    def now(cls, root: Path, files: Iterable[str]) -> FilesHere:
        """Return files in the states that they have now."""
        return cls(root, {file: state_of(f"{root}/{file}") for file in files})

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> FilesHere:
        root = Path(facts["root"])
        return cls(root, {file: state_here(f"{root}/{file}", state) for file, state in facts["files"].items()})

    def to_json(self) -> dict[str, Any]:
        return {"root": str(self.root), "files": self.states}

    @property
    def folder(self) -> str:
        return str(self.root)

    def open(self, file: str) -> BinaryIO:
        opened = open_raw(self.root / file)
        try:
            self._check_opened(file, opened)
        except BaseException:
            opened.close()
            raise
        return opened

    def part(self, span: Span) -> BinaryIO:
        return cast("BinaryIO", io.BufferedReader(_Part(self.open(span.file), span)))

    def read(self, span: Span) -> bytes:
        with self.open(span.file) as opened:
            opened.seek(span.start)
            data = opened.read(span.size)
            self._check_opened(span.file, opened)  # a place may hold another picture now
        return data

    def columns(self, file: str) -> Any:
        import pyarrow  # most archives are read without it

        with self.open(file):  # so it is a regular file
            return pyarrow.OSFile(str(self.root / file))

    def companion(self, file: str, most: int) -> bytes | None:
        path = self.root / file
        if not path.is_file():
            return None
        with open_raw(path) as opened:
            return opened.read(most)

    def state(self, file: str) -> FileState:
        now = state_of(f"{self.root}/{file}")
        is_same = now == tuple(self.states.get(file, now))
        return now if is_same and not is_young(now) else (UNKNOWN, -1, -1)

    def check(self, file: str) -> None:
        if state_of(f"{self.root}/{file}") != tuple(self.states[file]):
            raise LostFile(CHANGED)

    def _check_opened(self, file: str, opened: BinaryIO) -> None:
        now = os.fstat(opened.fileno())
        if (now.st_size, now.st_mtime_ns, now.st_ctime_ns) != tuple(self.states[file]):
            raise LostFile(CHANGED)


class _Part(SeekableFile):
    """A range of bytes of a file, as a file."""

    def __init__(self, file: BinaryIO, span: Span) -> None:
        super().__init__(span.size)
        self._file, self._start = file, span.start

    def close(self) -> None:
        self._file.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        count = min(len(buffer), max(0, self._size - self._at))
        data = os.pread(self._file.fileno(), count, self._start + self._at)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
