"""Public test files of other projects: valid PNGs are exact, corrupt ones are refused, nothing crashes."""

from __future__ import annotations

from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from conftest import opencv_rgb
from numpy.typing import NDArray

from packer.decoding.decode import decode_image, decode_label
from packer.decoding.file_types import read_header
from packer.decoding.rules import ImageRules
from packer.errors import BadPair

pytestmark = pytest.mark.shared

DROP = ImageRules(alpha="drop")
WIDE = ImageRules((0, 65535), "drop")


def verdict(data: bytes) -> str:
    """Return why a file is refused as an image; empty if it is accepted."""
    try:
        decode_image(data, ImageRules((0, 255), "drop"))
    except BadPair as bad:
        return str(bad)
    return ""


def reference(data: bytes) -> NDArray[Any]:
    """Return all channels as OpenCV decodes them, red first, without alpha."""
    pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    assert pixels is not None
    pixels = np.dstack([pixels] * 3) if pixels.ndim == 2 else pixels
    return pixels[..., 2::-1]


def test_the_png_suite_is_exact_and_its_corrupt_files_are_refused(shared_data: Path) -> None:
    paths = sorted((shared_data / "hard/pngsuite/png").glob("*.png"))
    assert len(paths) == 175
    for path in paths:
        data = path.read_bytes()
        if path.name.startswith("x"):
            assert verdict(data), path
            continue
        wide = data[24] == 16
        pixels = decode_image(data, WIDE if wide else DROP)
        found = np.rint(pixels * 65535).astype(np.uint16) if wide else pixels
        assert np.array_equal(found, reference(data)), path


def test_stb_s_pictures_have_the_pixels_that_stb_says(shared_data: Path) -> None:
    suite = shared_data / "hard/stb_pngsuite/tests/pngsuite"
    paths = sorted((suite / "primary").glob("*.png"))
    assert len(paths) == 77
    for path in paths:
        wanted = reference((suite / "primary_check" / path.name).read_bytes())
        assert np.array_equal(decode_image(path.read_bytes(), DROP), wanted), path
    for path in (suite / "corrupt").glob("*.png"):
        assert verdict(path.read_bytes()), path
    for path in (suite / "iphone").glob("*.png"):
        assert "CgBI" in verdict(path.read_bytes()), path


def test_rare_jpegs_are_decoded_right_or_refused_by_name(shared_data: Path) -> None:
    folder = shared_data / "hard/libjpeg_turbo/testimages"
    assert "12 bits" in verdict((folder / "monkey12.jpg").read_bytes())
    for name in ("testimgari.jpg", "testimgint.jpg", "testorig.jpg"):
        data = (folder / name).read_bytes()
        assert np.array_equal(decode_image(data, DROP), opencv_rgb(data)), name


def test_every_other_hard_file_is_right_or_refused(shared_data: Path) -> None:
    refused = {}
    for path in sorted((shared_data / "hard").rglob("*.*")):
        data = path.read_bytes() if path.is_file() else b""
        refused[path.name] = verdict(data)
        for as_index in (True, False):
            with suppress(BadPair):
                assert decode_label(data, as_index, lossy=True).ndim in (2, 3), path
    assert refused["palette.gif"] == "is a GIF, which cannot be packed; convert it to PNG"
    assert "5 bands" in refused["uint16-5channel.tif"]
    for name in ("shira_bird8.bmp", "vgl_6434_0018a.bmp", "vgl_6548_0026a.bmp"):
        data = next((shared_data / "hard").rglob(name)).read_bytes()
        assert np.array_equal(decode_image(data, DROP), opencv_rgb(data)), name
    assert not refused["color_exif.jpg"]


def test_public_tiffs_have_the_pixels_that_opencv_finds(shared_data: Path) -> None:
    compared = 0
    for path in sorted((shared_data / "torchgeo_layouts").rglob("*.tif")):
        data = path.read_bytes()
        if verdict(data) or read_header(BytesIO(data)).channels == 4:  # OpenCV multiplies colours by alpha
            continue
        floats = reference(data).dtype == np.float32
        pixels = decode_image(data, ImageRules((0, 1)) if floats else DROP)
        assert np.array_equal(pixels, reference(data).clip(0, 1) if floats else reference(data)), path
        compared += 1
    assert compared > 50
