"""The tone of pictures while they are read: colours changed, normalised, and as numbers of another type.

Of bytes, a pixel x becomes z, in sixteenths of a pixel: an offset, to which the product of each channel is added, with
the weight w in parts of 8192: `(64 * x * w + 2**14) >> 15`. Sums stay within 16 bits, and z from 0 to 4080. Without
weights z is 16 * x. A byte is `(z + 8) >> 4`. Other numbers are `z * factor + term` in float32, rounded once.

In other pictures numbers count from 0 to 1 by the range of the picture, and the same is done in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from readers.colour import Colour
from readers.contract.errors import RequestError
from readers.contract.fields import Field
from readers.contract.kernels import fits_kernels, kernel
from readers.epoch import Run
from readers.permutation import Numbers
from readers.scaled import KernelTone, scale_all
from readers.statistics import MeanStd, mean_std_of, picture_of
from readers.windows import WindowInFile

KERNEL = kernel("readers.tone_kernel")
WEIGHT, PART = 8192, 16
"""The parts of a weight, and of a pixel of bytes."""
MOST = 255 * PART
PLAIN_NUMBERS = 7
"""Windows of pictures that are scaled have more."""
FloatName = Literal["float32", "float16", "bfloat16"]
DTYPES: dict[FloatName, str] = {"float32": "<f4", "float16": "<f2", "bfloat16": "<u2"}
"""The types of delivered numbers as NumPy knows them: of bfloat16 the bits."""
_KINDS = {None: 0, "float32": 1, "float16": 2, "bfloat16": 3}


@dataclass(frozen=True)
class Tone:
    """The options `colour`, `normalize` and `dtype` of a loader, for one picture field."""

    field: Field
    colour: Colour | None = None
    mean_std: MeanStd | None = None
    numbers: FloatName | None = None
    """The type of the delivered numbers; None for those of the field."""

    @classmethod
    def of(
        cls,
        fields: Sequence[Field],
        colour: Colour | None,
        normalize: MeanStd | bool,
        dtype: Any,
        training: MeanStd | None,
    ) -> Tone | None:
        """Return the options as one object; None if there is nothing to do. `dtype` is one of PyTorch's."""
        mean_std = mean_std_of(normalize, training)
        if colour is None and mean_std is None and dtype is None:
            return None
        name = "float32" if dtype is None and mean_std is not None else str(dtype).rpartition(".")[2]
        if dtype is not None and name not in DTYPES:
            raise RequestError(f"dtype={dtype}: expected torch.float32, torch.float16 or torch.bfloat16")
        if not isinstance(colour, Colour | None):
            raise RequestError(f"colour={colour!r}: expected Colour(…), such as Colour(brightness=0.3)")
        field = picture_of(fields)
        if field is None:
            found = ", ".join(each.name for each in fields)
            raise RequestError(f"colour=, normalize= and dtype= are for pictures, and none is read: {found}")
        if mean_std is not None and len(mean_std[0]) * field.times == math.prod(field.planes):
            means, deviations = map(tuple, mean_std)
            mean_std = (means * field.times, deviations * field.times)  # each date has the same bands
        return cls(field, colour, mean_std, name if name in DTYPES else None)

    def __post_init__(self) -> None:
        if self.colour is not None:
            self.colour.check(self.channels)
        for values in self.mean_std or ():
            if len(values) != self.channels or not all(map(math.isfinite, values)):
                raise RequestError(f"normalize: expected {self.channels} numbers, one for each channel, found {values}")
        if self.mean_std is not None and not min(self.mean_std[1]) > 0:
            raise RequestError(f"normalize={self.mean_std}: expected (means, deviations), deviations above 0")

    @property
    def channels(self) -> int:
        """The channels of a row; of a time series, those of all dates."""
        return math.prod(self.field.planes)

    @property
    def dtype(self) -> str:
        """The dtype of the array that is delivered."""
        return self.field.dtype if self.numbers is None else DTYPES[self.numbers]

    @property
    def bits_of(self) -> str | None:
        """The name of the field that is delivered as the bits of bfloat16."""
        return self.field.name if self.numbers == "bfloat16" else None

    @property
    def is_of_bytes(self) -> bool:
        """True if pixels are bytes that count from 0 to 255."""
        return np.dtype(self.field.dtype) == np.uint8 and self.field.range in (None, (0, 255))

    @property
    def plain(self) -> Tone:
        """The tone of pixels without data, if pictures are not normalised: they only become numbers."""
        return Tone(self.field, None, None, self.numbers)

    @property
    def fill(self) -> float | None:
        """The delivered number of pixels without data; None if there are none."""
        if not self.field.no_data:
            return None
        number = ToneOfRow(self.plain, None).padding(self.field.fill_number).reshape(-1)[:1]
        return float((number.astype(np.uint32) << 16).view(np.float32)[0] if self.bits_of else number[0])

    def of_batch(self, rows: Numbers, runs: Sequence[Run]) -> BatchTones:
        """Return the tones of the rows of a batch."""
        return BatchTones(self, None if self.colour is None else self.colour.weights(rows, runs, self.channels))

    def lines(self, units: float) -> NDArray[np.float32]:
        """Return for each channel the factor and the term that make numbers from 0 to `units` the delivered ones."""
        means, deviations = self.mean_std or ([0.0] * self.channels, [1.0] * self.channels)
        pairs = [
            (1 / (units * deviation), -mean / deviation) for mean, deviation in zip(means, deviations, strict=True)
        ]
        return np.array(pairs, np.float32)


@dataclass(frozen=True)
class BatchTones:
    """The tones of the rows of a batch, in the order of its rows."""

    tone: Tone
    weights: NDArray[np.float64] | None
    """For each row the factors of its channels, those for gray if it is used, and a term; pixels are from 0 to 1."""

    def copy_all(self, windows: list[WindowInFile], out: NDArray[Any]) -> bool:
        """Read windows of raw pictures into `out` by one call of the kernel. Return False if it cannot do that."""
        if KERNEL is None or not self.tone.is_of_bytes or self.tone.field.no_data or not fits_kernels(out):
            return False
        tone = self.whole_weights, self.tone.lines(MOST), _KINDS[self.tone.numbers]
        if windows and len(windows[0][1]) > PLAIN_NUMBERS:
            return scale_all(windows, out, True, tone)
        KERNEL.tone_all(windows, out, *tone)
        return True

    @property
    def whole_weights(self) -> NDArray[np.int16] | None:
        """The weights in the whole numbers that bytes are multiplied by."""
        return _whole(self.weights)

    def of_row(self, target: int) -> ToneOfRow:
        """Return the tone of the batch's row `target`."""
        return ToneOfRow(self.tone, None if self.weights is None else self.weights[target])


@dataclass(frozen=True)
class ToneOfRow:
    """The tone of one row. Call it to write pixels (C, …, H, W) with their tone."""

    tone: Tone
    weights: NDArray[np.float64] | None

    def __call__(self, out: NDArray[Any], pixels: NDArray[Any]) -> None:
        tone = self.tone
        if tone.is_of_bytes and KERNEL is not None and pixels.ndim == 3 and fits_kernels(out):
            whole = (np.ascontiguousarray(pixels).reshape(-1), (0, *pixels.shape[1:], 0, 0, 0, 0))
            KERNEL.tone_all([whole], out[None], *self._of_kernel)
        elif tone.is_of_bytes:
            _copy_bytes(tone, pixels, _whole(self.weights), out)
        else:
            _copy_numbers(tone, pixels, self.weights, out)
        if tone.field.no_data:
            _keep_missing(tone, pixels, out)

    @property
    def stored(self) -> np.dtype[Any]:
        """The dtype of the pixels before."""
        return np.dtype(self.tone.field.dtype)

    def padding(self, fill: float) -> NDArray[Any]:
        """Return what pixels outside of the picture become, (C, 1, 1)."""
        sides = [1] * len(self.tone.field.sides)
        out = np.empty((self.tone.channels, *sides), self.tone.dtype)
        self(out, np.full(out.shape, fill, self.tone.field.dtype))
        return out

    @property
    def of_kernel(self) -> KernelTone | None:
        """The same for the kernel that scales windows; None if it does not know such pictures."""
        return self._of_kernel if self.tone.is_of_bytes and not self.tone.field.no_data else None

    @property
    def _of_kernel(self) -> KernelTone:
        weights = None if self.weights is None else _whole(self.weights[None])
        return weights, self.tone.lines(MOST), _KINDS[self.tone.numbers]


def _whole(weights: NDArray[np.float64] | None) -> NDArray[np.int16] | None:
    """Return weights in whole numbers of 16 bits."""
    if weights is None:
        return None
    units = np.full(weights.shape[-1], float(WEIGHT))
    units[-1] = MOST
    whole = np.rint(weights * units).clip(-(1 << 15), (1 << 15) - 1)
    return np.ascontiguousarray(whole, np.int16)


def _copy_bytes(tone: Tone, pixels: NDArray[Any], weights: NDArray[np.int16] | None, out: NDArray[Any]) -> None:
    """Do what the kernel does."""
    parts = pixels.astype(np.int32)
    if weights is not None:

        def added(sums: NDArray[np.int32], channel: NDArray[np.int32], weight: int) -> NDArray[np.int32]:
            return (sums + ((64 * channel * weight + (1 << 14)) >> 15)).clip(-(1 << 15), (1 << 15) - 1)

        parts = _weighted(parts, weights.astype(np.int32), added).clip(0, MOST)
    else:
        parts = parts * PART
    if tone.numbers is None:
        out[...] = (parts + PART // 2) // PART
    else:
        _store(tone.numbers, parts.astype(np.float32), tone.lines(MOST), out)


def _copy_numbers(tone: Tone, pixels: NDArray[Any], weights: NDArray[np.float64] | None, out: NDArray[Any]) -> None:
    low, high = np.float32(0), np.float32(1)
    if tone.field.range is not None or tone.is_of_bytes:
        low, high = map(np.float32, tone.field.range or (0, 255))
    numbers = (pixels.astype(np.float32) - low) / (high - low)
    if weights is not None:
        sums = _weighted(numbers, weights.astype(np.float32), lambda all_, channel, weight: all_ + channel * weight)
        numbers = sums.clip(0, 1) if tone.field.range is not None else sums
    if tone.numbers is not None:
        _store(tone.numbers, numbers, tone.lines(1), out)
        return
    numbers = numbers * (high - low) + low
    out[...] = np.rint(numbers) if out.dtype.kind in "ui" else numbers


def _weighted(pixels: NDArray[Any], weights: NDArray[Any], added: Callable[..., NDArray[Any]]) -> NDArray[Any]:
    """Return the sum for each channel: the term, the gray of all channels if there are weights for it, and its own."""
    channels = len(pixels)
    all_ = np.full(pixels.shape[1:], weights[-1])
    for channel, weight in zip(pixels, weights[channels:-1], strict=False):
        all_ = added(all_, channel, weight)
    return np.stack([added(all_, channel, weight) for channel, weight in zip(pixels, weights, strict=False)])


def _store(name: FloatName, numbers: NDArray[np.float32], lines: NDArray[np.float32], out: NDArray[Any]) -> None:
    """Write float32 times a factor of each channel, plus a term, in the type that is delivered."""
    with np.errstate(over="ignore", invalid="ignore"):
        numbers = numbers * _of_planes(lines[:, 0], numbers) + _of_planes(lines[:, 1], numbers)
        out[...] = to_bfloat16(numbers) if name == "bfloat16" else numbers


def _of_planes(values: NDArray[Any], pixels: NDArray[Any]) -> NDArray[Any]:
    """Return a number for each channel in the axes of pixels."""
    return values.reshape(-1, *[1] * (pixels.ndim - 1))


def to_bfloat16(numbers: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Return the bits of the nearest numbers of bfloat16."""
    bits = numbers.view(np.uint32)
    rounded = ((bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(numbers), np.uint16(0x7FC0), rounded)


def _keep_missing(tone: Tone, pixels: NDArray[Any], out: NDArray[Any]) -> None:
    """Write pixels without data once more: unchanged, or as the mean if pictures are normalised."""
    fill = tone.field.fill_number
    missing = np.isnan(pixels) if math.isnan(fill) else pixels == fill
    if not missing.any():
        return
    if tone.mean_std is not None:
        out[missing] = 0
    else:
        unchanged = np.empty_like(out)
        (_copy_bytes if tone.is_of_bytes else _copy_numbers)(tone.plain, pixels, None, unchanged)
        out[missing] = unchanged[missing]
