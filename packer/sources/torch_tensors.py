"""`.pt` files as a source: tensors that `torch.save` wrote. No object is built, and no code of the file is run.

`torch.load(weights_only=True)` only finds where the numbers of each tensor lie in the file. They are read as those of
`.npy` files are, so workers do not need PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from packer.sources.container import is_folder_of
from packer.sources.functions import words_of
from packer.sources.plain_array import PlainArray
from packer.sources.stack_form import Stack
from packer.sources.stacked import StackedRows

SUFFIXES = (".pt", ".pth")
ZIP, OLD = b"PK\x03\x04", b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
"""The first bytes of a file, and of one that was written before PyTorch 1.6."""
SAFE = (2, 10)
"""Before this version a file could corrupt memory in spite of weights_only (CVE-2026-24747)."""


class Texts:
    """A list of keys."""

    def __init__(self, texts: Sequence[Any]) -> None:
        self._texts = np.array(texts)
        self.dtype, self.shape = self._texts.dtype, self._texts.shape

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        return self._texts[start:stop]


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
        found = _load(path)
        for part in parts:
            if isinstance(found, (list, tuple)):
                found = dict(enumerate(found)).get(int(part)) if part.isdecimal() else None
            else:
                found = found.get(part) if isinstance(found, dict) else None
        if isinstance(found, list) and found and all(isinstance(item, (str, int)) for item in found):
            return Texts(found)
        if not hasattr(found, "untyped_storage"):
            raise ValueError("there is no such tensor")
        return _plain(path, found)

    def listing(self) -> Iterator[str]:
        """Yield the names in a file, or the files of a folder."""
        if self.path.is_dir():
            return (file.name for file in sorted(self.path.iterdir()) if file.suffix in SUFFIXES)
        try:
            return _names(_load(self.path), "")
        except (ValueError, OSError):
            return iter(())

    def _split(self, name: str) -> tuple[Path, list[str]]:
        """Return the file and the names in it that a name stands for."""
        parts = [part for part in name.split("/") if part]
        if not self.path.is_dir():
            return self.path, parts
        paths = [self.path / f"{parts[0]}{suffix}" for suffix in ("", *SUFFIXES)] if parts else [self.path]
        return next((path for path in paths if path.is_file()), paths[0]), parts[1:]


def _names(found: Any, before: str) -> Iterator[str]:
    items = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, (list, tuple)) else ()
    for name, item in items:
        if hasattr(item, "untyped_storage"):
            yield f"{before}{name} {tuple(item.shape)} {_type(item)}"
        elif isinstance(item, (dict, tuple)):
            yield from _names(item, f"{before}{name}/")
        else:
            yield f"{before}{name}"


def _load(path: Path) -> Any:
    """Return what a file holds, with tensors that have no numbers yet."""
    import torch

    if tuple(map(int, torch.__version__.split(".")[:2])) < SAFE:
        raise ValueError(f"needs PyTorch {'.'.join(map(str, SAFE))}, which reads foreign files safely")
    try:
        with ZipFile(path) as file:
            if any(item.compress_type != ZIP_STORED for item in file.infolist()):
                raise ValueError("was compressed after torch.save; save it again")
            for (
                item
            ) in file.infolist():  # PyTorch crashes where it should swap the bytes of numbers that it does not read
                if item.filename.endswith("/byteorder") and file.open(item).read(16) != b"little":
                    raise ValueError("has big-endian numbers; save it again on a little-endian machine")
        return torch.load(path, weights_only=True, mmap=True, map_location="meta")
    except BadZipFile as error:
        raise ValueError("is damaged, or was saved before PyTorch 1.6; load it and save it again") from error
    except (ValueError, OSError):
        raise
    except Exception as error:
        raise ValueError(f"holds objects besides tensors, which are never built ({words_of(error)})") from error


def _plain(path: Path, tensor: Any) -> PlainArray:
    is_plain = str(tensor.layout) == "torch.strided" and tensor.is_contiguous()
    offset = getattr(tensor.untyped_storage(), "_checkpoint_offset", None) if is_plain else None
    if offset is None:
        raise ValueError("is a view whose rows do not lie one after the other; save tensor.contiguous()")
    try:
        dtype = np.dtype(_type(tensor))
    except TypeError as error:
        raise ValueError(f"holds {_type(tensor)}, which NumPy lacks; expected plain numbers") from error
    start = offset + tensor.storage_offset() * dtype.itemsize
    if start + tensor.nbytes > path.stat().st_size:
        raise ValueError("lies beyond the end of the file")
    return PlainArray(path, start, dtype, tuple(tensor.shape))


def _type(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")
