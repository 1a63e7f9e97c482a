"""Train a small U-Net on raw files and on the pack built from them: compare losses and the time of an epoch.

    tools/run train_demo [RAW] --out FOLDER [-- OPTIONS OF packer build]

Without RAW it makes street scenes of 960x720. The U-Net is trained on the raw files (a stock DataLoader with the best
number of workers) and on the pack (`loader`), with the same seeds, order and augmentation, epoch by epoch in turns, for
each --width. Exits 1 if any batch or loss differs.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentTypeError, Namespace
from collections.abc import Sequence
from functools import partial
from pathlib import Path

# Threads of torch that spin while they wait slow down the workers that they wait for.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
import torch
from program import parser
from scenes.camera import make_varied_streets

from train_demo.comparison import compare
from train_demo.decode_cost import decode_cost
from train_demo.model import MULTIPLE
from train_demo.packed import pack
from train_demo.pipelines import Setup
from train_demo.plot import draw
from train_demo.report import decoded_text, document, header, lines

TOLERANCE = {"cpu": 0.0, "cuda": 2**-8}
"""The largest difference of losses. Kernels of a GPU may add in any order, so there it is a step of bfloat16."""
WIDTHS = {"cpu": (8, 32), "cuda": (32, 512)}
"""The channels of a light model, which waits for data, and of a heavy one."""


def main() -> None:
    words = sys.argv[1:]
    cut = words.index("--") if "--" in words else len(words)
    chosen = _arguments(words[:cut])
    device = torch.device(chosen.device if chosen.device != "auto" else "cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.deterministic = True
    raw = chosen.raw or chosen.out / "raw"
    if chosen.raw is None:
        make_varied_streets(raw, chosen.pictures)
    packed = pack(raw, chosen.out / "pack", "{}x{}".format(*chosen.size), words[cut + 1 :], chosen.split)
    setup = Setup(packed, device, chosen.batch, chosen.seed)
    decoded = decode_cost(packed)
    heading = header(setup, chosen.epochs)
    comparisons = [
        compare(setup, width, chosen.epochs, chosen.workers) for width in chosen.width or WIDTHS[device.type]
    ]
    if chosen.json:
        print(json.dumps({**heading, "decoding_ms": vars(decoded), "duels": document(comparisons)}, indent=1))
    else:
        print("\n".join([*heading.values(), decoded_text(decoded), "", *lines(comparisons)]))
    if not draw(chosen.plot or chosen.out, comparisons, f"{heading['data']}; {heading['machine']}"):
        print("no picture: pip install matplotlib", file=sys.stderr)
    different = [comparison for comparison in comparisons if comparison.difference > TOLERANCE[device.type]]
    for comparison in different:
        print(
            f"width {comparison.width}: losses differ by {comparison.difference:g}, so it is not the same training",
            file=sys.stderr,
        )
    sys.exit(bool(different))


def _arguments(words: Sequence[str]) -> Namespace:
    options = parser(__doc__)
    cores = len(os.sched_getaffinity(0))
    tried = sorted({0, 1, cores, *(1 << power for power in range(cores.bit_length()))})
    option = options.add_argument
    option("raw", type=Path, nargs="?", metavar="RAW", help="a folder of pairs (default: scenes that the demo makes)")
    option(
        "--out",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="scenes, pack and chart; kept for the next run",
    )
    option("--device", choices=("auto", "cpu", "cuda"), default="auto")
    option("--epochs", type=_whole, default=3)
    option("--batch", type=_whole, default=8)
    option("--size", type=_size, default=(240, 320), metavar="HxW", help="size of the rows (default: 240x320)")
    option("--width", type=_whole, nargs="+", help=f"channels of each U-Net (default: {WIDTHS})")
    option(
        "--workers",
        type=partial(_whole, least=0),
        nargs="+",
        default=tried,
        help="numbers of workers to try for raw files (default: up to all cores)",
    )
    option("--pictures", type=_whole, default=240, help="scenes to make (default: 240)")
    option("--split", help="the split to train on (default: the one with most rows)")
    option("--seed", type=int, default=7)
    option("--json", action="store_true", help="print everything as JSON, with every loss")
    option("--plot", type=Path, metavar="FOLDER", help="folder of train_demo.png and .svg (default: --out)")
    return options.parse_args(words)


def _whole(text: str, least: int = 1) -> int:
    if not text.isdigit() or int(text) < least:
        raise ArgumentTypeError(f"{text!r}: expected a whole number, {least} or more")
    return int(text)


def _size(text: str) -> tuple[int, int]:
    height, _, width = text.partition("x")
    if not (height.isdigit() and width.isdigit()) or int(height) % MULTIPLE or int(width) % MULTIPLE:
        raise ArgumentTypeError(f"{text!r}: expected HEIGHTxWIDTH, both divisible by {MULTIPLE}")
    return int(height), int(width)
