"""The place that the GML in a JPEG 2000 states, as Sentinel-2 has it. Only its grid is read, by its words."""

from __future__ import annotations

import re

from packer.decoding.grid import Grid, usable
from readers.contract.place import GEO, System

_NUMBER = rb"\s*([-+0-9.eE]{1,40})\s+([-+0-9.eE]{1,40})\s*"
_ORIGIN = re.compile(rb"<gml:origin>.{0,400}?<gml:pos[^>]{0,200}>" + _NUMBER + rb"</gml:pos>", re.DOTALL)
_VECTOR = re.compile(rb"<gml:offsetVector[^>]{0,200}>" + _NUMBER + rb"</gml:offsetVector>")
_SYSTEM = re.compile(rb"srsName\s*=\s*[\"']urn:ogc:def:crs:EPSG:[^:]{0,20}:(\d{4,5})[\"']")
_DEGREES = range(4000, 5000)
"""EPSG has the codes of coordinate systems in degrees here: programs differ in which of their axes comes first."""


def grid_of(text: bytes, sides: tuple[int, int]) -> Grid | None:
    """Return the place of a picture of this width and height; None if the text does not state one on a map."""
    origin, vectors, system = _ORIGIN.search(text), _VECTOR.findall(text), _SYSTEM.search(text)
    if origin is None or len(vectors) != 2 or system is None or int(system[1]) in _DEGREES:
        return None
    try:
        x, y, (a, c), (b, d) = float(origin[1]), float(origin[2]), *(map(float, vector) for vector in vectors)
    except ValueError:
        return None
    transform = (a, b, x - (a + b) / 2, c, d, y - (c + d) / 2)  # the origin is the middle of a pixel
    if not usable(transform, 2):
        return None
    return Grid(sides, (("transform", transform),), System(GEO, f"EPSG:{int(system[1])}"))
