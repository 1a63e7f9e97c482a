"""NRRD, which 3D Slicer writes: `.nrrd` has the numbers behind its header, `.nhdr` names the file that has them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
from packer.sources.volumes.voxel_file import GZIP, VoxelFile
from readers.contract.kinds import MOST_BANDS
from readers.contract.place import NIFTI, System
from readers.contract.regular_files import open_raw

KIND = "NRRD"
DETACHED = ".nhdr"
_MAGIC = re.compile(r"NRRD000[1-5]")
_FIELD = re.compile(r"([^:=]+)(: |:=)(.*)")
_NAMES = {"datafile": "data file", "byteskip": "byte skip", "lineskip": "line skip"}
_TYPES = {
    name: code
    for code, names in {
        "i1": "signed char, int8, int8_t",
        "u1": "uchar, unsigned char, uint8, uint8_t",
        "i2": "short, short int, signed short, signed short int, int16, int16_t",
        "u2": "ushort, unsigned short, unsigned short int, uint16, uint16_t",
        "i4": "int, signed int, int32, int32_t",
        "u4": "uint, unsigned int, uint32, uint32_t",
        "i8": "longlong, long long, long long int, signed long long, signed long long int, int64, int64_t",
        "u8": "ulonglong, unsigned long long, unsigned long long int, uint64, uint64_t",
        "f4": "float",
        "f8": "double",
    }.items()
    for name in names.split(", ")
}
_PACKINGS = {"raw": "", "gzip": GZIP, "gz": GZIP}
_IN_SPACE = ("domain", "space", "???", "none")
_CHANNELS = re.compile(r"vector|list|time|stub|(2|3|4)-(vector|color)|(rgb|hsv|xyz|rgba)-color|covariant-vector", re.I)
_LEFT = {"left-posterior-superior": (1, 1), "right-anterior-superior": (-1, -1), "left-anterior-superior": (1, -1)}
"""The signs that make x go to the left and y to the back."""
_SHORT = {"lps": "left-posterior-superior", "ras": "right-anterior-superior", "las": "left-anterior-superior"}
_VECTORS = re.compile(r"(?:none|\([^()]*\))(?:\s+(?:none|\([^()]*\)))*")
_VECTOR = re.compile(r"none|\([^()]*\)")
_Fields = Mapping[str, str]


def read_nrrd(path: Path) -> tuple[VolumeHeader, VoxelFile]:
    """Return the header of a file, and where its numbers are. Raise BadPair if it is not one volume of numbers."""
    fields, text = _fields(path)
    header = _header(fields, text)
    file = data_file(path, fields)
    return header, _voxels(file or path, 0 if file else len(text), header.size, fields)


def data_file(path: Path, fields: _Fields | None = None) -> Path | None:
    """Return the file that has the numbers; None if they are behind the header."""
    name = (fields or _fields(path)[0]).get("data file")
    if name is None:
        return None
    return file_beside(path, "data file", name, ".nrrd", DETACHED)


def _fields(path: Path) -> tuple[_Fields, bytes]:
    """Return the texts of a header by their names, and its bytes. It ends with an empty line, or with the file."""
    fields: dict[str, str] = {}
    with open_raw(path) as file:
        if not _MAGIC.fullmatch(file.readline(16).decode("latin-1").rstrip("\r\n")):
            raise BadPair("is not a NRRD file")
        while line := file.readline(MOST_HEADER - file.tell()).decode("utf-8", "replace"):
            line = line.rstrip("\r\n")
            if not line:
                break
            if line.startswith("#"):
                continue
            match = _FIELD.fullmatch(line)
            if match is None or not line.isprintable():
                raise BadPair(f"has the header line {line[:80]!r}; expected a field with a colon and a space")
            name = match[1].lower()
            name = _NAMES.get(name, name)
            if match[2] == ": ":
                if name in fields:
                    raise BadPair(f"has the header {name} twice")
                fields[name] = match[3].strip()
        length = file.tell()
        file.seek(0)
        return fields, file.read(length)


def _header(fields: _Fields, text: bytes) -> VolumeHeader:
    (dimension,) = wholes("dimension", text_of(fields, "dimension"), 1)
    if dimension not in (3, 4):
        raise BadPair(f"has {dimension} dimensions; 3 are read, or 4 with the channels of a voxel")
    sides = sides_of("sizes", text_of(fields, "sizes"), dimension)
    directions = _directions(fields, dimension)
    axis = _channel_axis(fields, directions, dimension)
    channels = 1 if axis is None else sides[axis]
    if channels > MOST_BANDS:
        raise BadPair(f"has {channels} channels; at most {MOST_BANDS} become bands")
    columns, rows, slices = (side for number, side in enumerate(sides) if number != axis)
    name = text_of(fields, "type").lower()
    if name not in _TYPES:
        raise BadPair(f"has numbers of the type {name[:80]!r}; only whole and floating-point are read")
    dtype = np.dtype(_TYPES[name])
    if dtype.itemsize > 1:
        ends = choice("endian", text_of(fields, "endian").lower(), ("little", "big"))
        dtype = dtype.newbyteorder("<" if ends == "little" else ">")
    in_space = [vector for number, vector in enumerate(directions) if number != axis]
    grid = _grid(fields, (columns, rows, slices), in_space, axis)
    facts = VolumeHeader(KIND, dtype, (columns, rows, slices), grid, channels=channels)
    return replace(facts, is_interleaved=axis == 0, text=text)


def _directions(fields: _Fields, dimension: int) -> Sequence[tuple[float, ...]]:
    """Return the step along each axis; an empty one of an axis that is not in space."""
    text = fields.get("space directions")
    if text is None:
        return ()
    words = _VECTOR.findall(text) if _VECTORS.fullmatch(text) else []
    if len(words) != dimension:
        raise BadPair(f"has the header 'space directions: {text[:80]}'; expected {dimension} vectors such as (1,0,0)")
    return [() if word == "none" else _vector("space directions", word) for word in words]


def _channel_axis(fields: _Fields, directions: Sequence[tuple[float, ...]], dimension: int) -> int | None:
    """Return the axis with the channels of a voxel: the one that is not in space. It is the first or the last one."""
    kinds = fields.get("kinds", "").split() or ["???"] * dimension
    if len(kinds) != dimension:
        raise BadPair(f"has {len(kinds)} kinds of {dimension} axes")
    if directions:
        apart = [number for number, vector in enumerate(directions) if not vector]
    else:
        apart = [number for number, kind in enumerate(kinds) if kind.lower() not in _IN_SPACE]
    if len(apart) != dimension - 3:
        raise BadPair(f"has {dimension - len(apart)} axes in space; three are read, besides one of channels")
    for number in apart:
        if kinds[number] not in _IN_SPACE and not _CHANNELS.fullmatch(kinds[number]):
            raise BadPair(f"has an axis of the kind {kinds[number][:40]!r}, which has no channels")
        if number not in (0, dimension - 1):
            raise BadPair(f"has its channels along axis {number}; they are read along the first or the last one")
    return next(iter(apart), None)


def _grid(
    fields: _Fields, sides: tuple[int, int, int], directions: Sequence[tuple[float, ...]], axis: int | None
) -> Grid:
    """Return where the voxels are. A header with distances alone, or in a space without a name of the body, is not
    compared; ITK reads it so that x goes to the left and y to the back."""
    if not directions:
        return Grid(sides, (), System(NIFTI), from_left(_diagonal(fields, axis), (0.0, 0.0, 0.0)))
    choice("space dimension", fields.get("space dimension", "3"), ("3",))
    name = fields.get("space", "").lower()
    name = _SHORT.get(name, name)
    signs = (*_LEFT.get(name, (1, 1)), 1)

    def signed(vector: Sequence[float]) -> list[float]:
        return [sign * number for sign, number in zip(signs, vector, strict=True)]

    origin = _vector("space origin", fields.get("space origin", "(0,0,0)"))
    transform = from_left(list(map(signed, directions)), signed(origin))
    if name not in _LEFT:
        return Grid(sides, (), System(NIFTI), transform)
    return Grid(sides, (("header", transform),), System(NIFTI))


def _diagonal(fields: _Fields, axis: int | None) -> list[list[float]]:
    """Return a step along each axis in space by the distances in a header; of 1 mm where it has none."""
    words = fields.get("spacings", "").split() or ["nan"] * 4
    in_space = [word for number, word in enumerate(words) if number != axis][:3]
    steps = numbers("spacings", " ".join("1" if word.lower() == "nan" else word for word in in_space), 3)
    return [[step * (world == along) for world in range(3)] for along, step in enumerate(steps)]


def _voxels(path: Path, start: int, size: int, fields: _Fields) -> VoxelFile:
    """Return where the numbers are in a file."""
    if wholes("line skip", fields.get("line skip", "0"), 1) != (0,):
        raise BadPair("has lines before its numbers, by the header line skip; write it without them")
    encoding = text_of(fields, "encoding").lower()
    if encoding not in _PACKINGS:
        raise BadPair(f"has numbers of the encoding {encoding[:40]!r}; raw and gzip are read: write one of them")
    packing = _PACKINGS[encoding]
    (skipped,) = wholes("byte skip", fields.get("byte skip", "0"), 1)
    if skipped == -1 and not packing:
        with open_raw(path) as file:
            return VoxelFile(path, max(start, file.seek(0, 2) - size))  # the numbers are the last ones of the file
    if not 0 <= skipped < MOST_HEADER:
        raise BadPair(f"has the header 'byte skip: {skipped}'; read is -1 of raw numbers, or up to {MOST_HEADER} bytes")
    return VoxelFile(path, start, packing, skipped)


def _vector(name: str, text: str) -> tuple[float, ...]:
    if not (text.startswith("(") and text.endswith(")")):
        raise BadPair(f"has the header '{name}: {text[:80]}'; expected vectors such as (1,0,0)")
    return numbers(name, text[1:-1].replace(",", " "), 3)
