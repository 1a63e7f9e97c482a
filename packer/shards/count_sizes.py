"""Count the sizes of rows."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from packer.recipe.ref_table import CHUNK
from readers.contract.tiles import Size


def count_sizes(sizes: NDArray[np.uint32]) -> Counter[Size]:
    """Return how many rows have each size, in the order of their first rows. Zeros are of bad rows."""
    counts = Counter[Size]()
    if sizes.shape[1] == 3:
        counts.update(tuple(size) for size in sizes.tolist() if size[0])
        return counts
    for first in range(0, len(sizes), CHUNK):  # numpy.unique takes several times the memory of the sizes
        some = sizes[first : first + CHUNK]
        codes = some[:, 0].astype(np.uint64) << np.uint64(32) | some[:, 1]
        distinct, firsts, times = np.unique(codes[codes > 0], return_index=True, return_counts=True)
        for number in np.argsort(firsts).tolist():
            code = int(distinct[number])
            counts[code >> 32, code & 0xFFFFFFFF] += int(times[number])
    return counts
