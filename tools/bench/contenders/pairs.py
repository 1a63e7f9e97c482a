"""The pairs that all contenders read: drawn streets, no two alike, as PNG files and as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from packer.classes.load import read_table
from packer.decoding.decode import decode_image
from packer.decoding.rules import ImageRules
from packer.pairs.find import find_pairs
from packer.pixels.label_codec import LabelCodec

SIDE = 512
DRAWN = Path(__file__).resolve().parents[3] / "data_samples" / "raw"
Pixels = NDArray[np.uint8]


class Rows(Protocol):
    """What a writer takes: pairs by their numbers, as arrays (side,side,3) and (side,side) that are its to keep."""

    @property
    def side(self) -> int:
        """Height and width of all pictures."""

    def __len__(self) -> int: ...

    def __getitem__(self, row: int) -> tuple[Pixels, Pixels]: ...


def parted(rows: int, parts: int) -> list[list[int]]:
    """The numbers of all rows, in so many runs that are about as long, for the workers of a writer."""
    return [part.tolist() for part in np.array_split(np.arange(rows), min(parts, rows))]


@dataclass(frozen=True)
class Pairs:
    """`images` (N,512,512,3) and `labels` (N,512,512), mapped; `raw` is the folder of the same as PNG files."""

    raw: Path
    images: Any
    labels: Any

    @property
    def side(self) -> int:
        return SIDE

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, row: int) -> tuple[Pixels, Pixels]:
        return np.array(self.images[row]), np.array(self.labels[row])


def make_pairs(root: Path, count: int) -> Pairs:
    """Draw them, where that was not done before."""
    arrays = [root / f"{name}_{count}.npy" for name in ("images", "labels")]
    raw = root / f"raw_{count}"
    done = root / f"drawn_{count}"
    if not done.is_file():
        root.mkdir(parents=True, exist_ok=True)
        shape = (count, SIDE, SIDE)
        images = np.lib.format.open_memmap(arrays[0], "w+", np.uint8, (*shape, 3))
        labels = np.lib.format.open_memmap(arrays[1], "w+", np.uint8, shape)
        streets = drawn(count)
        for row in range(count):
            # Streets that were shifted are other pixels for each row, at the cost of a copy.
            image, label = (np.roll(part, 7 * row, axis=1) for part in streets[row % len(streets)])
            images[row], labels[row] = image, label
            write_png(raw / "images" / f"{row:05}.png", image[..., ::-1])
            write_png(raw / "labels" / f"{row:05}.png", label)
        done.touch()
    return Pairs(raw, *(np.load(path, mmap_mode="r") for path in arrays))


def drawn(most: int) -> list[tuple[Pixels, Pixels]]:
    """The sample scenes at 512x512, with the classes' numbers for labels."""
    codec = LabelCodec(read_table(DRAWN / "class_dict.csv"))
    streets = []
    for pair in find_pairs(DRAWN).pairs[:most]:
        image = decode_image((DRAWN / pair.image).read_bytes(), ImageRules())
        label = codec.decode((DRAWN / pair.label).read_bytes()).astype(np.uint8)
        pixels = cv2.resize(image, (SIDE, SIDE), interpolation=cv2.INTER_CUBIC)
        numbers = cv2.resize(label, (SIDE, SIDE), interpolation=cv2.INTER_NEAREST)
        streets.append((np.asarray(pixels, np.uint8), np.asarray(numbers, np.uint8)))
    return streets


def write_png(path: Path, pixels: Pixels) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not cv2.imwrite(str(path), np.ascontiguousarray(pixels)):
        raise OSError(f"{path}: cannot be written")
