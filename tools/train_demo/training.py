"""The training: a model, its optimizer, and an epoch of steps whose losses and times are kept."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

import torch
from bench.cpu import cpu_seconds
from torch.nn.functional import cross_entropy

from train_demo.contenders import Contender, Setting
from train_demo.model import UNet
from train_demo.timing import LATE, Step, Watch

RATE = 2e-3


@dataclass(frozen=True)
class Epoch:
    """The loss and the times of each step; seconds from the asking for the first batch to the last result, on the clock
    and of all processors together, those of workers included."""

    losses: tuple[float, ...]
    seconds: float
    cpu: float
    steps: tuple[Step, ...]

    def spent(self, part: str) -> float:
        """Seconds of one part of all steps."""
        return float(sum(getattr(step, part) for step in self.steps))

    @property
    def waited(self) -> float:
        """The share of steps that waited for data."""
        return statistics.fmean(step.waiting > LATE for step in self.steps)


class Training:
    """Begins with the same weights for the same seed, and takes the same steps for the same batches."""

    def __init__(self, setting: Setting, width: int) -> None:
        torch.manual_seed(setting.seed)
        classes = setting.packed.recipe.classes
        self._setting = setting
        self._ignored = classes.ignore_index
        model = UNet(len(classes), width).to(setting.device)
        self._model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._optimizer = torch.optim.AdamW(self._model.parameters(), lr=RATE)

    @property
    def weights(self) -> int:
        """How many numbers are trained."""
        return sum(one.numel() for one in self._model.parameters())

    def epoch(self, contender: Contender, number: int) -> Epoch:
        """One pass through a contender's batches."""
        device = self._setting.device
        if device.type == "cuda":
            torch.cuda.synchronize(device)  # nothing of the epoch before is left to be waited for
        started, spent = time.perf_counter(), cpu_seconds()
        watch = Watch(contender.epoch(number), device)
        losses = [self._step(images, labels) for images, labels in watch]
        numbers = torch.stack(losses).tolist()  # once the device is done
        seconds = time.perf_counter() - started
        return Epoch(tuple(numbers), seconds, cpu_seconds() - spent, watch.steps())

    def _step(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        device = self._setting.device.type
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            scores = self._model(images)
        loss = cross_entropy(scores.float(), labels, ignore_index=self._ignored)
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        return loss.detach()
