"""Time epochs of a trainer's own loader and of our bridge in turns: A B … B A, with the trainer's own augmentation.

    tools/run trainers.speed ultralytics_semantic --pairs 240 --rounds 4

    tools/run trainers.speed segmentation_models_pytorch --model unet --side 256 --pairs 96 --skip 24 --rounds 3

The pictures are drawn street scenes of 960x720, JPEG with PNG labels. Without --model nothing is trained: this is the
rate at which a model could be fed. With one, each batch goes forward and backward through it, on the same cores. Each
side delivers an epoch unmeasured first, and its rows are counted. The clock starts behind the samples that workers may
have read ahead.
"""

from __future__ import annotations

import importlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import program
import torch
from bench.cpu import cpu_seconds
from bench.machine import machine
from bench.rounds import LEAST
from program import parser
from scenes.camera import make_linked_streets
from scenes.pictures import CLASS_TABLE
from tables import markdown

from trainers.comparison import Epoch

Step = Callable[[Any], None]


def draw_scenes(folder: Path, pairs: int) -> None:
    """Draw the scenes that programs find in place of the samples."""
    for split, count in (("train", pairs), ("val", 4)):
        make_linked_streets(folder / split, count, colours=True)
        (folder / split / CLASS_TABLE).rename(folder / CLASS_TABLE)
    program.SAMPLES = folder
    from scenes import numbered  # takes the scenes when it is imported

    numbered.SCENES, numbered.STEP = {"train": pairs, "val": 4}, 1


def rows_of(batch: Any) -> int:
    """Return the number of samples in a batch: the length of its first part."""
    parts = list(batch.values()) if isinstance(batch, dict) else list(batch)
    return len(parts[0])


def images_of(batch: Any) -> torch.Tensor:
    """Return the pictures of a batch: the first tensor of four dimensions."""
    parts = list(batch.values()) if isinstance(batch, dict) else list(batch)
    for part in parts:
        if isinstance(part, (list, tuple)) and part and isinstance(part[0], torch.Tensor):
            part = torch.stack(list(part))
        if isinstance(part, torch.Tensor) and part.ndim == 4:
            return part.float()
    raise SystemExit("no part of a batch is a tensor of pictures")


def step_of(name: str) -> Step:
    """Return a step of training: nothing, three small convolutions, YOLO26n-sem, or a Unet with ResNet-18."""
    if name == "none":
        return lambda batch: None
    if name == "light":
        layers = [torch.nn.Conv2d(3, 8, 3, 4), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 3), torch.nn.Conv2d(8, 8, 1)]
        model: torch.nn.Module = torch.nn.Sequential(*layers)
    elif name == "yolo":
        from ultralytics import YOLO

        model = YOLO("yolo26n-sem.yaml").model.train()
    else:
        import segmentation_models_pytorch as smp

        model = smp.Unet("resnet18", encoder_weights=None, classes=8)
    optimizer = torch.optim.AdamW(model.parameters(), 0.001)

    def step(batch: Any) -> None:
        found = model(images_of(batch) / 255)
        loss = (found[0] if isinstance(found, tuple) else found).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def settle() -> None:
    """Wait until workers that read ahead for the next epoch have done so: they would slow the next side down."""
    before = -1.0
    while (now := cpu_seconds()) - before > 2 * LEAST:
        before = now
        time.sleep(0.5)


def timed(epoch: Epoch, skip: int, step: Step) -> tuple[int, float, float]:
    """Return the samples, the seconds and the CPU seconds of an epoch, without its first `skip` samples: workers that
    live longer than an epoch have read these ahead."""
    settle()
    rows, begun, cpu, start = 0, 0, cpu_seconds(), time.perf_counter()
    for batch in epoch():
        step(batch)
        rows += rows_of(batch)
        if not begun and rows >= skip:
            begun, cpu, start = rows, cpu_seconds(), time.perf_counter()
    return rows - begun, time.perf_counter() - start, cpu_seconds() - cpu


def measure(sides: dict[str, Epoch], rounds: int, skip: int, step: Step) -> list[list[str]]:
    """Return a row of the table for each side, after all of them took turns."""
    counts = {name: timed(epoch, skip, step)[0] for name, epoch in sides.items()}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    for number in range(rounds):
        order = list(sides) if number % 2 == 0 else list(sides)[::-1]
        for name in order:
            rows, seconds, cpu = timed(sides[name], skip, step)
            if rows != counts[name]:
                raise SystemExit(f"{name}: {rows} samples, and {counts[name]} in the first epoch")
            found[name].append((rows / seconds, 1000 * cpu / rows))
            print(f"{name}: {rows / seconds:,.1f} samples/s", file=sys.stderr)
    rates = {name: statistics.median(rate for rate, _ in paces) for name, paces in found.items()}
    best = max(rate for name, rate in rates.items() if name.startswith("own"))
    return [
        [
            name,
            str(counts[name]),
            f"{rates[name]:,.1f}",
            f"{min(rate for rate, _ in paces):,.1f} to {max(rate for rate, _ in paces):,.1f}",
            f"{rates[name] / best:.2f}",
            f"{statistics.median(cpu for _, cpu in paces):.1f}",
        ]
        for name, paces in found.items()
    ]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("name", help="a program of this folder")
    options.add_argument("--pairs", type=int, default=240, help="training pairs")
    options.add_argument("--skip", type=int, default=72, help="samples of an epoch before the clock starts")
    options.add_argument("--rounds", type=int, default=4, help="rounds after the first epoch of each")
    options.add_argument("--side", type=int, nargs=1, default=[], help="pixels of a window; by default the usual")
    options.add_argument(
        "--model", choices=("none", "light", "yolo", "unet"), default="none", help="what each batch goes through"
    )
    chosen = options.parse_args()
    head = ["side", "samples", "samples/s", "range", "of the best own", "CPU ms a sample"]
    with tempfile.TemporaryDirectory() as temporary:
        draw_scenes(Path(temporary) / "scenes", chosen.pairs)
        module = importlib.import_module(f"trainers.{chosen.name}")  # it, too
        getattr(module, "enlarge", lambda *_: None)(*chosen.side)
        sides = module.loaders(Path(temporary) / "run")
        print(
            machine(),
            *markdown([head, *measure(sides, chosen.rounds, chosen.skip, step_of(chosen.model))], padded=False),
            sep="\n",
        )


if __name__ == "__main__":
    main()
