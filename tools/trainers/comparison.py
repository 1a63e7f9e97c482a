"""Facts that a program of this folder finds: the own loader of a library, and our bridge."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from program import parser

Pairs = Iterable[tuple[Any, Any]]
"""Numbers of the own loader, and those of the pack: tensors or arrays."""
Epoch = Callable[[], Iterable[object]]
"""Starts an epoch of a loader."""


@dataclass(frozen=True)
class Comparison:
    """The samples of two loaders over the same rows, and two trainings that differ in the loader alone."""

    library: str
    version: str
    samples: int
    """Compared: the first batches of both loaders in the same order."""
    values: int
    """Numbers of the images that were compared."""
    most_apart: float
    """The largest difference of two of these numbers, in the units of the model's input."""
    labels: int
    """Pixels, or boxes, whose class was compared."""
    labels_apart: int
    """Those of them that differ, ignored ones among them."""
    ignored: int
    """Those of the compared labels that are ignored."""
    losses: dict[str, list[float]]
    """The loss of each epoch, by "own" and "pack"."""
    metric: str
    scores: dict[str, float]
    """The metric that the library itself computes, by "own" and "pack"."""
    note: str = ""
    """Differences, and their reason."""


def array(numbers: Any) -> NDArray[Any]:
    """Return numbers as an array, without what a library adds to its tensors."""
    return np.asarray(numbers.as_tensor() if hasattr(numbers, "as_tensor") else numbers)


def compared(
    library: str,
    version: str,
    samples: int,
    images: Pairs,
    labels: Pairs,
    runs: Mapping[str, tuple[list[float], float]],
    metric: str,
    ignored: int | None = None,
    note: str = "",
) -> Comparison:
    """Count what differs. `runs` has the losses and the score of "own" and "pack"."""
    pictures = [(array(own), array(pack)) for own, pack in images]
    classes = [(array(own), array(pack)) for own, pack in labels]
    return Comparison(
        library,
        version,
        samples,
        values=sum(own.size for own, _ in pictures),
        most_apart=max(float(np.abs(own.astype(np.float64) - pack).max()) for own, pack in pictures),
        labels=sum(own.size for own, _ in classes),
        labels_apart=sum(int((own != pack).sum()) for own, pack in classes),
        ignored=sum(int((own == ignored).sum()) for own, _ in classes),
        losses={side: losses for side, (losses, _) in runs.items()},
        metric=metric,
        scores={side: score for side, (_, score) in runs.items()},
        note=note,
    )


def both_alone_and_with_workers(epoch: Callable[[str, int], Epoch]) -> dict[str, Epoch]:
    """Return an epoch of "own" and of "pack", each read in this process and by two workers."""
    sides = [(side, workers) for side in ("own", "pack") for workers in (0, 2)]
    return {f"{side}, {workers} workers" if workers else side: epoch(side, workers) for side, workers in sides}


def report(compare: Callable[[Path], Comparison], words: str | None) -> None:
    """Run a comparison in a folder of its own, and print it as one line of JSON, the last one of stdout."""
    options = parser(words)
    options.add_argument("--folder", type=Path, help="an empty folder for raw files, pack and runs, which is kept")
    folder = options.parse_args().folder
    with tempfile.TemporaryDirectory() as temporary:
        found = compare(folder or Path(temporary))
    print(json.dumps(asdict(found)))
