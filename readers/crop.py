"""Crops: transforms that cut one window out of image and label and pad what is smaller, so that batches can be made."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from readers.contract.errors import RequestError

Size = tuple[int, int]


@dataclass(frozen=True)
class CenterCrop:
    """`transform=CenterCrop((H, W))`: the middle of each picture; of an odd difference the last pixel is cut or padded.

    A smaller picture is padded: the image with `pad`, the label with what is ignored (255 or 65535 of numbers, no class
    of planes).
    """

    size: Size
    pad: float = 0

    def __post_init__(self) -> None:
        if len(self.size) != 2 or min(self.size) < 1:
            raise RequestError(f"{type(self).__name__}({self.size!r}): expected a height and a width, from 1 on")

    def __call__(self, image: torch.Tensor, label: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        top, left = (self._start(image.shape[axis - 2] - self.size[axis]) for axis in (0, 1))
        ignored = _ignored(label)
        return _window(image, top, left, self.size, self.pad), _window(label, top, left, self.size, ignored)

    def _start(self, spare: int) -> int:
        """Where on a side the window begins that has this much room; both are negative where the picture is smaller."""
        return spare // 2 if spare >= 0 else -(-spare // 2)


class RandomCrop(CenterCrop):
    """`transform=RandomCrop((H, W))`: a window anywhere in each picture, by torch's own random numbers.

    `torch.manual_seed`, or a DataLoader's `generator`, decides them. A smaller picture lies anywhere in the window, and
    is padded as by CenterCrop.
    """

    def _start(self, spare: int) -> int:
        return int(torch.randint(min(0, spare), max(0, spare) + 1, ()))


def _window(pixels: torch.Tensor, top: int, left: int, size: Size, padding: float) -> torch.Tensor:
    """A window in memory of its own: a view would keep the whole picture, and send it from worker to trainer."""
    height, width = size
    out = pixels.new_full((*pixels.shape[:-2], height, width), padding)
    part = pixels[..., max(0, top) : top + height, max(0, left) : left + width]
    down, right = max(0, -top), max(0, -left)
    out[..., down : down + part.shape[-2], right : right + part.shape[-1]] = part
    return out


def _ignored(label: torch.Tensor) -> int:
    """What a label has where the picture ends."""
    if label.ndim != 2:
        return 0
    if label.dtype not in (torch.uint8, torch.uint16):
        raise RequestError(f"a label of {label.dtype} does not tell what is ignored: crop first, convert after")
    return torch.iinfo(label.dtype).max
