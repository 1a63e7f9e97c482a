"""Compare what we read of TIFF files and NIfTI volumes with what the programs wrote that made them.

    pip install rasterio tifffile imagecodecs nibabel
    tools/run checks.foreign_files

GDAL and tifffile write pictures of 1 to 16 bands in every type, layout and compression that we read; nibabel writes
volumes. Exits 1 if a number differs.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from program import parser
from tables import aligned

from packer.decoding.bands import Bands, read_bands
from packer.decoding.rules import ImageRules
from packer.decoding.turn import Turn
from packer.errors import BadPair
from packer.sources.volumes.volume import Volume

HEIGHT, WIDTH = 40, 70
Case = tuple[NDArray[Any], Callable[[], NDArray[Any]]]
"""The numbers that a program wrote, and a function that reads them."""


def numbers(dtype: str, bands: int) -> NDArray[Any]:
    """Return a picture (H,W,B) of small numbers; thirds in floating-point types."""
    dice = np.random.default_rng(bands)
    drawn = dice.integers(0, 100, (HEIGHT, WIDTH, bands))
    return (drawn / 3).astype(dtype) if dtype.startswith("float") else drawn.astype(dtype)


def bands_of(data: bytes) -> Callable[[], NDArray[Any]]:
    return lambda: read_bands(data, Bands(), ImageRules())


def by_gdal() -> Iterator[Case]:
    """Yield the files of GDAL: strips and tiles, pixels and planes, each compression with each predictor."""
    memory_file = import_module("rasterio").MemoryFile
    types, counts = ("uint8", "uint16", "int16", "float32"), (1, 2, 3, 4, 5, 12, 16)
    ways = product(types, counts, ("pixel", "band"), (None, "lzw", "deflate", "packbits"), (False, True), (1, 2, 3))
    for dtype, bands, layout, compression, is_tiled, predictor in ways:
        is_float = dtype == "float32"
        fitting = (1, 3 if is_float else 2) if compression in ("lzw", "deflate") else (1,)
        if predictor in fitting:
            pixels, tile = numbers(dtype, bands), {"blockxsize": 32, "blockysize": 16} if is_tiled else {}
            with memory_file() as file:
                facts = {"count": bands, "height": HEIGHT, "width": WIDTH, "dtype": dtype, "tiled": is_tiled, **tile}
                options = {"driver": "GTiff", "interleave": layout, "compress": compression, "predictor": predictor}
                with file.open(**facts, **options) as picture:
                    picture.write(pixels.transpose(2, 0, 1))
                yield pixels, bands_of(bytes(file.getbuffer()))


def by_tifffile() -> Iterator[Case]:
    """Yield the files of tifffile, also of float16."""
    write = import_module("tifffile").imwrite
    types, counts = ("uint8", "uint16", "int16", "float16", "float32"), (1, 2, 3, 4, 5, 12)
    layouts, colours = ("contig", "separate"), ("minisblack", "rgb")
    for dtype, bands, layout, colour, compression, tile, predictor in product(
        types, counts, layouts, colours, (None, "zlib", "lzw", "packbits"), (None, (16, 16)), (False, True)
    ):
        if (colour == "rgb" and bands < 3) or (predictor and compression not in ("zlib", "lzw")):
            continue
        pixels, file = numbers(dtype, bands), BytesIO()
        stored = pixels[..., 0] if bands == 1 else pixels if layout == "contig" else np.moveaxis(pixels, -1, 0)
        options = {"photometric": colour, "planarconfig": layout if bands > 1 else None, "compression": compression}
        write(file, stored, tile=tile, predictor=predictor, metadata=None, **options)
        yield pixels, bands_of(file.getvalue())


def by_nibabel() -> Iterator[Case]:
    """Yield the slices of nibabel's volumes, with and without a slope."""
    nibabel = import_module("nibabel")
    types = ("u1", "i1", "u2", "i2", "u4", "i4", "f4", "f8")
    with tempfile.TemporaryDirectory() as folder:
        for version, dtype, suffix, is_scaled in product((1, 2), types, (".nii", ".nii.gz"), (False, True)):
            path = Path(folder) / f"{version}{dtype}{is_scaled}{suffix}"
            drawn = np.random.default_rng(version).integers(0, 100, (9, 7, 5))
            stored = drawn * 0.37 - 12 if is_scaled else drawn.astype(dtype)
            made = getattr(nibabel, f"Nifti{version}Image")(stored, np.eye(4))
            made.set_data_dtype("i2" if is_scaled else dtype)
            nibabel.save(made, path)
            wanted = np.asarray(nibabel.load(path).dataobj)
            for axis in range(3):
                volume = Volume.open(path).turned(Turn.along(axis))
                for number in range(volume.slices):
                    yield wanted.take(number, axis).T.astype(volume.value_dtype), slice_of(volume, number)


def slice_of(volume: Volume, number: int) -> Callable[[], NDArray[Any]]:
    return lambda: volume.values(volume.numbers(number))


def judge(case: Case) -> str:
    wanted, read = case
    try:
        found = read()
    except BadPair:
        return "refused"
    return "equal" if found.dtype == wanted.dtype and np.array_equal(found, wanted) else "different"


def main() -> None:
    parser(__doc__).parse_args()
    warnings.simplefilter("ignore")
    rows: list[tuple[str, ...]] = [("", "equal", "refused", "different")]
    wrong = 0
    for name, cases in (("GDAL", by_gdal()), ("tifffile", by_tifffile()), ("nibabel", by_nibabel())):
        counts = Counter(map(judge, cases))
        rows.append((name, *(str(counts[verdict]) for verdict in rows[0][1:])))
        wrong += counts["refused"] + counts["different"]
    print(*aligned(rows), sep="\n")
    sys.exit(1 if wrong else 0)
