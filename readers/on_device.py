"""Windows that are made on the device: of what was read only the pixels, scaled, turned and coloured there by PyTorch.

The numbers are those that the CPU makes: of bytes the same bits, and of other numbers to the rounding of float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from readers.batch_memory import Lease
from readers.contract.errors import RequestError
from readers.contract.fields import Sides
from readers.contract.kinds import FLAG
from readers.delivered import Delivered
from readers.row_reader import RowReader, as_series
from readers.scaled import UNIT, ScaledSide
from readers.tone import MOST, PART, BatchTones
from readers.windows import FLIPS, BatchWindows, overlap

ToDevice = Callable[[torch.Tensor], torch.Tensor]
_TORCH = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


class RawBatch(NamedTuple):
    """A batch of windows before they are made: for each field the pixels of each row that its window shows."""

    fields: Sequence[Delivered]
    pixels: Sequence[Sequence[torch.Tensor]]
    sizes: Sequence[Sides]
    windows: BatchWindows
    tones: BatchTones | None

    def moved(self, move: ToDevice) -> RawBatch:
        """Return the same batch on a device."""
        return self._replace(pixels=[[move(part) for part in parts] for parts in self.pixels])

    def made(self) -> tuple[torch.Tensor, ...]:
        """Return the windows, as a batch of each field, on the device of their pixels."""
        return tuple(self._field(field, parts) for field, parts in zip(self.fields, self.pixels, strict=True))

    def _field(self, field: Delivered, parts: Sequence[torch.Tensor]) -> torch.Tensor:
        batch = torch.stack([self._window(field, target, _movable(part)) for target, part in enumerate(parts)])
        batch = batch.view(parts[0].dtype)
        if self.tones is not None and self.tones.tone.field is field.field:
            batch = toned(batch, self.tones)
        if field.expands:
            numbers = torch.arange(field.field.numbers or 0, device=batch.device).view(1, -1, *[1] * (batch.ndim - 1))
            return (batch.unsqueeze(1).int() == numbers).to(torch.uint8)
        series: torch.Tensor = as_series(field.field, batch)
        return series

    def _window(self, field: Delivered, target: int, part: torch.Tensor) -> torch.Tensor:
        windows, sides = self.windows, self.sizes[target]
        size = windows.size or sides
        swapped, flip = windows.swaps is not None and windows.swaps[target], windows.flips[target]
        _, inside = overlap(sides if windows.scaled is None else windows.scaled[target], size, windows.starts[target])
        shown = windows.shown(target, sides)
        if shown is not None and part.numel():
            is_signed = np.dtype(field.stored.dtype).kind != "u"
            part = _linear(part, shown, is_signed) if field.how.is_linear else _nearest(part, shown)
        fill = field.how.fill if field.how.fill is not None else windows.pad
        stored = np.array(field.stored.fill_number if field.expands else fill, field.stored.dtype)
        number = _movable(torch.from_numpy(stored)).item()
        out = part.new_full((*part.shape[: part.ndim - len(size)], *size), number)
        if part.numel():
            out[inside] = part
        out = out.transpose(-1, -2) if swapped else out
        return out.flip([axis for axis, bit in FLIPS.items() if flip & bit])


def check_fields(fields: Sequence[Delivered], scales: bool) -> None:
    """Refuse fields that are not made on the device; `scales`: windows are scaled."""
    for field in fields:
        name = field.field.name
        if field.stored.kind == FLAG or (field.copy is not np.copyto and not field.expands):
            raise RequestError(f'on="device": the field {name!r} is made on the CPU only; leave it out, or on=')
        if scales and field.how.missing is not None:
            why = "has pixels without data, which are scaled on the CPU; leave out on= or scale="
            raise RequestError(f'on="device": {name!r} {why}')


def read_raw(
    reader: RowReader, rows: Sequence[int], lease: Lease, windows: BatchWindows | None, tones: BatchTones | None
) -> RawBatch:
    """Return the windows of rows before they are made; whole rows without windows."""
    windows = windows or BatchWindows(None, 0, [[0] * len(reader.sides)] * len(rows), [0] * len(rows))
    sizes = [tuple(size) for size in reader.sizes(rows).tolist()]
    pixels: list[list[torch.Tensor]] = []
    for field in reader.fields:
        parts = []
        for target, read in enumerate(reader.parts(field, rows)):
            empty = np.empty((*field.stored.planes, *[0] * len(sizes[target])), field.stored.dtype)
            part = empty if read is None else read(windows.part(target, sizes[target]))
            own = lease(part.shape, part.dtype.str)
            np.copyto(own, part)
            parts.append(torch.from_numpy(own))
        pixels.append(parts)
    return RawBatch(reader.fields, pixels, sizes, windows, tones)


def toned(batch: torch.Tensor, tones: BatchTones) -> torch.Tensor:
    """Return pictures (N, C, …, H, W) with their tones. Pixels without data stay, or are the mean."""
    tone, pictures = tones.tone, _toned(batch, tones)
    if not tone.field.no_data:
        return pictures
    fill = tone.field.fill_number
    missing = batch.isnan() if math.isnan(fill) else batch.double() == fill
    if tone.mean_std is not None:
        return pictures.masked_fill(missing, 0)
    plain = _toned(batch, BatchTones(tone.plain, None))
    return torch.where(missing, _movable(plain), _movable(pictures)).view(pictures.dtype)


def _toned(batch: torch.Tensor, tones: BatchTones) -> torch.Tensor:
    tone = tones.tone
    weights = None if tones.weights is None else tones.whole_weights if tone.is_of_bytes else tones.weights
    rows = None if weights is None else torch.from_numpy(np.ascontiguousarray(weights)).to(batch.device)
    if tone.is_of_bytes:
        sums = batch.int() * PART if rows is None else _weighted(batch.int(), rows.int(), _added).clamp_(0, MOST)
        if tone.numbers is None:
            return ((sums + PART // 2) // PART).to(torch.uint8)
        return _numbers(sums.float(), tone.lines(MOST), _TORCH[tone.numbers])
    low, high = tone.field.range or (0, 1)
    numbers = (batch.float() - low) / (high - low)
    if rows is not None:
        numbers = _weighted(numbers, rows.float(), lambda all_, pixels, weight: all_ + pixels * weight)
        numbers = numbers if tone.field.range is None else numbers.clamp(0, 1)
    if tone.numbers is not None:
        return _numbers(numbers, tone.lines(1), _TORCH[tone.numbers])
    numbers = numbers * (high - low) + low
    return numbers.to(batch.dtype) if batch.dtype.is_floating_point else numbers.round().to(batch.dtype)


def _added(sums: torch.Tensor, pixels: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return (sums + (64 * pixels * weight + (1 << 14) >> 15)).clamp(-(1 << 15), (1 << 15) - 1)


def _weighted(batch: torch.Tensor, weights: torch.Tensor, added: Callable[..., torch.Tensor]) -> torch.Tensor:
    """Return the sum for each channel: the term, the gray of all channels if there are weights for it, and its own."""
    channels, sides = batch.shape[1], [1] * (batch.ndim - 2)
    columns = [column.view(-1, *sides) for column in weights.unbind(1)]
    all_ = columns[-1].expand(batch[:, 0].shape)
    for number, weight in enumerate(columns[channels:-1]):
        all_ = added(all_, batch[:, number], weight)
    return torch.stack([added(all_, batch[:, number], columns[number]) for number in range(channels)], 1)


def _numbers(batch: torch.Tensor, lines: NDArray[np.float32], dtype: torch.dtype) -> torch.Tensor:
    factors, terms = (
        torch.from_numpy(lines[:, side].copy()).to(batch.device).view(-1, *[1] * (batch.ndim - 2)) for side in (0, 1)
    )
    return (batch * factors + terms).to(dtype)


def _linear(part: torch.Tensor, sides: Sequence[ScaledSide], is_signed: bool) -> torch.Tensor:
    """Return the scaled window of a picture: columns are added first, then lines."""
    of_bytes, is_float = part.dtype == torch.uint8, part.dtype.is_floating_point
    sums = part.int() if of_bytes else part.double() if is_float else part.long()
    sums = sums if is_signed or part.dtype != torch.int16 else sums & 0xFFFF
    for axis, side in zip((-1, -2), reversed(sides), strict=True):
        first, weights = side.neighbours
        first = first - side.part.start
        indices = torch.from_numpy(np.stack([first, np.minimum(first + 1, part.shape[axis] - 1)])).to(part.device)
        second = torch.from_numpy(weights).to(part.device, sums.dtype)
        second = second if axis == -1 else second[:, None]
        left, right = (sums.index_select(axis, numbers) for numbers in indices)
        if of_bytes and axis == -2:
            return ((left * (UNIT - second) // UNIT + right * second // UNIT + UNIT // 2) // UNIT).to(torch.uint8)
        sums = left * (UNIT - second) + right * second
    return (sums / (UNIT * UNIT)).to(part.dtype) if is_float else (sums + (1 << 15) >> 16).to(part.dtype)


def _movable(part: torch.Tensor) -> torch.Tensor:
    """Return numbers that PyTorch can move: of uint16, which it hardly knows, the bits as int16."""
    return part.view(torch.int16) if part.dtype == torch.uint16 else part


def _nearest(part: torch.Tensor, sides: Sequence[ScaledSide]) -> torch.Tensor:
    for axis, side in zip((-2, -1), sides, strict=True):
        chosen = (side.nearest - side.part.start).clip(0, part.shape[axis] - 1)
        part = part.index_select(axis, torch.from_numpy(chosen).to(part.device))
    return part
