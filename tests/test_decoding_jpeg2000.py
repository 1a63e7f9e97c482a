"""JPEG 2000: the pixels and the place that GDAL reads, and refusals of all else."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from packer import build_pack
from packer.decoding import gml
from packer.decoding.bands import Bands, read_bands
from packer.decoding.decode import decode_image, decode_label, header_of
from packer.decoding.rules import ImageRules
from packer.errors import BadPair
from readers import open_dataset

pytestmark = pytest.mark.filterwarnings("ignore:Dataset has no geotransform")
rasterio: Any = pytest.importorskip("rasterio")
if "jp2" not in rasterio.drivers.raster_driver_extensions():
    pytest.skip("this GDAL writes no JPEG 2000", allow_module_level=True)

PLACE = rasterio.Affine(10, 0, 500_000, 0, -10, 5_000_000)
ALL = Bands("all")
FACTS = pytest.mark.parametrize(
    ("dtype", "bits", "count"),
    [("uint8", 8, 1), ("uint8", 8, 3), ("uint16", 12, 1), ("uint16", 15, 1), ("uint16", 16, 1), ("uint16", 16, 3)],
)


def written(path: Path, numbers: NDArray[Any], bits: int = 8, **options: Any) -> bytes:
    """Return a JPEG 2000 as GDAL writes it."""
    count, height, width = numbers.shape
    options = {"QUALITY": 100, "REVERSIBLE": "YES", "NBITS": bits, "crs": "EPSG:32633", "transform": PLACE, **options}
    colours = {"photometric": "RGB"} if count == 3 else {}
    shape = {"count": count, "height": height, "width": width, "dtype": numbers.dtype}
    with rasterio.open(path, "w", driver="JP2OpenJPEG", **shape, **colours, **options) as file:
        if count == 3:
            file.colorinterp = [rasterio.enums.ColorInterp[name] for name in ("red", "green", "blue")]
        file.write(numbers)
    return path.read_bytes()


def noise(dtype: str, bits: int, count: int) -> NDArray[Any]:
    return np.random.default_rng(5).integers(0, 1 << bits, (count, 70, 91)).astype(dtype)


@FACTS
def test_pixels_are_those_that_gdal_reads(dtype: str, bits: int, count: int, tmp_path: Path) -> None:
    numbers = noise(dtype, bits, count)
    data = written(tmp_path / "a.jp2", numbers, bits)
    header = header_of(data)
    assert (header.kind, header.size, header.channels, header.depth) == (
        "JPEG 2000",
        (70, 91),
        count,
        8 if bits == 8 else 16,
    )
    assert not header.is_lossy
    np.testing.assert_array_equal(read_bands(data, ALL, ImageRules(bands="all")).transpose(2, 0, 1), numbers)
    stream = data[data.index(b"\xff\x4f\xff\x51") :]
    np.testing.assert_array_equal(read_bands(stream, ALL, ImageRules(bands="all")).transpose(2, 0, 1), numbers)


def test_lossy_files_are_images_and_no_labels(tmp_path: Path) -> None:
    data = written(tmp_path / "a.jp2", noise("uint8", 8, 1), QUALITY=30, REVERSIBLE="NO")
    assert decode_image(data, ImageRules()).shape == (70, 91, 3)
    with pytest.raises(BadPair, match="JPEG 2000 with lossy compression"):
        decode_label(data, as_index=True)
    exact = written(tmp_path / "b.jp2", noise("uint8", 2, 1))
    np.testing.assert_array_equal(decode_label(exact, as_index=True), noise("uint8", 2, 1)[0])


@pytest.mark.parametrize("said", [{}, {"GeoJP2": "NO"}, {"GMLJP2": "NO"}], ids=["both", "gml", "geotiff"])
def test_the_place_is_read(said: dict[str, Any], tmp_path: Path) -> None:
    grid = header_of(written(tmp_path / "a.jp2", noise("uint8", 8, 1), **said)).grid
    assert grid is not None
    assert (grid.system.crs, grid.transform) == ("EPSG:32633", tuple(PLACE)[:6])


def test_a_file_without_a_place_has_none(tmp_path: Path) -> None:
    data = written(tmp_path / "a.jp2", noise("uint8", 8, 1), crs=None, transform=None)
    assert header_of(data).grid is None
    for text in (b"", b"<gml:origin><gml:pos>1 2</gml:pos>", b"<gml:offsetVector>1 0</gml:offsetVector>" * 2):
        assert gml.grid_of(text, (3, 4)) is None


def test_a_pack_of_sentinel_2(tmp_path: Path) -> None:
    for folder, numbers in (("images", noise("uint16", 15, 1)), ("labels", noise("uint8", 1, 1))):
        (tmp_path / "raw" / folder).mkdir(parents=True)
        written(tmp_path / "raw" / folder / "a.jp2", numbers, 15 if folder == "images" else 8)
    build_pack(tmp_path / "raw", tmp_path / "out", classes="2", bands="all", labels="index", nodata=0)
    rows = open_dataset(tmp_path / "out")
    np.testing.assert_array_equal(rows[0].image.numpy(), noise("uint16", 15, 1))
    np.testing.assert_array_equal(rows[0].label.numpy(), noise("uint8", 1, 1)[0])
    place = rows.place(0)
    assert place is not None
    assert (place.crs, place.transform) == ("EPSG:32633", tuple(PLACE)[:6])


@pytest.mark.parametrize("count", [2, 4, 6])
def test_other_components_are_refused(count: int, tmp_path: Path) -> None:
    with pytest.raises(BadPair, match=f"is a JPEG 2000 of {count} components"):
        header_of(written(tmp_path / "a.jp2", noise("uint8", 8, count)))
    signed = noise("uint8", 7, 1).astype(np.int16) - 50
    with pytest.raises(BadPair, match="of 16 signed bits"):
        header_of(written(tmp_path / "b.jp2", signed, 16))


def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    data = written(tmp_path / "a.jp2", noise("uint16", 12, 1), 12)
    for size in (12, 40, 300, len(data) // 2, len(data) - 2):
        with pytest.raises(BadPair):
            decode_image(data[:size], ImageRules(image_range=(0, 4095)))
    deep = b"\0\0\0\x0cjP  \r\n\x87\n" + b"".join(struct.pack(">I4s", 8 * left, b"asoc") for left in range(5000, 0, -1))
    with pytest.raises(BadPair, match="without pixels"):
        header_of(deep)


@given(st.data())
@settings(deadline=None)
def test_no_damage_crashes(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """A header is read or refused, whatever its bytes are."""
    path = tmp_path_factory.getbasetemp() / "fuzzed.jp2"
    whole = bytearray(path.read_bytes() if path.exists() else written(path, noise("uint8", 8, 1)))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        header = header_of(bytes(whole[: data.draw(st.integers(0, len(whole)))]))
    except BadPair:
        return
    assert header.kind == "JPEG 2000"
