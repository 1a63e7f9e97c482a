"""Raw files through TorchCodec, which took over the decoders of torchvision.io."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torchcodec.decoders import decode_png

from bench.libraries import Loaders
from bench.libraries.raw import decoded, link

write = link


def loaders(out: Path) -> Loaders:
    return decoded(out, read)


def read(path: Path) -> Any:
    pixels = decode_png(path, mode="RGB" if path.parent.name == "images" else "UNCHANGED").numpy()
    return pixels if len(pixels) > 1 else pixels[0]
