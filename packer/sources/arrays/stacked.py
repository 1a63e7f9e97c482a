"""`StackedRows`: rows of two arrays. One holds all images, the other all labels. Several sources use it."""

from __future__ import annotations

import json
import sys
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from packer.decoding.arrays import class_numbers
from packer.decoding.raw_file import naming
from packer.errors import BadPair, InputError, LostFile
from packer.recipe.row_ref import RowRef
from packer.recipe.source import FieldData, Heads, Loaded, Source
from packer.sources.arrays.plain_array import Opaque, PlainArray
from packer.sources.arrays.stack_form import Stack, StackForm, shape_text
from packer.sources.container import Names
from packer.sources.file_states import OpenedFiles
from packer.sources.given_fields import identity
from packer.sources.library_process import ask
from readers.contract.manifest import ALL

Described: TypeAlias = "PlainArray | Opaque"
MOST_LISTED = 20
CHUNK = 1 << 14
"""Keys that are objects at the same time."""


class StackedRows(Source):
    """The arrays that --image and --label name in a container. The keys are those that --key names, or row numbers.

    `describe` finds out once what the arrays are. Workers open only those that are not plain numbers.
    """

    tools: ClassVar[tuple[str, ...]] = ("stacked arrays 1",)
    gives_arrays: ClassVar[bool] = True
    may_crash: ClassVar[bool] = False
    """True if a damaged file may crash the library. Then only workers open it, and a process of its own."""

    def __init__(self, path: Path, names: Names, states: Sequence[Sequence[int]] | None = None) -> None:
        self.path, self.names = path.absolute(), names
        self._files = OpenedFiles(self.files(), states)
        self._planned_chunks: list[int] | None = None
        self._open: dict[int, Stack] = {}

    @abstractmethod
    def files(self) -> Sequence[Path]:
        """Return the files that must not change while rows are read."""

    def chunks(self) -> Sequence[int]:
        """Return the number of files of each array, if a missing file is fill. Another machine must have as many."""
        return ()

    @abstractmethod
    def stack(self, name: str) -> Stack:
        """Open an array. Raise BadPair, ValueError or OSError if it cannot be used; the reason does not name it."""

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
        source._planned_chunks = facts.get("chunks")
        if facts["arrays"] is not None:
            source.__dict__["_arrays"] = list(map(_array_of, facts["arrays"]))
        return source

    def to_text(self) -> str:
        """Return what a worker needs. Of plain numbers it needs their positions, and no library."""
        arrays = self.__dict__.get("_arrays")
        facts: dict[str, Any] = {"path": str(self.path), "names": self.names, "states": self._files.states}
        facts |= {"chunks": self._chunks_now} if self._chunks_now else {}
        return json.dumps({"kind": self.kind, **facts, "arrays": arrays and [array.to_json() for array in arrays]})

    def rows(self) -> Iterator[RowRef]:
        image, label = self.names.image, self.names.label
        for number, key in zip(range(self._form.rows), self._keys(), strict=True):
            yield RowRef(ALL, key, (f"{image}[{number}]", f"{label}[{number}]"))

    def heads(self, refs: Sequence[RowRef]) -> Iterator[Heads]:
        return (self._form.heads for _ in refs)

    def states(self, refs: Sequence[RowRef]) -> NDArray[np.int64]:
        """Return the states of the files. The place of a row is in its parts."""
        return self._files.of_rows(len(refs))

    def identities(self, refs: Sequence[RowRef]) -> Iterator[tuple[str, ...] | None]:
        """Yield the digests of rows of plain numbers. What decompresses may crash, so it runs only in workers."""
        is_plain = all(isinstance(array, PlainArray) for array in self._arrays[:2])
        for ref in refs:
            loaded = self.load(ref) if is_plain else None
            yield None if loaded is None or loaded.bad else loaded.identities

    def load(self, ref: RowRef) -> Loaded:
        data: list[FieldData] = []
        try:
            self._files.check()
            for field, part in enumerate(ref.parts):
                with naming(part):
                    data.append(self._pixels(field, part) if part else b"")
            self._files.check()
        except BadPair as bad:
            return Loaded.refused(bad, (), ("", ""))
        return Loaded(
            tuple(data), tuple(identity(content) if part else "" for content, part in zip(data, ref.parts, strict=True))
        )

    def describe(self) -> Iterator[Any]:
        """Yield the option of each array before it is opened; then all arrays, and the problems with them.

        If the list has problems, also yield the names of the first arrays of the container.
        """
        problems, arrays = list[str](), list[Any]()
        for number, (option, name) in enumerate(self.names._asdict().items()):
            yield f"--{option} {name}"
            if name is None:
                if option != "key":
                    problems.append(f"--{option} is missing: name the array")
                continue
            try:
                with naming(f"--{option} {name}"):
                    stack = self._opens(number)
            except BadPair as bad:
                problems.append(str(bad))
            else:
                facts = stack if isinstance(stack, PlainArray) else Opaque(stack.dtype, stack.shape)
                arrays.append(facts.to_json())
        yield arrays, problems
        if problems:
            listed = list(islice(self.listing(), MOST_LISTED + 1))
            if len(listed) > MOST_LISTED:
                listed[MOST_LISTED] = "and others"
            yield listed

    def read_keys(self) -> Iterator[list[str]]:
        """Yield all keys, many at a time."""
        for start in range(0, self._form.rows, CHUNK):
            keys = self._opened(2).rows(start, min(start + CHUNK, self._form.rows))
            if keys.dtype.kind == "U" and (keys.view(f"{keys.dtype.byteorder}u4") > sys.maxunicode).any():
                raise BadPair("has texts with numbers that stand for no character")
            yield [
                key.decode(errors="surrogateescape") if isinstance(key, bytes) else str(key) for key in keys.tolist()
            ]

    def _keys(self) -> Iterator[str]:
        if self.names.key is None:
            yield from map("{:08}".format, range(self._form.rows))
            return
        is_outside = self.may_crash and not isinstance(self._arrays[2], PlainArray)
        try:
            for keys in ask(self, "read_keys") if is_outside else self.read_keys():
                yield from keys
        except (BadPair, OSError) as error:
            raise InputError(
                f"{self.path}: has keys that cannot be read", [f"--key {self.names.key}: {error}"]
            ) from error

    def _pixels(self, field: int, part: str) -> NDArray[Any]:
        number = int(part[part.rindex("[") + 1 : -1])
        pixels = self._form.upright(field, self._opened(field).rows(number, number + 1)[0])
        return class_numbers(pixels) if field else pixels

    def _opened(self, field: int) -> Stack:
        """Return an array whose rows can be read. A worker opens it at a row."""
        array = self._arrays[field]
        if isinstance(array, PlainArray):
            return array
        stack = self._opens(field)
        if (stack.dtype, stack.shape) != array:
            raise LostFile(f"was {shape_text(array)} when the build was planned; build again")
        if self._planned_chunks not in (None, self._chunks_now):
            raise LostFile("has fewer or more files with chunks than when the build was planned; build again")
        return stack

    @cached_property
    def _chunks_now(self) -> list[int]:
        return list(self.chunks())

    def _opens(self, field: int) -> Stack:
        """Open an array once. Raise BadPair or OSError if it cannot be used."""
        if field not in self._open:
            try:
                stack = self.stack(str(self.names[field]))
            except ValueError as error:
                raise BadPair(str(error)) from error
            if not stack.shape:
                raise BadPair("is a single number; expected an array with a row for each image")
            self._open[field] = stack
        return self._open[field]

    @cached_property
    def _arrays(self) -> list[Described]:
        """The image, the label and perhaps the keys: what they are, without their rows."""
        option, described = "", tuple[Any, ...]()
        listing: Sequence[str] = ()
        try:
            for answer in ask(self, "describe") if self.may_crash else self.describe():
                if isinstance(answer, str):
                    option = answer
                elif not described:
                    described = answer
                else:
                    listing = answer
        except BadPair as bad:
            described = described or ((), [f"{option}: {bad}"])
        arrays, problems = described
        if problems:
            raise InputError(f"{self.path}: holds {'; '.join(listing) or 'no arrays that can be listed'}", problems)
        return list(map(_array_of, arrays))

    @cached_property
    def _form(self) -> StackForm:
        problems: list[str] = []
        form = StackForm.of(self.names, self._arrays, problems)
        if form is None:
            raise InputError(f"{self.path}: these arrays are not the images and labels of the same rows", problems)
        return form


def _array_of(facts: Sequence[Any]) -> Described:
    return PlainArray.from_json(facts) if len(facts) > 2 else Opaque.from_json(facts)
