"""npy: one plain `.npy` file per column."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from packer.formats import Arrays
from readers.formats.npy import column_path


def write(stem: Path, arrays: Arrays) -> list[Path]:
    """One file per column."""
    paths = []
    for name, array in arrays.items():
        paths.append(column_path(stem, name))
        with paths[-1].open("wb") as file:
            np.lib.format.write_array(file, array, version=(1, 0), allow_pickle=False)
    return paths


def tool() -> str:
    return "npy 1.0"
