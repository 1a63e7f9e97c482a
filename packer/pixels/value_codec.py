"""`ValueCodec`: from the bytes of a file, or an array, to measured values, with the fill where nothing was measured."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.decoding.decode import check_exact, header_of
from packer.decoding.header import Header, Picture
from packer.decoding.no_data import without_data
from packer.decoding.no_data_choice import number_of
from packer.decoding.raw_pixels import read_stored, upright
from packer.decoding.rules import MOST_PIXELS
from packer.errors import BadPair, UsageError
from packer.pixels.exact_numbers import check_gray, opaque, position, refuse_beyond
from packer.pixels.number_rules import ValueRules
from readers.contract.kinds import NAN, fits

SCALED = "<f4"
_STORED = {"|u1": "<u2", "<u2": "<u2", "|i1": "<i2", "<i2": "<i2", "<f2": "<f2", "<f4": "<f4"}
"""The type in which numbers of a file are stored unchanged."""
_UNMEASURED = {"<u2": 0, "<i2": -32768}
"""The number in pixels without a measurement, where none is stated."""


def value_dtype(header: Header, rules: ValueRules) -> str:
    """Return the type in which the values of a file with this header are stored, if none is stated."""
    if rules.scale != 1:
        return SCALED
    if header.dtype not in _STORED:
        kind = "floating-point" if header.is_float else "whole"
        raise BadPair(
            f"has {kind} numbers of {header.depth} bits; values have 16 bits, float16 or float32. State one of them as "
            "the type of the field"
        )
    return _STORED[header.dtype]


def value_fill(rules: ValueRules, dtype: str) -> float | str:
    """Return the fill of a field of values of this type: the number that marks a pixel without a measurement."""
    if dtype[1] == "f":
        return NAN
    if rules.invalid is None:
        return _UNMEASURED[dtype]
    if rules.invalid != int(rules.invalid) or not fits(int(rules.invalid), dtype):
        raise UsageError(
            f"invalid {rules.invalid:g}: whole numbers keep it where nothing was measured, and numbers of the type "
            f"{np.dtype(dtype).name} cannot; store float32"
        )
    return int(rules.invalid)


class ValueCodec:
    """Reads the values of one field, which are stored as `dtype`, with `fill` where nothing was measured."""

    def __init__(self, rules: ValueRules, dtype: str, fill: float | str, max_pixels: int = MOST_PIXELS) -> None:
        self._invalid, self._scale = rules.invalid, rules.scale
        self._dtype, self._fill = np.dtype(dtype), float(fill)
        self._max_pixels = max_pixels

    def check(self, header: Header) -> None:
        """Raise BadPair if a file with this header cannot hold values."""
        check_exact(header, "value")
        if header.has_palette:
            raise BadPair("has a palette; values are the numbers of gray pixels")
        check_gray(header, "a value is the number of a gray pixel")

    def read(self, data: Picture) -> NDArray[Any]:
        """Return upright (H,W) values."""
        header = header_of(data, self._max_pixels)
        self.check(header)
        return self.converted(upright(opaque(read_stored(data, header)).numbers, header), number_of(header.no_data))

    def converted(self, numbers: NDArray[Any], named: float | None = None) -> NDArray[Any]:
        """Return (H,W) numbers as values in the stored type. They are multiplied and rounded once.

        `named` is the number that the file names for pixels without data.
        """
        missing = without_data(numbers, named if self._invalid is None else self._invalid)
        if self._scale != 1:
            with np.errstate(over="ignore"):  # infinite numbers are refused
                numbers = numbers.astype(np.float64) * self._scale
        if numbers.dtype.kind == "f":
            _refuse(numbers, np.isinf(numbers) & ~missing, "which is not finite")
        values = self._rounded(numbers, missing) if self._dtype.kind == "f" else self._whole(numbers, missing)
        if missing.any():
            values[missing] = self._fill
        return values

    def _rounded(self, numbers: NDArray[Any], missing: NDArray[np.bool_]) -> NDArray[Any]:
        with np.errstate(over="ignore"):
            values = numbers.astype(self._dtype)
        _refuse(numbers, np.isinf(values) & ~missing, f"which is too large for {self._dtype.name}")
        return values

    def _whole(self, numbers: NDArray[Any], missing: NDArray[np.bool_]) -> NDArray[Any]:
        measured = np.where(missing, numbers.dtype.type(0), numbers)
        if numbers.dtype.kind == "f":
            _refuse(numbers, measured != np.rint(measured), "which is not a whole number; store float32")
        limits = np.iinfo(self._dtype)
        words = f"{self._dtype.name} holds {limits.min} to {limits.max}; store float32"
        refuse_beyond(measured, int(limits.min), int(limits.max), words)
        return measured.astype(self._dtype)


def _refuse(numbers: NDArray[Any], wrong: NDArray[np.bool_], words: str) -> None:
    """Refuse numbers that are wrong somewhere. The message names the first one and its position."""
    if wrong.any():
        row, column = position(wrong)
        raise BadPair(f"has the number {numbers[row, column]:g} at row {row}, column {column}, {words}")
