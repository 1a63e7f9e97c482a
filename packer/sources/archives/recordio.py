"""RecordIO files of MXNet, in pairs: one has images, the other has masks with the same ids."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import PurePosixPath
from typing import ClassVar

from packer.errors import BadPair, InputError, Problem, UsageError, first_of
from packer.recipe.row_ref import RowRef
from packer.sources.archives.archive import ArchiveSource
from packer.sources.archives.archive_files import ArchiveFiles, Span
from packer.sources.archives.file_pairs import IMAGE, LABEL, Role, roles_of
from packer.sources.archives.position import Position
from packer.sources.archives.recordio_records import MAGIC, keys_in, picture, records
from packer.sources.container import Names


class RecordIoSource(ArchiveSource):
    """Files such as train_images.rec and train_masks.rec. If there is a train_images.idx, it has the keys."""

    kind: ClassVar[str] = "recordio"
    suffix: ClassVar[re.Pattern[str]] = re.compile(r"\.rec$")

    @staticmethod
    def knows(head: bytes) -> bool:
        return head.startswith(MAGIC)

    @classmethod
    def of(cls, files: ArchiveFiles, names: Names, path: str) -> RecordIoSource:
        """Open the files. Refuse files if no two belong together."""
        if bool(names.image) != bool(names.label):
            raise UsageError("--image and --label go together: give the names of both files")
        source = super().of(files, names, path)
        if len({role.name for role in source._roles.values()}) == len(source._roles):
            raise InputError(
                f"{path}: needs two files, one of images and one of masks with the same ids, such as train_images.rec "
                "and train_masks.rec; name them: --image, --label. Labels that are numbers are not masks; it has "
                f"{', '.join(first_of(list(files.states), 20))}"
            )
        return source

    def samples(self, file: str) -> Iterator[RowRef]:
        """Yield the rows of a file of images and a file of its labels; or of labels without images."""
        role = self._roles.get(file)
        images, labels = (self._files.get(Role(field, role.name)) if role else None for field in (IMAGE, LABEL))
        if role is None or (images and file == labels):
            return
        prefix = f"{role.name}/" if role.name not in ("", self.split_of(file)) else ""
        masks = dict[str, Position]()
        try:
            masks.update(self._keyed(labels) if labels else ())
        except BadPair as bad:
            self.refuse(file, Problem(str(bad), "", (str(labels),)))
            return
        for key, position in self._keyed(images) if images else ():
            yield from self.row(file, prefix + key, position, masks.pop(key, None))
        for key, position in masks.items():
            yield from self.row(str(labels), prefix + key, None, position)

    def read(self, position: Position) -> bytes:
        record = self.files.read(self.span(position))
        if len(record) != position.size:
            raise BadPair(f"ends within a record at byte {position.start}; it was cut off")
        return picture(record, position.start)

    def span(self, position: Position) -> Span:
        return Span(*position[:3])

    def split_of(self, file: str) -> str:
        """Return the split that {split} in --image shows; otherwise the split of a word in the path."""
        return (self.names.image and self._roles[file].name) or super().split_of(file)

    @cached_property
    def _roles(self) -> dict[str, Role]:
        return roles_of(self.files.states, self.names)

    @cached_property
    def _files(self) -> dict[Role, str]:
        return {role: file for file, role in self._roles.items()}

    def _keyed(self, file: str) -> Iterator[tuple[str, Position]]:
        """Yield the key and the position of each record: its key in the index next to the file, or its id."""
        size_of_file, seen = self.files.states[file][0], set[str]()
        index = PurePosixPath(file).with_suffix(".idx")
        text = self.files.companion(str(index), size_of_file)  # a line is shorter than its record
        keys = None if text is None else keys_in(text)
        with self.open(file) as opened:
            for start, size, number in records(opened, size_of_file):
                key = f"{number:08}" if keys is None else keys.get(start)
                if key is None:
                    raise BadPair(f"has a record at byte {start} that is not in its index {index.name}")
                if key in seen:
                    raise BadPair(f"has two records {key}; give each an id, or write an index {index.name}")
                seen.add(key)
                yield key, Position(file, start, size, key)
        self.files.check(file)
        if keys is not None and len(keys) != len(seen):
            raise BadPair(f"has {len(seen)} records, and {len(keys)} in its index {index.name}")
