"""A small U-Net: a stem that reduces patches, three levels with skips, and a head that expands patches again."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

STEM, LEVELS = 4, 3
MULTIPLE = STEM << (LEVELS - 1)
"""The number by which both sides of a picture must be divisible."""


class UNet(nn.Module):
    """A model with scores for each class and pixel. `width` is the channels of the top level; each lower one has twice
    as many."""

    def __init__(self, classes: int, width: int) -> None:
        super().__init__()
        widths = [width << level for level in range(LEVELS)]
        self.stem = nn.Conv2d(3, width, STEM, STEM)
        self.down = nn.ModuleList(_block(a, b) for a, b in zip([width, *widths], widths, strict=False))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in pairwise(widths))
        self.join = nn.ModuleList(_block(2 * channels, channels) for channels in widths[:-1])
        self.head = nn.ConvTranspose2d(width, classes, STEM, STEM)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        level = self.stem(images)
        skips = []
        for number, block in enumerate(self.down):
            level = block(nn.functional.max_pool2d(level, 2) if number else level)
            skips.append(level)
        skips.pop()
        for up, join, skip in zip(reversed(self.up), reversed(self.join), reversed(skips), strict=True):
            level = join(torch.cat([skip, up(level)], dim=1))
        scores: torch.Tensor = self.head(level)
        return scores


def _block(inputs: int, outputs: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for channels in (inputs, outputs):
        layers += [
            nn.Conv2d(channels, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
        ]
    return nn.Sequential(*layers)
