"""Well-known binary, in which GDAL gives shapes, as geometries of GeoJSON. Points have two numbers."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from packer.errors import BadPair

_KINDS = {
    1: "Point",
    2: "LineString",
    3: "Polygon",
    4: "MultiPoint",
    5: "MultiLineString",
    6: "MultiPolygon",
    7: "GeometryCollection",
    8: "CircularString",
    9: "CompoundCurve",
    10: "CurvePolygon",
    11: "MultiCurve",
    12: "MultiSurface",
    15: "PolyhedralSurface",
    16: "TIN",
    17: "Triangle",
}
_POINT, _POLYGON, _MULTI_POLYGON, _COLLECTION, _TRIANGLE = 1, 3, 6, 7, 17
_LINES = (2, 8)
_MOST_DEPTH = 20


def geometry_of(data: bytes) -> dict[str, Any]:
    """Return a geometry. One that is not made of polygons has its kind alone, which the reader of GeoJSON counts."""
    try:
        return _geometry(data, 0, 0)[0]
    except (struct.error, ValueError):
        raise BadPair("has a shape that is cut short") from None


def _geometry(data: bytes, at: int, depth: int) -> tuple[dict[str, Any], int]:
    """Return the geometry that begins here, and the place behind it."""
    order = ">" if data[at : at + 1] == b"\0" else "<"
    code = struct.unpack_from(f"{order}I", data, at + 1)[0]
    if code not in _KINDS or depth > _MOST_DEPTH:
        raise BadPair(f"has a shape of the kind {code}, or of shapes in too many others")
    kind, at = _KINDS[code], at + 5
    if code == _POINT:
        return {"type": kind, "coordinates": []}, at + 16
    (count,) = struct.unpack_from(f"{order}I", data, at)
    at += 4
    if code in _LINES:
        return {"type": kind, "coordinates": []}, at + 16 * count
    if code in (_POLYGON, _TRIANGLE):
        rings, at = _rings(data, at, count, order)
        return {"type": kind, "coordinates": rings}, at
    members = []
    for _ in range(count):
        member, at = _geometry(data, at, depth + 1)
        members.append(member)
    if code == _COLLECTION:
        return {"type": kind, "geometries": members}, at
    is_read = code == _MULTI_POLYGON
    return {"type": kind, "coordinates": [member["coordinates"] for member in members] if is_read else []}, at


def _rings(data: bytes, at: int, count: int, order: str) -> tuple[list[Any], int]:
    rings = []
    for _ in range(count):
        (points,) = struct.unpack_from(f"{order}I", data, at)
        rings.append(np.frombuffer(data, f"{order}f8", 2 * points, at + 4).reshape(-1, 2).tolist())
        at += 4 + 16 * points
    return rings, at
