"""The kind `ids`: the object that each pixel belongs to, 0 for none."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.fields import Field
from readers.contract.statistics import IdStatistics


def check(field: Field, ids: NDArray[Any]) -> IdStatistics:
    """Return the statistics of a stored row; every number is possible."""
    return IdStatistics(ids.size, ids.size - int(np.count_nonzero(ids)))
