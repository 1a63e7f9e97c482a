"""The training: a model, its optimizer, and epochs with the loss and time of each step."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

import torch
from bench.cpu import cpu_seconds
from torch.nn.functional import cross_entropy

from train_demo.model import UNet
from train_demo.pipelines import Pipeline, Setup
from train_demo.step_times import LATE, Step, StepTimer

RATE = 2e-3


@dataclass(frozen=True)
class Epoch:
    """The loss and the times of each step. `seconds` is the wall time from the request of the first batch to the last
    result, `cpu` the CPU time of all processes, workers included."""

    losses: tuple[float, ...]
    seconds: float
    cpu: float
    steps: tuple[Step, ...]

    def spent(self, part: str) -> float:
        """Return the seconds of one part, over all steps."""
        return float(sum(getattr(step, part) for step in self.steps))

    @property
    def waited(self) -> float:
        """The share of steps that waited for data."""
        return statistics.fmean(step.waiting > LATE for step in self.steps)


class Training:
    """A training that starts with the same weights for the same seed, and makes the same steps for the same batches."""

    def __init__(self, setup: Setup, width: int) -> None:
        torch.manual_seed(setup.seed)
        classes = setup.packed.classes
        self._setup = setup
        self._ignored = classes.ignore_index
        model = UNet(len(classes), width).to(setup.device)
        self._model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._optimizer = torch.optim.AdamW(self._model.parameters(), lr=RATE)

    @property
    def weights(self) -> int:
        """The number of trained parameters."""
        return sum(weight.numel() for weight in self._model.parameters())

    def epoch(self, pipeline: Pipeline, number: int) -> Epoch:
        """Train on one pass over the batches of a pipeline."""
        device = self._setup.device
        if device.type == "cuda":
            torch.cuda.synchronize(device)  # the epoch before must be complete
        started, spent = time.perf_counter(), cpu_seconds()
        timer = StepTimer(pipeline.epoch(number), device)
        losses = [self._step(images, labels) for images, labels in timer]
        numbers = torch.stack(losses).tolist()  # once the device is done
        seconds = time.perf_counter() - started
        return Epoch(tuple(numbers), seconds, cpu_seconds() - spent, timer.steps())

    def _step(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        device = self._setup.device.type
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            scores = self._model(images)
        loss = cross_entropy(scores.float(), labels, ignore_index=self._ignored)
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        return loss.detach()
