"""Bring polygons on the ground to the coordinate system of their picture, by pyproj of the extra `vectors`.

pyogrio, which reads the files, has no part of GDAL that does it; and polygons of GeoJSON need it, too. Corners are
moved, and the lines between them stay straight, as ogr2ogr has it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.annotations.annotation import AnnotatedPicture
from packer.annotations.geojson import GroundPolygon, system_of
from packer.annotations.geotiff import ground_of
from packer.errors import BadPair, UsageError, library_of_extra

NEEDED = "--reproject needs pyproj: pip install 'segpack[vectors]'"


@lru_cache(maxsize=1)
def library() -> ModuleType:
    """Return pyproj. Raise UsageError if it is not installed."""
    return library_of_extra("pyproj", NEEDED)


def reproject_tools() -> tuple[str, ...]:
    """Return the versions of pyproj and PROJ, for a recipe: other ones may have other coordinates."""
    try:
        return (f"reprojected by pyproj {library().__version__} with PROJ {library().proj_version_str}",)
    except UsageError:
        return ("pyproj is not installed",)


def reprojected(picture: AnnotatedPicture, image: bytes) -> AnnotatedPicture:
    """Return the features in the coordinate system of their GeoTIFF."""
    try:
        ground = ground_of(image)
    except BadPair as error:
        raise BadPair(f"its picture {error}") from None
    moves: dict[int, Any] = {}

    def moved(shape: Any) -> Any:
        epsg = system_of(shape, ground) if isinstance(shape, GroundPolygon) else None
        if epsg is None or epsg == ground.epsg:
            return shape
        if ground.epsg is None:
            raise BadPair(f"has coordinates of EPSG:{epsg}, and the GeoTIFF no EPSG code to bring them to")
        move = moves[epsg] = moves.get(epsg) or _move(epsg, ground.epsg)
        return GroundPolygon(tuple(_moved(move, ring) for ring in shape.rings), ground.epsg)

    annotations = [
        replace(annotation, shapes=tuple(map(moved, annotation.shapes))) for annotation in picture.annotations
    ]
    return replace(picture, annotations=tuple(annotations))


def _move(source: int, target: int) -> Any:
    pyproj = library()
    try:
        return pyproj.Transformer.from_crs(source, target, always_xy=True)
    except pyproj.exceptions.CRSError as error:
        raise BadPair(f"has coordinates of EPSG:{source}, or the GeoTIFF of EPSG:{target}, which PROJ lacks") from error


def _moved(move: Any, ring: NDArray[np.float64]) -> NDArray[np.float64]:
    points = np.stack(move.transform(ring[:, 0], ring[:, 1]), 1)
    if not np.isfinite(points).all():
        x, y = ring[np.argwhere(~np.isfinite(points))[0][0]].tolist()
        raise BadPair(f"has the point ({x:.10g}, {y:.10g}), which is not in the coordinate system of the GeoTIFF")
    return points
