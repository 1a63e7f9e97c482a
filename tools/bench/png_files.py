"""CPU time to decode PNGs, and to store labels, with the kernels and without, in turn.

    tools/run bench.png_files [--rounds 40] [--size 960x720]

Labels become a row of 512x512 class numbers, with the pixels of each class counted. Each figure is the least of all
rounds. Without the kernels is as with SEGPACK_KERNELS=0.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from io import BytesIO
from unittest import mock

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from program import SAMPLES, parser
from tables import line

from packer.decoding import plain_png
from packer.decoding.decode import decode_image
from packer.decoding.rules import ImageRules
from packer.pixels import class_picture, stored_label
from packer.pixels.label_codec import LabelCodec
from packer.pixels.resize import Geometry
from readers.contract.classes import ClassTable, SegClass

GEOMETRY = Geometry((512, 512))
WIDTHS = (-34, 10, 10, 8)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=40)
    options.add_argument("--size", default="960x720", help="width and height of the pictures")
    chosen = options.parse_args()
    width, height = map(int, chosen.size.split("x"))
    print(line(("ms", "without", "kernels", "times"), WIDTHS))
    for name, work in cases(width, height):
        least = {True: np.inf, False: np.inf}
        for _ in range(chosen.rounds):
            for kernels in (False, True):
                with nullcontext() if kernels else without_kernels():
                    start = time.process_time()
                    work()
                    least[kernels] = min(least[kernels], 1000 * (time.process_time() - start))
        without, with_them = least[False], least[True]
        print(line((name, f"{without:.2f}", f"{with_them:.2f}", f"{without / with_them:.1f}"), WIDTHS))


def cases(width: int, height: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the name of each kind of file, and what is done with it."""
    photo, label = pictures(width, height)
    drawn = np.random.default_rng(0).integers(0, 256, (256, 3), np.uint8)
    numbers = range(int(label.max()) + 1)
    by_value = LabelCodec(ClassTable(tuple(SegClass(f"{n}", values=(n,)) for n in numbers)))
    by_colour = LabelCodec(ClassTable(tuple(SegClass(f"{n}", colours=(tuple(drawn[n].tolist()),)) for n in numbers)))
    palette = Image.fromarray(label, "P")
    palette.putpalette(drawn.tobytes())

    def stored(codec: LabelCodec, data: bytes) -> Callable[[], object]:
        out = np.empty((512, 512), np.uint8)
        return lambda: stored_label.store(codec.read(data), GEOMETRY, None, len(numbers), out)

    def image(data: bytes) -> Callable[[], object]:
        return lambda: decode_image(data, ImageRules())

    yield "numbers, by OpenCV", stored(by_value, by_opencv(label))
    yield "numbers, by Pillow", stored(by_value, by_pillow(Image.fromarray(label)))
    yield "palette, as numbers", stored(by_value, by_pillow(palette))
    yield "palette, as colours", stored(by_colour, by_pillow(palette))
    yield "colours, by OpenCV", stored(by_colour, by_opencv(drawn[label][..., ::-1]))
    yield "colours, by Pillow", stored(by_colour, by_pillow(Image.fromarray(drawn[label])))
    yield "photograph, by OpenCV", image(by_opencv(photo[..., ::-1]))
    yield "photograph, by Pillow", image(by_pillow(Image.fromarray(photo)))


def pictures(width: int, height: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return a scene with the noise of a camera, and its labels."""
    folder = SAMPLES / "train"
    scene = cv2.imread(str(min((folder / "images").iterdir())), cv2.IMREAD_COLOR_RGB)
    label = cv2.imread(str(min((folder / "labels").iterdir())), cv2.IMREAD_GRAYSCALE)
    assert scene is not None
    assert label is not None
    large = cv2.resize(scene, (width, height), interpolation=cv2.INTER_CUBIC)
    noise = np.random.default_rng(0).normal(0, 4, large.shape)
    _, numbers = np.unique(cv2.resize(label, (width, height), interpolation=cv2.INTER_NEAREST), return_inverse=True)
    return np.clip(large + noise, 0, 255).astype(np.uint8), numbers.reshape(height, width).astype(np.uint8)


def by_opencv(pixels: NDArray[np.uint8]) -> bytes:
    ok, data = cv2.imencode(".png", np.ascontiguousarray(pixels))
    assert ok
    return data.tobytes()


def by_pillow(picture: Image.Image) -> bytes:
    file = BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()


@contextmanager
def without_kernels() -> Iterator[None]:
    with (
        mock.patch.object(plain_png, "KERNEL", None),
        mock.patch.object(class_picture, "KERNEL", None),
        mock.patch.object(stored_label, "KERNEL", None),
    ):
        yield
