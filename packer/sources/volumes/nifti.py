"""NIfTI, version 1 or 2, in one file: `.nii`, or `.nii.gz`.

The header has fixed places, so it is read without a library: each number is checked before it decides how much memory
is taken.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from packer.decoding.grid import Grid, GridTransform, usable
from packer.errors import BadPair
from packer.sources.volumes.volume_header import VolumeHeader
from packer.sources.volumes.voxel_file import GZIP, VoxelFile, unpacked
from readers.contract.kinds import MOST_BANDS
from readers.contract.place import NIFTI, System
from readers.contract.regular_files import open_raw

KIND = "NIfTI"
_GZIP = b"\x1f\x8b"
_HEAD = 544
_TYPES = {2: "u1", 4: "i2", 8: "i4", 16: "f4", 64: "f8", 256: "i1", 512: "u2", 768: "u4", 1024: "i8", 1280: "u8"}


def read_nifti(path: Path) -> tuple[VolumeHeader, VoxelFile]:
    """Return the header of a file, and where its numbers are. Raise BadPair if it is not one volume of numbers."""
    with open_raw(path) as file:
        start = file.read(2)
        file.seek(0)
        packing = GZIP if start == _GZIP else ""
        head = b"".join(unpacked(file, _HEAD, GZIP)) if packing else file.read(_HEAD)
    header, offset = _facts(head)
    return header, VoxelFile(path, packing=packing, offset=offset)


def _facts(head: bytes) -> tuple[VolumeHeader, int]:
    """Return the facts of a header, and the place of the first number."""
    for order in "<>":
        size = struct.unpack_from(order + "i", head)[0] if len(head) >= 4 else 0
        if size == 348 and head[344:348] == b"n+1\0":
            sides = struct.unpack_from(order + "8h", head, 40)
            code, bits = struct.unpack_from(order + "hh", head, 70)
            offset, slope, intercept = struct.unpack_from(order + "3f", head, 108)
            break
        if size == 540 and head[4:12] == b"n+2\0\r\n\x1a\n" and len(head) >= 540:
            sides = struct.unpack_from(order + "8q", head, 16)
            code, bits = struct.unpack_from(order + "hh", head, 12)
            offset, slope, intercept = struct.unpack_from(order + "qdd", head, 168)
            break
    else:
        raise BadPair("is not a NIfTI file of one part, .nii or .nii.gz")
    if code not in _TYPES or bits != 8 * np.dtype(_TYPES[code]).itemsize:
        raise BadPair(f"has numbers of the NIfTI type {code} with {bits} bits; only whole and floating-point are read")
    count, *sides_used = sides
    if not 2 <= count <= 7 or min(sides_used[:count]) < 1 or math.prod(sides_used[3:count]) > MOST_BANDS:
        raise BadPair(
            f"has the sides {sides_used[: max(count, 0)]}; expected three, and up to {MOST_BANDS} volumes, which "
            "become bands"
        )
    columns, rows, slices = (*sides_used[:count], 1)[:3]
    dtype = np.dtype(order + _TYPES[code])
    if not (head_size := size + 4) <= offset < 1 << 30 or offset != int(offset):
        raise BadPair(f"has its numbers at {offset}; expected {head_size} or more")
    if not math.isfinite(slope) or slope == 0:
        slope, intercept = 0.0, 0.0
    if not math.isfinite(intercept):
        raise BadPair(f"has numbers that are scaled by {slope:g} plus {intercept}")
    sides_of, channels = (columns, rows, slices), math.prod(sides_used[3:count])
    return VolumeHeader(KIND, dtype, sides_of, _grid(head, sides_of), slope, intercept, channels), int(offset)


def _grid(head: bytes, sides: tuple[int, int, int]) -> Grid | None:
    """Return where the voxels are: by the matrix of a header, called sform, and by its quaternion, called qform."""
    order = "<" if struct.unpack_from("<i", head)[0] in (348, 540) else ">"
    if struct.unpack_from(order + "i", head)[0] == 348:
        quaternion, matrix = struct.unpack_from(order + "hh", head, 252)
        spacing = struct.unpack_from(order + "4f", head, 76)
        rotated, rows = struct.unpack_from(order + "6f", head, 256), struct.unpack_from(order + "12f", head, 280)
    else:
        quaternion, matrix = struct.unpack_from(order + "ii", head, 344)
        spacing = struct.unpack_from(order + "4d", head, 104)
        rotated, rows = struct.unpack_from(order + "6d", head, 352), struct.unpack_from(order + "12d", head, 400)
    steps = tuple(abs(step) or 1.0 for step in spacing[1:4])  # nibabel reads the sides of a voxel so
    qform = _rotation(rotated, spacing[0], steps) if quaternion > 0 else ()
    forms = {"sform": rows if matrix > 0 else (), "qform": qform}
    usable_forms = tuple((name, rows) for name, rows in forms.items() if usable(rows, 3))
    assumed = _by_spacing(steps, sides) if max(matrix, quaternion) <= 0 else ()
    return Grid(sides, usable_forms, System(NIFTI), assumed) if usable_forms or assumed else None


def _by_spacing(spacing: Sequence[float], sides: tuple[int, int, int]) -> GridTransform:
    """Return the matrix that nibabel assumes of a header without one: the origin is the middle, and x goes to the left.

    The distance of voxels may be missing, too.
    """
    steps = (-spacing[0], spacing[1], spacing[2])
    rows = tuple(
        number
        for axis, (step, side) in enumerate(zip(steps, sides, strict=True))
        for number in (*(step * (axis == column) for column in range(3)), -step * (side - 1) / 2)
    )
    return rows if usable(rows, 3) else ()


def _rotation(rotated: Sequence[float], factor: float, spacing: Sequence[float]) -> GridTransform:
    """Return the matrix of a quaternion, whose first part follows from the others, an offset, and the sides of a voxel;
    nothing if it is none."""
    b, c, d, *offset = rotated
    rest = 1 - b * b - c * c - d * d
    if not rest > -1e-5:
        return ()
    a = math.sqrt(max(0.0, rest))
    steps = (spacing[0], spacing[1], -spacing[2] if factor < 0 else spacing[2])
    rows = (
        (a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)),
        (2 * (b * c + a * d), a * a + c * c - b * b - d * d, 2 * (c * d - a * b)),
        (2 * (b * d - a * c), 2 * (c * d + a * b), a * a + d * d - b * b - c * c),
    )
    return tuple(
        number
        for row, start in zip(rows, offset, strict=True)
        for number in (*(part * step for part, step in zip(row, steps, strict=True)), start)
    )
