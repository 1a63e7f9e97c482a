"""The kind `values`: a measured number for each pixel, or the fill where there was no measurement."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.errors import BadPair
from packer.pixels.exact_sums import exact_sums
from readers.contract.fields import Field
from readers.contract.statistics import ValueStatistics


def check(field: Field, values: NDArray[Any]) -> ValueStatistics:
    """Return the statistics of a stored row; raise BadPair if it has a number that is neither finite nor the fill."""
    measured = values[_bits(values) != _bits(np.array(field.fill_number, field.dtype))]
    if not np.isfinite(measured).all():
        raise BadPair(f"has numbers in its {field.name} that are not finite, and not the fill {field.fill}")
    total, squares = exact_sums(measured)
    return ValueStatistics(measured.size, values.size - measured.size, (total,), (squares,))


def _bits(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return numbers that are equal where the stored bits are: NaN has one form."""
    return numbers.view(f"<u{numbers.itemsize}")
