"""The same training on raw files and on the pack that is built from them: the same losses, and what an epoch takes.

    PYTHONPATH=tools python -m train_demo [RAW] --out FOLDER [-- OPTIONS OF packer build]

Without RAW it makes 960x720 street scenes of its own. A small U-Net is trained on the raw files (a stock DataLoader, of
the numbers of workers that are tried the best) and on the pack (`loader`), with the same seeds, order and augmentation,
epoch by epoch in turns, for each --width. All batches and all losses must be the same, or the demo ends with 1.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

# Threads of torch that spin while they wait take the cores from the workers that they wait for.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
import torch

from train_demo.contenders import Setting
from train_demo.duel import fight
from train_demo.model import MULTIPLE
from train_demo.packed import pack
from train_demo.picture import draw
from train_demo.plain import decoding
from train_demo.scenes import make_scenes
from train_demo.table import decoded_text, document, head, lines

TOLERANCE = {"cpu": 0.0, "cuda": 2**-8}
"""The largest difference of losses: none, and on a GPU, whose kernels may add in any order, a step of bfloat16."""
WIDTHS = {"cpu": (8, 32), "cuda": (32, 512)}
"""The channels of a light model, which is fed slower than it learns, and of a heavy one."""


def main() -> None:
    given = sys.argv[1:]
    cut = given.index("--") if "--" in given else len(given)
    asked = _arguments(given[:cut])
    device = torch.device(asked.device if asked.device != "auto" else "cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.deterministic = True
    raw = asked.raw or asked.out / "raw"
    if asked.raw is None:
        make_scenes(raw, asked.pictures)
    packed = pack(raw, asked.out / "pack", "{}x{}".format(*asked.size), given[cut + 1 :], asked.split)
    setting = Setting(packed, device, asked.batch, asked.seed)
    decoded = decoding(packed)
    told = head(setting, asked.epochs)
    duels = [fight(setting, width, asked.epochs, asked.workers) for width in asked.width or WIDTHS[device.type]]
    if asked.json:
        print(json.dumps({**told, "decoding_ms": vars(decoded), "duels": document(duels)}, indent=1))
    else:
        print("\n".join([*told.values(), decoded_text(decoded), "", *lines(duels)]))
    if not draw(asked.plot or asked.out, duels, f"{told['data']}; {told['machine']}"):
        print("no picture: pip install matplotlib", file=sys.stderr)
    apart = [duel for duel in duels if duel.difference > TOLERANCE[device.type]]
    for duel in apart:
        print(f"width {duel.width}: losses differ by {duel.difference:g}: not the same training", file=sys.stderr)
    sys.exit(bool(apart))


def _arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m train_demo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    cores = len(os.sched_getaffinity(0))
    tried = sorted({0, 1, cores, *(1 << power for power in range(cores.bit_length()))})
    more = parser.add_argument
    more("raw", type=Path, nargs="?", metavar="RAW", help="A folder of pairs. Default: scenes that the demo makes.")
    more("--out", type=Path, required=True, help="Where scenes, pack and picture go, and are left for the next time.")
    more("--device", choices=("auto", "cpu", "cuda"), default="auto")
    more("--epochs", type=_whole, default=3)
    more("--batch", type=_whole, default=8)
    more("--size", type=_size, default=(240, 320), metavar="HxW", help="Of the rows. Default: 240x320.")
    more("--width", type=_whole, nargs="+", help=f"Channels of each U-Net. Default: {WIDTHS}.")
    more(
        "--workers",
        type=partial(_whole, least=0),
        nargs="+",
        default=tried,
        help="To be tried for raw files. Default: up to all cores.",
    )
    more("--pictures", type=_whole, default=240, help="Scenes to make. Default: 240.")
    more("--split", help="What is trained on. Default: the split with most rows.")
    more("--seed", type=int, default=7)
    more("--json", action="store_true", help="Everything on stdout as JSON, with every loss.")
    more("--plot", type=Path, help="Where train_demo.png and .svg go. Default: --out.")
    return parser.parse_args(given)


def _whole(text: str, least: int = 1) -> int:
    if not text.isdigit() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number from {least} on")
    return int(text)


def _size(text: str) -> tuple[int, int]:
    height, _, width = text.partition("x")
    if not (height.isdigit() and width.isdigit()) or int(height) % MULTIPLE or int(width) % MULTIPLE:
        raise argparse.ArgumentTypeError(f"{text!r}: expected HEIGHTxWIDTH, both divisible by {MULTIPLE}")
    return int(height), int(width)


if __name__ == "__main__":
    main()
