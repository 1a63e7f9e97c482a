"""JPEG files decoded in strips by libvips, next to our decoder: the same pixels, the same refusals, how much memory?

    ENV/bin/python tools/run bench.jpeg_strips PHOTOGRAPHS [--damaged 1500] [--side 20000]

ENV has the packer and `pyvips[binary]`. PHOTOGRAPHS is a folder. Files are also made, of several qualities and
samplings, baseline and progressive. One of them is damaged in many ways: cut short, with another bit, without some
bytes. Memory is that of one process which decodes a large picture, without pages of files.
"""

from __future__ import annotations

import io
import itertools
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

import cv2
import numpy as np
import simplejpeg
from PIL import Image
from program import parser
from scenes.street import Pixels

LARGE = """
import sys, threading, time
way, path, most, ended = sys.argv[1], sys.argv[2], 0, False
def memory():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon")) >> 10
def watch():
    global most
    while not ended:
        most = max(most, memory())
        time.sleep(0.01)
threading.Thread(target=watch, daemon=True).start()
if way == "libvips":
    import pyvips
    image = pyvips.Image.new_from_file(path, access="sequential", fail_on="warning", unlimited=True)
    region = pyvips.Region.new(image)
    for top in range(0, image.height, 256):
        region.fetch(0, top, image.width, min(256, image.height - top))
else:
    import simplejpeg
    simplejpeg.decode_jpeg(open(path, "rb").read(), strict=True)
print(most)
"""


def main() -> None:
    asked = parser(__doc__)
    asked.add_argument("photographs", type=Path)
    asked.add_argument("--damaged", type=int, default=1500)
    asked.add_argument("--side", type=int, default=20000)
    options = asked.parse_args()
    files = [path.read_bytes() for path in sorted(options.photographs.rglob("*.jp*g"))]
    for name, every in (("photographs", files), ("made", list(_made()))):
        pairs = [(_ours(data), _theirs(data)) for data in every]
        both = [(ours, theirs) for ours, theirs in pairs if ours is not None and theirs is not None]
        same = sum(np.array_equal(ours, theirs) for ours, theirs in both)
        print(f"{name}: {same} of {len(both)} have the same pixels, {len(pairs) - len(both)} are refused")
    whole = _jpeg(_scene(), quality=90)
    damaged = [data for data in _damaged(whole, options.damaged) if _ours(data) is None]
    print(f"damaged: ours refuses {len(damaged)}, libvips takes {sum(_theirs(data) is not None for data in damaged)}")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("baseline", "progressive"):
            path = Path(folder) / f"{name}.jpg"
            _large(path, options.side, name == "progressive")
            for way in ("simplejpeg", "libvips"):
                command = [sys.executable, "-c", LARGE, way, str(path)]
                memory = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                print(f"{name}, {options.side}x{options.side}: {way} takes {memory:,} MiB")


def _ours(data: bytes) -> Pixels | None:
    try:
        space = "GRAY" if simplejpeg.decode_jpeg_header(data)[2].lower() == "gray" else "RGB"
        pixels: Pixels = simplejpeg.decode_jpeg(data, space, strict=True)
    except ValueError:
        return None
    return pixels


def _theirs(data: bytes) -> Pixels | None:
    import pyvips

    try:
        image = pyvips.Image.new_from_buffer(data, "", access="sequential", fail_on="warning")
        pixels: Pixels = image.numpy()
    except pyvips.Error:
        return None
    return pixels if pixels.ndim == 3 else pixels[..., None]


def _scene() -> Pixels:
    noise = np.random.default_rng(0).integers(0, 256, (517, 733, 3), np.uint8)
    return np.asarray(cv2.GaussianBlur(noise, (0, 0), 2), np.uint8)


def _jpeg(pixels: Pixels, **options: int) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", **options)
    return file.getvalue()


def _made() -> Iterator[bytes]:
    """Yield files of several qualities and samplings, baseline and progressive, with and without restart markers."""
    scene = _scene()
    for quality, sampling, progressive, markers in itertools.product((30, 75, 90, 96, 100), (0, 1, 2), (0, 1), (0, 3)):
        restarts = {"restart_marker_rows": markers} if markers else {}
        yield _jpeg(scene, quality=quality, subsampling=sampling, progressive=progressive, **restarts)
    for quality in (50, 95):
        yield _jpeg(scene[..., 0], quality=quality)
        for name in ("411", "420", "422", "440", "444"):
            factor = getattr(cv2, f"IMWRITE_JPEG_SAMPLING_FACTOR_{name}")
            yield cv2.imencode(".jpg", scene, [1, quality, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, factor])[1].tobytes()


def _damaged(data: bytes, count: int) -> Iterator[bytes]:
    dice = Random(0)
    for _ in range(count):
        at, kind = dice.randrange(600, len(data) - 50), dice.randrange(3)
        if kind == 0:
            yield data[:at]
        elif kind == 1:
            yield data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :]
        else:
            yield data[:at] + data[at + dice.randrange(1, 40) :]


def _large(path: Path, side: int, progressive: bool) -> None:
    """Write a large picture: the scene again and again."""
    import pyvips

    scene = pyvips.Image.new_from_array(_scene()).copy(interpretation="srgb")
    tiled = scene.replicate(side // scene.width + 1, side // scene.height + 1).crop(0, 0, side, side)
    tiled.jpegsave(str(path), Q=90, interlace=progressive)


if __name__ == "__main__":
    main()
