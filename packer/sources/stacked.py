"""`StackedRows`: rows of two arrays, of which one holds all images, the other all labels. Several sources use it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from packer.decoding.arrays import class_numbers
from packer.decoding.raw_file import naming
from packer.errors import BadPair, InputError
from packer.recipe.row_ref import RowRef
from packer.recipe.source import Data, Heads, Listing, Loaded, Source, Wanted
from packer.sources.container import Names
from packer.sources.file_states import OpenedFiles
from packer.sources.given_fields import identity
from packer.sources.plain_array import PlainArray
from packer.sources.stack_form import Stack, StackForm
from readers.contract.manifest import ALL

CHUNK = 1 << 14
"""Keys that are objects at the same time."""


class StackedRows(ABC):
    """The arrays that --image and --label name in a container. The keys are those that --key names, or row numbers."""

    kind: ClassVar[str]
    templates: ClassVar[tuple[str, ...]] = ("", "")
    tools: ClassVar[tuple[str, ...]] = ("stacked arrays 1",)

    def __init__(self, path: Path, names: Names, states: Sequence[Sequence[int]] | None = None) -> None:
        self.path, self.names = path.absolute(), names
        self._files = OpenedFiles(self.files(), states)

    @abstractmethod
    def files(self) -> Sequence[Path]:
        """Return the files that must not change while rows are read."""

    @abstractmethod
    def stack(self, name: str) -> Stack:
        """Open an array. Raise ValueError or OSError if it cannot be used; the reason does not name it."""

    @abstractmethod
    def listing(self) -> Iterable[str]:
        """Return the names of all arrays, with their shapes and types."""

    @classmethod
    def at(cls, path: Path, names: Names) -> Source:
        """Open a container, and check its arrays against each other."""
        source = cls(path, names)
        assert source._form
        return source

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> Source:
        source = cls(Path(facts["path"]), Names(*facts["names"]), facts["states"])
        if facts["plain"]:
            source.__dict__["_stacks"] = list(map(PlainArray.from_json, facts["plain"]))
        return source

    def to_text(self) -> str:
        """Return what a worker needs. Of plain numbers it needs their positions, and no library."""
        plain = [stack.to_json() for stack in self._stacks[:2] if isinstance(stack, PlainArray)]
        facts = {"path": str(self.path), "names": self.names, "states": self._files.states}
        return json.dumps({"kind": self.kind, **facts, "plain": plain if len(plain) == 2 else None})

    def rows(self) -> Iterator[RowRef]:
        image, label, count = self.names.image, self.names.label, self._form.rows
        for start in range(0, count, CHUNK):
            numbers = range(start, min(start + CHUNK, count))
            for number, key in zip(numbers, self._keys(numbers), strict=True):
                yield RowRef(ALL, key, (f"{image}[{number}]", f"{label}[{number}]"))

    def list_rows(self, wanted: Wanted) -> Listing:
        return Listing(self.rows(), type(self).__name__)

    def heads(self, refs: Sequence[RowRef]) -> Iterator[Heads]:
        return (self._form.heads for _ in refs)

    def states(self, refs: Sequence[RowRef]) -> NDArray[np.int64]:
        """Return the states of the files. The place of a row is in its parts."""
        return self._files.of_rows(len(refs))

    def identities(self, refs: Sequence[RowRef]) -> Iterator[tuple[str, ...] | None]:
        """Yield the digests of rows of plain numbers. What decompresses may crash, so it runs only in workers."""
        is_plain = all(isinstance(stack, PlainArray) for stack in self._stacks[:2])
        for ref in refs:
            loaded = self.load(ref) if is_plain else None
            yield None if loaded is None or loaded.bad else loaded.identities

    def load(self, ref: RowRef) -> Loaded:
        data: list[Data] = []
        try:
            self._files.check()
            for field, part in enumerate(ref.parts):
                with naming(part):
                    data.append(self._pixels(field, part) if part else b"")
            self._files.check()
        except BadPair as bad:
            return Loaded((), ("", ""), str(bad))
        return Loaded(
            tuple(data), tuple(identity(each) if part else "" for each, part in zip(data, ref.parts, strict=True))
        )

    def _pixels(self, field: int, part: str) -> NDArray[Any]:
        number = int(part[part.rindex("[") + 1 : -1])
        pixels = self._form.upright(field, self._stacks[field].rows(number, number + 1)[0])
        return class_numbers(pixels) if field else pixels

    def _keys(self, numbers: range) -> Iterable[str]:
        if self.names.key is None:
            return map("{:08}".format, numbers)
        keys = self._stacks[-1].rows(numbers.start, numbers.stop).tolist()
        return (key.decode(errors="surrogateescape") if isinstance(key, bytes) else str(key) for key in keys)

    @cached_property
    def _stacks(self) -> list[Stack]:
        """The arrays of the image, the label and perhaps the keys. A worker opens them at a row."""
        problems, stacks = [], []
        for option, name in self.names._asdict().items():
            try:
                if name is not None:
                    stacks.append(_of_rows(self.stack(name)))
                elif option != "key":
                    problems.append(f"--{option} is missing: name the array")
            except (ValueError, OSError) as error:
                problems.append(f"--{option} {name}: {error}")
        if problems:
            raise InputError(f"{self.path}: holds {'; '.join(self.listing()) or 'no arrays'}", problems)
        return stacks

    @cached_property
    def _form(self) -> StackForm:
        problems: list[str] = []
        form = StackForm.of(self.names, self._stacks, problems)
        if form is None:
            raise InputError(f"{self.path}: these arrays are not the images and labels of the same rows", problems)
        return form


def _of_rows(stack: Stack) -> Stack:
    if not stack.shape:
        raise ValueError("is a single number; expected an array with a row for each image")
    return stack
