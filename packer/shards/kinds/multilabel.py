"""The kind `multilabel`: classes that may overlap, as a plane of 0 and 1 or as a bit for each class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.errors import BadPair
from readers.contract.bits import has_other_bits, unpack_bits
from readers.contract.fields import Field
from readers.contract.kinds import BITS
from readers.contract.statistics import ClassStatistics


def check(field: Field, label: NDArray[Any]) -> ClassStatistics:
    """Return the statistics of a stored row; raise BadPair if it has bits or numbers without a class."""
    assert field.classes is not None
    count = len(field.classes)
    if has_other_bits(label, count) if field.form == BITS else label.max() > 1:
        raise BadPair(f"has numbers in its {field.name} that are in none of {count} classes")
    planes = unpack_bits(label, count) if field.form == BITS else label
    pixels: list[int] = np.count_nonzero(planes, axis=(1, 2)).tolist()
    rows = [1 if number else 0 for number in pixels]
    area = planes[0].size
    return ClassStatistics(
        tuple(pixels), tuple(rows), tuple([area * row for row in rows]), area - int(np.count_nonzero(planes.any(0)))
    )
