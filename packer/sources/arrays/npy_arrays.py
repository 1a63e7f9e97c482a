"""`.npy` files as a source: a folder of arrays, or one of them. Rows are read by their offsets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from packer.decoding.npy import SIGNATURE
from packer.sources.arrays.plain_array import PlainArray, npy_array
from packer.sources.arrays.stack_form import shape_text
from packer.sources.arrays.stacked import StackedRows
from packer.sources.container import is_folder_of

SUFFIX = ".npy"


class NpyArrays(StackedRows):
    """The files that --image, --label and --key name, in a folder or next to a file."""

    kind: ClassVar[str] = "npy"

    @classmethod
    def fits(cls, path: Path, head: bytes) -> bool:
        return head.startswith(SIGNATURE) or (not head and is_folder_of(path, (SUFFIX,)))

    def files(self) -> Sequence[Path]:
        return [self._file(name) for name in self.names if name is not None]

    def stack(self, name: str) -> PlainArray:
        return npy_array(self._file(name))

    def listing(self) -> Iterator[str]:
        for file in sorted(self._folder.glob(f"*{SUFFIX}")):
            try:
                array = npy_array(file)
            except (ValueError, OSError) as error:
                yield f"{file.name}, which {error}"
            else:
                yield f"{file.name} {shape_text(array)}"

    @property
    def _folder(self) -> Path:
        return self.path if self.path.is_dir() else self.path.parent

    def _file(self, name: str) -> Path:
        """Return the file with this name, with or without its suffix."""
        path = self._folder / name
        return path if path.suffix == SUFFIX else path.with_name(path.name + SUFFIX)
