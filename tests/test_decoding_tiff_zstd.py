"""TIFF compressed by Zstandard: the pixels that GDAL writes, with each predictor; damaged frames are refused."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard

from packer.decoding.bands import Bands, read_bands
from packer.decoding.rules import ImageRules
from packer.decoding.tiff.compressions import UNPACKERS, ZSTD
from packer.decoding.tiff.directory import Directory
from packer.decoding.tiff.shape import TiffShape
from packer.errors import BadPair

pytestmark = pytest.mark.filterwarnings("ignore:Dataset has no geotransform")
rasterio: Any = pytest.importorskip("rasterio")


@pytest.mark.parametrize("interleave", ["pixel", "band"])
@pytest.mark.parametrize("tiled", [False, True])
@pytest.mark.parametrize(
    ("dtype", "predictor"), [("uint8", 1), ("uint8", 2), ("uint16", 2), ("int16", 2), ("float32", 1), ("float32", 3)]
)
def test_pixels_are_those_that_gdal_wrote(
    dtype: str, predictor: int, tiled: bool, interleave: str, tmp_path: Path
) -> None:
    steps = np.random.default_rng(3).integers(-3, 4, (3, 90, 333))
    numbers = np.cumsum(steps, 2).astype(dtype)
    options = {"compress": "zstd", "predictor": predictor, "tiled": tiled, "interleave": interleave, "blockysize": 64}
    shape = {"count": 3, "height": 90, "width": 333, "dtype": dtype, "blockxsize": 64 if tiled else None}
    with rasterio.open(tmp_path / "a.tif", "w", driver="GTiff", **shape, **options) as file:
        file.write(numbers)
    pixels = read_bands((tmp_path / "a.tif").read_bytes(), Bands("all"), ImageRules(bands="all"))
    np.testing.assert_array_equal(pixels.transpose(2, 0, 1), numbers)


def test_a_damaged_frame_is_refused() -> None:
    unpack, shape = UNPACKERS[ZSTD](Directory("<", {}, {})), TiffShape(10, 10, 1, 8, 10)
    frame = zstandard.ZstdCompressor(write_checksum=True).compress(bytes(100))
    assert unpack(frame, shape) == bytes(100)
    assert len(unpack(zstandard.compress(bytes(1 << 20)), shape)) == 100
    assert len(unpack(frame[: len(frame) // 2], shape)) < 100
    for damaged in (b"", b"no frame", frame[:5] + b"\xff" + frame[6:], b"\x28\xb5\x2f\xfd\x00\xf8" + bytes(20)):
        with suppress(BadPair):
            assert len(unpack(damaged, shape)) < 100
