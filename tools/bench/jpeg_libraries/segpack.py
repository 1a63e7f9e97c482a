"""Our loader over packs in npy shards: pictures raw, as JPEG files, and as tiles that are JPEG files."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from scenes.mosaics import SIZE, Mosaics

from bench.jpeg_libraries import CROP, QUALITY
from bench.libraries import BATCH, Loaders, Tensors
from readers import open_dataset

PACKS = {
    "raw": (),
    "jpeg": (f"image=jpeg:{QUALITY}", "label=zstd"),
    "tiles-jpeg": (f"image=tiles-jpeg:256:{QUALITY}", "label=zstd"),
    "tiles-jpeg, tiles-zstd": (f"image=tiles-jpeg:256:{QUALITY}", "label=tiles-zstd:256"),
}


def write(rows: Mosaics, out: Path) -> None:
    for name, encodings in PACKS.items():
        command = [sys.executable, "-m", "packer", "build", "--quiet", "--labels", "index", "--classes", "256"]
        encode = [word for each in encodings for word in ("--encode", each)]
        subprocess.run([*command, "--size", "x".join(map(str, SIZE)), *encode, rows.raw, out / name], check=True)


def loaders(out: Path) -> Loaders:
    return {name: loaded(out / name) for name in PACKS}


def loaded(pack: Path) -> Callable[[], Iterable[Tensors]]:
    loader = open_dataset(pack, "all").loader(BATCH, shuffle=True, crop=(CROP, CROP))
    return lambda: loader
