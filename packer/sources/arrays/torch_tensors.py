"""`.pt` files as a source: tensors that `torch.save` wrote. No object is built, and no code of the file is run.

What the file pickled is read only to find where the numbers of each tensor lie. They are read like the numbers of
`.npy` files.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, ClassVar
from zipfile import ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from packer.sources.arrays.plain_array import PlainArray
from packer.sources.arrays.stack_form import Stack
from packer.sources.arrays.stacked import StackedRows
from packer.sources.arrays.torch_pickle import DTYPES, Tensor, tensors_in
from packer.sources.container import is_folder_of
from packer.sources.portable_functions import plain
from readers.contract.regular_files import open_raw

SUFFIXES = (".pt", ".pth")
ZIP, OLD = b"PK\x03\x04", b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
"""The first bytes of a file, and of one that was written before PyTorch 1.6."""
NUMBERS = {*DTYPES.values(), "uint16", "uint32", "uint64"} - {"bfloat16"}
"""The types that NumPy has."""
MOST_DIRECTORY, MOST_PICKLE = 16 << 20, 64 << 20
"""The most bytes of the table of the members of a file, and of the names, texts and facts about tensors in it."""
MOST_DEPTH = 8
"""The deepest dictionaries whose names are listed."""


class Texts:
    """A list of keys."""

    def __init__(self, texts: list[Any]) -> None:
        self._texts = texts
        self.dtype, self.shape = np.dtype(object), (len(texts),)

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        return np.array(self._texts[start:stop], object)


class _Members(ZipFile):
    """The members of a file that `torch.save` wrote, each stored without compression."""

    def __init__(self, file: BinaryIO) -> None:
        bounded = _Bounded(file.fileno(), closefd=False)
        with _whole():
            super().__init__(bounded)
        bounded.most = MOST_PICKLE
        names = self.namelist()
        for item in self.infolist():
            if item.compress_type != ZIP_STORED or item.flag_bits & 1:
                raise ValueError("was compressed after torch.save; save it again")
        pickles = [name for name in names if name.count("/") == 1 and name.endswith("/data.pkl")]
        if len(pickles) != 1 or len(set(names)) != len(names):
            raise ValueError("is damaged: its members are not as torch.save writes them")
        self.start = pickles[0].removesuffix("data.pkl")
        order = self.NameToInfo.get(f"{self.start}byteorder")
        if order is not None and self._bytes(order, 16) != b"little":
            raise ValueError("has big-endian numbers; save it again on a little-endian machine")

    def tensors(self) -> Any:
        return tensors_in(self._bytes(self.getinfo(f"{self.start}data.pkl"), MOST_PICKLE))

    def offset_of(self, tensor: Tensor, size: int) -> int:
        """Return where the numbers of a tensor begin, from the count of its bytes. Its member must have them all."""
        item = self.NameToInfo.get(f"{self.start}data/{tensor.member}")
        start = tensor.offset * np.dtype(tensor.dtype).itemsize
        if item is None or start + size > item.file_size:
            raise ValueError(f"has {item.file_size if item else 0} bytes, and its shape needs {start + size}")
        assert self.fp is not None
        self.fp.seek(item.header_offset)
        header = self.fp.read(30)
        if len(header) < 30 or not header.startswith(ZIP):
            raise ValueError("is damaged: a member is not where the file says")
        content = item.header_offset + 30 + sum(struct.unpack_from("<HH", header, 26))
        if content + item.file_size > int(self.fp.seek(0, io.SEEK_END)):
            raise ValueError("lies beyond the end of the file")
        return int(content + start)

    def _bytes(self, item: ZipInfo, most: int) -> bytes:
        if item.file_size > most:
            raise ValueError(f"has {item.file_size} bytes in {plain(item.filename)}; {most} are read at most")
        with _whole():
            return self.read(item)


@contextmanager
def _whole() -> Iterator[None]:
    """Turn what zipfile raises into the reason why a file cannot be read."""
    try:
        yield
    except _TooLargeError as error:
        raise ValueError(f"has {error} bytes of names of members; {MOST_DIRECTORY} are read at most") from error
    except (BadZipFile, RuntimeError, ValueError, OverflowError, EOFError, struct.error) as error:
        raise ValueError("is damaged, or was saved before PyTorch 1.6; load it and save it again") from error


class _TooLargeError(Exception): ...


class _Bounded(io.FileIO):
    """A file that reads no more than `most` bytes at once: zipfile reads the table of members as one."""

    most = MOST_DIRECTORY

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > self.most:
            raise _TooLargeError(size)
        return super().read(-1 if size is None else size) or b""


class TorchTensors(StackedRows):
    """Tensors in the dictionary or list that a file holds: `images`, `train/images`, `0`. Or the files of a folder."""

    kind: ClassVar[str] = "torch"

    @classmethod
    def fits(cls, path: Path, head: bytes) -> bool:
        is_file = head.startswith(OLD) or (head.startswith(ZIP) and b"/data.pkl" in head)
        return is_file or (not head and is_folder_of(path, SUFFIXES))

    def files(self) -> Sequence[Path]:
        return sorted({self._split(name)[0] for name in self.names if name is not None})

    def stack(self, name: str) -> Stack:
        path, parts = self._split(name)
        with open_raw(path) as file, _Members(file) as members:
            content = members.tensors()
            for part in parts:
                content = _inside(content, part)
            if isinstance(content, list) and content and all(type(item) in (str, int) for item in content):
                return Texts(content)
            if not isinstance(content, Tensor):
                raise ValueError("there is no such tensor")
            return _plain(path, members, content)

    def listing(self) -> Iterator[str]:
        """Yield the names in a file, or the files of a folder."""
        if self.path.is_dir():
            yield from (file.name for file in sorted(self.path.iterdir()) if file.suffix in SUFFIXES)
            return
        try:
            with open_raw(self.path) as file, _Members(file) as members:
                content = members.tensors()
        except (ValueError, OSError):
            return
        yield from _names(content, "", set(), MOST_DEPTH)

    def _split(self, name: str) -> tuple[Path, list[str]]:
        """Return the file and the names in it that a name stands for."""
        parts = [part for part in name.split("/") if part]
        if not self.path.is_dir():
            return self.path, parts
        paths = [self.path / f"{parts[0]}{suffix}" for suffix in ("", *SUFFIXES)] if parts else [self.path]
        return next((path for path in paths if path.is_file()), paths[0]), parts[1:]


def _inside(content: Any, part: str) -> Any:
    """Return what a dictionary or a list has under a name; None if it has nothing."""
    if isinstance(content, dict):
        return content.get(part)
    if isinstance(content, (list, tuple)) and part.isdecimal() and len(part) < 10 and int(part) < len(content):
        return content[int(part)]
    return None


def _names(content: Any, before: str, seen: set[int], depth: int) -> Iterator[str]:
    """Yield the names of what a dictionary or tuple holds. One that is in several others, or in itself, comes once."""
    if depth == 0 or id(content) in seen:
        return
    seen.add(id(content))
    named: Iterable[tuple[Any, Any]] = ()
    if isinstance(content, dict):
        named = content.items()
    elif isinstance(content, (list, tuple)):
        named = enumerate(content)
    for name, item in named:
        path = f"{before}{plain(str(name))}"
        if isinstance(item, Tensor):
            yield f"{path} {item.shape} {item.dtype}"
        elif isinstance(item, (dict, tuple)):
            yield from _names(item, f"{path}/", seen, depth - 1)
        else:
            yield path


def _plain(path: Path, members: _Members, tensor: Tensor) -> PlainArray:
    if not tensor.is_contiguous:
        raise ValueError("is a view whose rows do not lie one after the other; save tensor.contiguous()")
    if tensor.dtype not in NUMBERS:
        raise ValueError(f"holds {plain(tensor.dtype)}, which NumPy lacks; expected plain numbers")
    dtype = np.dtype(tensor.dtype)
    return PlainArray(path, members.offset_of(tensor, dtype.itemsize * prod(tensor.shape)), dtype, tensor.shape)
