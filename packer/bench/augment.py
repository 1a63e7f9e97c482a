"""Measure what each step of the loader costs that scales, turns, colours or normalises: alone, and all together."""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from packer.bench.encodings import READING, ROUNDS, loader_settings
from packer.bench.loaders import TrialRunner
from packer.bench.request import BenchRequest
from packer.bench.settings import LoaderSettings
from packer.errors import UsageError
from packer.progress import Progress, no_progress
from readers import Colour, RandomCrop
from readers.contract.fields import Field, Sides
from readers.machine import Machine
from readers.statistics import picture_of

FACTOR = 0.3
SCALE = (0.5, 2.0)


@dataclass(frozen=True)
class Step:
    """An option of a loader besides reading: its words in the call, and what they mean."""

    words: str
    options: dict[str, Any]


@dataclass(frozen=True)
class StepResult:
    """A step, and the samples per second of a loader with it in each round."""

    step: Step
    rates: tuple[float, ...]

    @property
    def rate(self) -> float:
        """The median rate."""
        return statistics.median(self.rates)


def steps_of(fields: Sequence[Field], crop: Sides | None) -> list[Step]:
    """Return the steps that rows of these fields allow: reading alone first, all at once last."""
    import torch

    window = {} if crop is None else {"crop": crop}
    steps = [Step("read only", {}), Step('flip="all"', {"flip": "all"})]
    if crop is not None and len(crop) == 2:
        scaled = {"crop": RandomCrop(crop, scale=SCALE)}
        steps.append(Step(f"crop=RandomCrop({crop}, scale={SCALE})", scaled))
        if crop[0] == crop[1]:
            steps.append(Step("turn=True", {"turn": True}))
    picture = picture_of(fields)
    if picture is not None:
        channels = math.prod(picture.planes)
        saturation = FACTOR if channels == 3 else 0
        colour = Colour(FACTOR, FACTOR, saturation)
        means = ((0.5,) * channels, (0.25,) * channels)
        words = f"brightness={FACTOR}, contrast={FACTOR}" + f", saturation={FACTOR}" * bool(saturation)
        steps.append(Step(f"colour=Colour({words})", {"colour": colour}))
        steps.append(Step("normalize=…, dtype=torch.float16", {"normalize": means, "dtype": torch.float16}))
    together: dict[str, Any] = {}
    for step in steps:
        together |= step.options
    return [Step(step.words, window | step.options) for step in [*steps, Step("all of these", together)]]


def measure_steps(
    request: BenchRequest, progress: Progress = no_progress
) -> tuple[LoaderSettings, TrialRunner, list[StepResult]]:
    """Return the samples per second with each step, measured in turns, of rows in memory."""
    runner = TrialRunner(request)
    steps = steps_of(runner.dataset.fields, runner.crop)
    if len(steps) < 3:
        raise UsageError("--augment: no field of this pack can be augmented; see --fields")
    settings = loader_settings(request, Machine.look(), len(runner.dataset))
    rates: list[list[float]] = [[] for _ in steps]
    with warnings.catch_warnings(), progress("measuring", ROUNDS * len(steps), "trials") as advance:
        warnings.simplefilter("ignore")
        runner.first_pass(settings.batch, settings.workers, READING / 2)
        seconds = request.seconds_left() / (ROUNDS * len(steps))
        for number in range(ROUNDS):
            for index in range(len(steps))[:: -1 if number % 2 else 1]:
                rates[index].append(runner.rate(settings, seconds, steps[index].options))
                advance(1)
    return settings, runner, [StepResult(step, tuple(rounds)) for step, rounds in zip(steps, rates, strict=True)]
