"""GeoJSON over a GeoTIFF: polygons on the ground, painted as `rasterio.features.rasterize` paints them.

A pixel is inside if its centre is. The picture maps the ground to pixels, so objects are placed once both are read. The
category is the first of PROPERTIES that a feature has, or else the name of the collection.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from packer.annotations.annotation import AnnotatedPicture, Annotation, Mask
from packer.annotations.even_odd import EvenOddPolygon, Points
from packer.annotations.geotiff import Ground, ground_of
from packer.annotations.json_values import MOST_POINTS, checked_points, parse_json, table_or_none, tables
from packer.annotations.picture_format import PictureFormat
from packer.errors import BadPair
from readers.contract.tiles import Size

NAME = "geojson"
RULE = "geojson 1"
PROPERTIES = ("class", "class_name", "category", "label", "name", "type")
"""The properties that may have the category of a feature, in any case."""
DEFAULT_CATEGORY = "object"
DEGREES = 4326
_EPSG = re.compile(r"EPSG:(?:[\d.]*:)?(\d{1,9})$")
_MOST_DEPTH = 20


@dataclass(frozen=True, eq=False)
class GroundPolygon:
    """A polygon on the ground: rings (N, 2) of x and y, the first around the others. It waits to be placed."""

    rings: tuple[Points, ...]
    epsg: int | None

    def paint(self, size: Size) -> Mask:
        raise BadPair("has polygons on the ground, whose picture is not known")

    def placed(self, ground: Ground) -> EvenOddPolygon:
        return EvenOddPolygon(tuple(checked_points(ground.to_pixels(ring)) for ring in self.rings))


def knows(data: bytes) -> bool:
    """Return whether a file is a collection of features."""
    document = table_or_none(data) or {}
    return document.get("type") == "FeatureCollection" and isinstance(document.get("features"), list)


def read(data: bytes, names: Sequence[str] = ()) -> AnnotatedPicture:
    """Return the features in the order of the file. `place` must follow."""
    document = parse_json(data)
    epsg, name = _epsg(document.get("crs")), document.get("name")
    default = name if isinstance(name, str) and name else DEFAULT_CATEGORY
    annotations, lost = [], Counter[str]()
    for feature in tables(document, "features"):
        shapes: list[GroundPolygon] = []
        others = lost.total()
        for kind, coordinates in _geometries(feature.get("geometry")):
            if kind == "Polygon":
                shapes.append(_polygon(coordinates, epsg))
            elif kind == "MultiPolygon":
                shapes += [_polygon(rings, epsg) for rings in _list(coordinates)]
            else:
                lost[f"of the geometry {kind!r}"] += 1
        if shapes:
            annotations.append(Annotation(_category(feature.get("properties"), default), tuple(shapes)))
        elif lost.total() == others:
            lost["with an empty geometry"] += 1
    return AnnotatedPicture(tuple(annotations), lost=lost)


def place(picture: AnnotatedPicture, image: bytes) -> AnnotatedPicture:
    """Return the features in pixels of their GeoTIFF."""
    try:
        ground = ground_of(image)
    except BadPair as error:
        raise BadPair(f"its picture {error}") from None
    placed = []
    for annotation in picture.annotations:
        shapes = [shape for shape in annotation.shapes if isinstance(shape, GroundPolygon)]
        _check_system(shapes[0], ground)
        placed.append(replace(annotation, shapes=tuple(shape.placed(ground) for shape in shapes)))
    return replace(picture, annotations=tuple(placed))


def system_of(shape: GroundPolygon, ground: Ground) -> int | None:
    """Return the EPSG code of coordinates; None if the file does not say it."""
    points = np.concatenate(shape.rings)
    if shape.epsg is None and ground.is_projected and len(points) and (np.abs(points) <= (180, 90)).all():
        return DEGREES  # what GeoJSON says it is, and it looks so
    return shape.epsg


def _check_system(shape: GroundPolygon, ground: Ground) -> None:
    """Refuse coordinates of another system than the picture has."""
    epsg = system_of(shape, ground)
    if None not in (epsg, ground.epsg) and epsg != ground.epsg:
        raise BadPair(
            f"has coordinates of EPSG:{epsg}, and the GeoTIFF has EPSG:{ground.epsg}; "
            f"--reproject brings them there, or: ogr2ogr -t_srs EPSG:{ground.epsg} -lco RFC7946=NO"
        )


def _epsg(system: Any) -> int | None:
    """Return the code of the member "crs" that older files have."""
    properties = system.get("properties") if isinstance(system, dict) else None
    name = properties.get("name") if isinstance(properties, dict) else None
    if not isinstance(name, str):
        return None
    match = _EPSG.search(name)
    if match:
        return int(match[1])
    return DEGREES if name.endswith("CRS84") else None


def _category(properties: Any, default: str) -> str:
    values = {key.lower(): value for key, value in properties.items()} if isinstance(properties, dict) else {}
    for name in PROPERTIES:
        value = values.get(name)
        if (isinstance(value, str) and value) or type(value) is int:
            return str(value)
    return default


def _geometries(geometry: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the kind and the coordinates of a geometry, or of all in a collection."""
    if geometry is None:
        yield "null", None
        return
    if not isinstance(geometry, dict) or not isinstance(geometry.get("type"), str) or depth > _MOST_DEPTH:
        raise BadPair("has a geometry without a type")
    if geometry["type"] == "GeometryCollection":
        for member in tables(geometry, "geometries"):
            yield from _geometries(member, depth + 1)
    else:
        yield geometry["type"][:40], geometry.get("coordinates")


def _list(values: Any) -> list[Any]:
    if not isinstance(values, list):
        raise BadPair("has a polygon without a list of rings")
    return values


def _polygon(rings: Any, epsg: int | None) -> GroundPolygon:
    return GroundPolygon(tuple(map(_ring, _list(rings))) or (np.zeros((0, 2)),), epsg)


def _ring(values: Any) -> Points:
    """Return the points of a ring. Each may have a height and more behind x and y."""
    if len(_list(values)) > MOST_POINTS:
        raise BadPair(f"has a ring of {len(values)} points; {MOST_POINTS} is the most")
    try:
        if not {list}.issuperset(map(type, values)) or min(map(len, values), default=2) < 2:
            raise TypeError
        numbers = list(chain.from_iterable(point[:2] for point in values))
        if not {int, float}.issuperset(map(type, numbers)):
            raise TypeError
        points = np.array(numbers, np.float64).reshape(-1, 2)
    except (TypeError, OverflowError):
        raise BadPair("has a point that is not two numbers") from None
    if not np.isfinite(points).all():
        raise BadPair("has a point that is not finite")
    return points


FORMAT = PictureFormat(name=NAME, rule=RULE, knows=knows, read=read, to_pixels=place)
