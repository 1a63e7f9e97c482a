"""npy: one plain `.npy` file per column."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from packer.publish.direct_file import DirectFile
from packer.shards.formats import ShardArrays
from readers.contract.fields import Field
from readers.formats.npy import column_path


def write(stem: Path, arrays: ShardArrays, fields: Sequence[Field]) -> dict[Path, str]:
    """Write one file per column."""
    digests = {}
    for name, array in arrays.items():
        path = column_path(stem, name)
        with DirectFile(path) as file:
            header = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape}
            np.lib.format.write_array_header_1_0(file, header)
            file.write(array.data)  # numpy's own writer loses the cause of an error
        digests[path] = file.digest
    return digests


def tool() -> str:
    return "npy 1.0"
