"""WebDataset: tar files with JPEG files and labels, read from front to back, shuffled in a buffer.

Its docs: decode and batch in the workers, `WebLoader` with `batch_size=None`; `decode("rgb8")` decodes with Pillow.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import simplejpeg
import webdataset as wds
from scenes.mosaics import SIZE, Mosaics

from bench.jpeg_libraries import QUALITY, collated
from bench.libraries import BATCH, WORKERS, Loaders, forked

BUFFER = 32


def write(rows: Mosaics, out: Path) -> None:
    out.mkdir(parents=True)
    with wds.ShardWriter(str(out / "%05d.tar"), maxcount=len(rows) // (2 * WORKERS), verbose=0) as writer:
        for row in range(len(rows)):
            image, label = rows[row]
            jpeg = simplejpeg.encode_jpeg(image, QUALITY, "RGB", "444")
            writer.write({"__key__": f"{row:05}", "jpg": jpeg, "label": label.tobytes()})


def loaders(out: Path) -> Loaders:
    shards = [str(path) for path in sorted(out.glob("*.tar"))]
    data = wds.WebDataset(shards, shardshuffle=len(shards)).shuffle(BUFFER).decode("rgb8").map(pair)
    batches = data.batched(BATCH, collation_fn=collated)
    loader = wds.WebLoader(batches, batch_size=None, **forked(WORKERS))
    return {f"{WORKERS} workers": lambda: loader}


def pair(sample: dict[str, Any]) -> tuple[Any, Any]:
    return sample["jpg"], np.frombuffer(sample["label"], np.uint8).reshape(SIZE)
