"""npy: one plain `.npy` file per column."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from packer.formats import Arrays
from readers.contract.fields import Field
from readers.formats.npy import column_path


def write(stem: Path, arrays: Arrays, fields: Sequence[Field]) -> list[Path]:
    """One file per column."""
    paths = []
    for name, array in arrays.items():
        paths.append(column_path(stem, name))
        with paths[-1].open("wb") as file:
            header = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape}
            np.lib.format.write_array_header_1_0(file, header)
            file.write(array.data)  # numpy's own way of writing forgets why it failed
    return paths


def tool() -> str:
    return "npy 1.0"
