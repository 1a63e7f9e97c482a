"""The containers of rows that `--from` takes. They are known by their content, not by their names."""

from __future__ import annotations

from pathlib import Path

from packer.sources.container import Container
from packer.sources.hdf5_arrays import Hdf5Arrays
from packer.sources.npy_arrays import NpyArrays
from readers.contract.regular_files import open_raw

HEAD = 512
"""The bytes at the start of a file that show its kind."""
CONTAINERS: tuple[Container, ...] = (Hdf5Arrays, NpyArrays)
"""The first one that fits is taken."""


def container_of(path: Path) -> Container | None:
    """Return the kind of container that lies here; None if it is a folder of files, or an unknown file."""
    head = b""
    if not path.is_dir():
        try:
            with open_raw(path) as file:
                head = file.read(HEAD)
        except OSError:
            return None
    return next((container for container in CONTAINERS if container.fits(path, head)), None)
