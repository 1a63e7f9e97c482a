"""MetaImage, the format of ITK: `.mha` has the numbers behind its header, `.mhd` names the file that has them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from packer.decoding.grid import Grid
from packer.errors import BadPair
from packer.sources.volumes.header_lines import (
    MOST_HEADER,
    choice,
    file_beside,
    from_left,
    numbers,
    sides_of,
    text_of,
    wholes,
)
from packer.sources.volumes.volume_header import VolumeHeader
from packer.sources.volumes.voxel_file import GZIP, ZLIB, VoxelFile
from readers.contract.kinds import MOST_BANDS
from readers.contract.place import NIFTI, System
from readers.contract.regular_files import open_raw

KIND = "MetaImage"
DETACHED = ".mhd"
_LAST, _LOCAL = "ElementDataFile", "LOCAL"
_GZIP = b"\x1f\x8b"
_TYPES = {
    "MET_CHAR": "i1",
    "MET_UCHAR": "u1",
    "MET_SHORT": "i2",
    "MET_USHORT": "u2",
    "MET_INT": "i4",
    "MET_UINT": "u4",
    "MET_LONG": "i4",  # as ITK reads it on every machine
    "MET_ULONG": "u4",
    "MET_LONG_LONG": "i8",
    "MET_ULONG_LONG": "u8",
    "MET_FLOAT": "f4",
    "MET_DOUBLE": "f8",
}
_MATRIX, _ORIGIN = ("TransformMatrix", "Rotation", "Orientation"), ("Offset", "Position", "Origin")
_SPACING = ("ElementSpacing", "ElementSize")
_MSB = ("BinaryDataByteOrderMSB", "ElementByteOrderMSB")
_PLAIN = {
    "ObjectType": ("Image",),
    "BinaryData": ("True",),
    "ElementToIntensityFunctionSlope": ("1",),
    "ElementToIntensityFunctionOffset": ("0",),
}
"""Fields that are read with these texts alone. ITK ignores the functions, other programs apply them."""
_Fields = Mapping[str, str]


def read_metaimage(path: Path) -> tuple[VolumeHeader, VoxelFile]:
    """Return the header of a file, and where its numbers are. Raise BadPair if it is not one volume of numbers."""
    fields, text = _fields(path)
    header = _header(fields, text)
    file = data_file(path, fields)
    return header, _voxels(file or path, 0 if file else len(text), header.size, fields)


def data_file(path: Path, fields: _Fields | None = None) -> Path | None:
    """Return the file that has the numbers; None if they are behind the header."""
    name = (fields or _fields(path)[0])[_LAST]
    if name == _LOCAL:
        return None
    return file_beside(path, _LAST, name, ".mha", DETACHED)


def _fields(path: Path) -> tuple[_Fields, bytes]:
    """Return the texts of a header by their names, and its bytes. The name of the file with the numbers is the last."""
    fields: dict[str, str] = {}
    with open_raw(path) as file:
        while _LAST not in fields:
            line = file.readline(MOST_HEADER - file.tell())
            name, equals, text = line.decode("utf-8", "replace").partition("=")
            name = name.strip()
            if not equals or not name or not name.isprintable():
                raise BadPair(f"is not a MetaImage with a header of text that ends with {_LAST}")
            if name in fields:
                raise BadPair(f"has the header {name} twice")
            fields[name] = text.strip()
        length = file.tell()
        file.seek(0)
        return fields, file.read(length)


def _header(fields: _Fields, text: bytes) -> VolumeHeader:
    for name, texts in _PLAIN.items():
        if name in fields:
            choice(name, fields[name], texts)
    (dimensions,) = wholes("NDims", text_of(fields, "NDims"), 1)
    if dimensions not in (2, 3, 4):
        raise BadPair(f"has {dimensions} dimensions; 2 to 4 are read")
    sides = sides_of("DimSize", text_of(fields, "DimSize"), dimensions)
    (components,) = wholes("ElementNumberOfChannels", fields.get("ElementNumberOfChannels", "1"), 1)
    channels = components * math.prod(sides[3:])
    if not 1 <= channels <= MOST_BANDS or min(components, math.prod(sides[3:])) > 1:
        raise BadPair(f"has {components} channels and the sides {list(sides)}; up to {MOST_BANDS} become bands")
    name = choice("ElementType", text_of(fields, "ElementType"), tuple(_TYPES))
    is_big = any(_flag(fields, name) for name in _MSB)
    columns, rows, slices = (*sides, 1)[:3]
    return VolumeHeader(
        KIND,
        np.dtype((">" if is_big else "<") + _TYPES[name]),
        (columns, rows, slices),
        _grid(fields, (columns, rows, slices), dimensions),
        channels=channels,
        is_interleaved=components > 1,
        text=text,
    )


def _voxels(path: Path, start: int, size: int, fields: _Fields) -> VoxelFile:
    """Return where the numbers are in a file."""
    (skipped,) = wholes("HeaderSize", fields.get("HeaderSize", "0"), 1)
    with open_raw(path) as file:
        length = file.seek(0, 2)
        file.seek(start)
        is_gzip = file.read(2) == _GZIP
    if _flag(fields, "CompressedData"):
        (packed,) = wholes("CompressedDataSize", fields.get("CompressedDataSize", str(length - start)), 1)
        if skipped or packed != length - start:
            raise BadPair(f"has {length - start} packed bytes; its header demands {packed} behind {skipped}")
        return VoxelFile(path, start, GZIP if is_gzip else ZLIB)
    if skipped == -1 and length >= start + size:
        return VoxelFile(path, length - size)  # the numbers are the last ones of the file
    if skipped < 0 or (skipped and start):
        raise BadPair(f"has HeaderSize = {skipped}; read is -1, or the bytes before the numbers in a file of their own")
    return VoxelFile(path, start + skipped)


def _grid(fields: _Fields, sides: tuple[int, int, int], dimensions: int) -> Grid:
    """Return where the voxels are. ITK assumes steps of 1 mm from 0 on of a header that does not say it."""
    matrix = _numbers(fields, _MATRIX, dimensions**2, np.eye(dimensions).ravel().tolist())
    origin = _numbers(fields, _ORIGIN, dimensions, (0.0,) * dimensions)
    spacing = _numbers(fields, _SPACING, dimensions, (1.0,) * dimensions)
    directions = np.eye(3)
    axes = min(dimensions, 3)
    directions[:axes, :axes] = np.reshape(matrix, (dimensions, dimensions))[:axes, :axes]
    steps = (*spacing, 1.0)[:3]
    columns = [[part * step for part in line] for line, step in zip(directions.tolist(), steps, strict=True)]
    transform = from_left(columns, (*origin, 0.0)[:3])
    says = any(name in fields for name in (*_MATRIX, *_ORIGIN))
    return Grid(sides, (("header", transform),) if says else (), System(NIFTI), () if says else transform)


def _numbers(fields: _Fields, names: Sequence[str], count: int, otherwise: Sequence[float]) -> Sequence[float]:
    """Return the numbers of the first of these fields that a header has."""
    name = next((name for name in names if name in fields), None)
    return otherwise if name is None else numbers(name, fields[name], count)


def _flag(fields: _Fields, name: str) -> bool:
    return choice(name, fields.get(name, "False"), ("True", "False")) == "True"
