"""Facts that a program of this folder finds: the own loader of a library, and our bridge."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from program import parser


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


def report(compare: Callable[[Path], Comparison], words: str | None) -> None:
    """Run a comparison in a folder of its own, and print it as one line of JSON, the last one of stdout."""
    options = parser(words)
    options.add_argument("--folder", type=Path, help="an empty folder for raw files, pack and runs, which is kept")
    folder = options.parse_args().folder
    with tempfile.TemporaryDirectory() as temporary:
        found = compare(folder or Path(temporary))
    print(json.dumps(asdict(found)))
