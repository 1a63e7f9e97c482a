"""A second `packer push` after 1 % of the pairs changed: the share of the shards and of the bytes that is sent.

    tools/run bench.pushing [--pairs 25600] [--rows 128] [--hub]

The pictures are 16x16. The pairs that change are neighbours in key order, or drawn at random. Each push goes to a
folder, with the objects that a bucket would get; with --hub to a small Hugging Face Hub on loopback, without Xet, and
the last column is what it received, all requests together.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from drills.hub_server import TOKEN, HubServer
from program import parser
from scenes.noise import write_noise
from tables import aligned

from packer import build_pack
from packer.packs.push import push_pack

SIZE, CLASSES = (16, 16), 4
ROW_BYTES = SIZE[0] * SIZE[1] * 4


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--pairs", type=int, default=25_600)
    options.add_argument("--rows", type=int, default=128, help="rows of a shard, about")
    options.add_argument("--hub", action="store_true", help="push to a Hub on loopback")
    chosen = options.parse_args()
    hub = made_hub() if chosen.hub else None
    names = ["", "shards", "sent", "share", "bytes", *(["received"] if hub else [])]
    with tempfile.TemporaryDirectory() as folder:
        print("", *aligned([names, *rows(Path(folder), chosen.pairs, chosen.rows, hub)]), sep="\n")


def made_hub() -> HubServer:
    """Start a Hub with an empty repository, which huggingface_hub finds by the environment."""
    hub = HubServer()
    hub.make("me/pack")
    os.environ |= {"HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN, "HF_HUB_DISABLE_XET": "1"}
    return hub


def rows(folder: Path, pairs: int, shard_rows: int, hub: HubServer | None) -> Iterator[list[str]]:
    """Yield a row of the table for each push."""
    dice = np.random.default_rng(1)
    changed = {
        "first push": np.arange(pairs),
        "1 % changed, neighbours": pairs // 3 + np.arange(pairs // 100),
        "1 % changed, at random": dice.choice(pairs, pairs // 100, replace=False),
    }
    for night, (name, numbers) in enumerate(changed.items()):
        for number in numbers.tolist():
            write_noise(folder / "raw", f"{number:07}", SIZE, CLASSES, (night, number))
        shard_size = f"{shard_rows * ROW_BYTES}B"
        build_pack(folder / "raw", folder / "out", labels="index", classes=str(CLASSES), shard_size=shard_size)
        before = hub.received if hub else 0
        pushed = push_pack(folder / "out", "hf://datasets/me/pack" if hub else folder / "there")
        whole = pushed.manifest
        yield [
            name,
            str(whole.shards),
            str(pushed.shards),
            f"{pushed.shards / whole.shards:.1%}",
            f"{pushed.bytes / whole.bytes:.1%}",
            *([f"{(hub.received - before) / whole.bytes:.1%}"] if hub else []),
        ]
