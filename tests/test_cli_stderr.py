"""Only our own lines reach stderr and stdout, whatever the libraries that decode print."""

from __future__ import annotations

import zlib
from pathlib import Path

import cv2
import numpy as np
from conftest import HANG, make_raw, python
from handmade import chunk, encoded, png

IMAGE = np.random.default_rng(0).integers(0, 255, (24, 36, 3), dtype=np.uint8)
PLAIN = png(IMAGE.reshape(24, -1), 8, 2)
RASTER = b"".join(b"\0" + row.tobytes() for row in IMAGE.reshape(24, -1))
JPEG = encoded(".jpg", cv2.GaussianBlur(IMAGE, (0, 0), 3))


def with_stream(stream: bytes) -> bytes:
    """Return the PNG with another stream of pixels, whose checksum is right."""
    return PLAIN[:33] + chunk(b"IDAT", stream) + PLAIN[-12:]


GOOD = {
    "00 gamma, profile and time": PLAIN[:33]
    + chunk(b"iCCP", b"x\0\0" + zlib.compress(b"no profile"))
    + chunk(b"gAMA", b"")
    + PLAIN[33:],
}
BAD = {
    "10 too few rows": with_stream(zlib.compress(RASTER[:-200])),
    "11 unknown filter": with_stream(zlib.compress(b"\x09" + RASTER[1:])),
    "12 not a stream": with_stream(b"no stream"),
    "13 half a JPEG": JPEG[: len(JPEG) // 2] + b"\xff\xd9",
    "14 bytes in a JPEG": JPEG[:-30] + b"\xff\x00\xff\xd0" + JPEG[-30:],
    "16 unpacks to more": with_stream(zlib.compress(RASTER + bytes(50 << 20))),
    "17 more behind the stream": with_stream(zlib.compress(RASTER) + bytes(99)),
    "15 half a WebP": (lambda data: data[:60] + bytes(len(data) - 60))(encoded(".webp", IMAGE)),
}


def test_no_library_writes_to_our_stderr_or_stdout(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 1}).path
    (label,) = (raw / "train/masks").iterdir()
    for name, data in {**GOOD, **BAD}.items():
        (raw / f"train/images/{name}.png").write_bytes(data)
        (raw / f"train/masks/{name}.png").write_bytes(label.read_bytes())
    for name, data in BAD.items():  # a damaged label is decoded in the sample, too
        (raw / f"train/images/{name} label.png").write_bytes(PLAIN)
        (raw / f"train/masks/{name} label.png").write_bytes(data)
    options = ["--on-bad", "skip", "--quiet", "--workers", "2"]
    done = python("-m", "packer", "build", *options, raw, tmp_path / "out", timeout=HANG)
    assert done.stdout.count("\n") == 1
    lines = done.stderr.splitlines()
    assert [line for line in lines if not line.startswith(("left out train/1", "finding   "))] == []
    assert sum(line.startswith("left out") for line in lines) == 2 * len(BAD)
