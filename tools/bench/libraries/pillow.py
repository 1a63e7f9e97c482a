"""Raw files through Pillow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from bench.libraries import Loaders
from bench.libraries.raw import decoded, link

write = link


def loaders(out: Path) -> Loaders:
    return decoded(out, read)


def read(path: Path) -> Any:
    with Image.open(path) as picture:
        return np.array(picture)
