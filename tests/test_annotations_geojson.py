"""GeoJSON over GeoTIFF: every pixel as rasterio paints it; other systems and hostile files are refused by name."""

from __future__ import annotations

import json
import struct
from base64 import b64decode
from random import Random
from typing import Any

import numpy as np
import pytest
from facts.write_facts import read_facts, unpacked
from mutated_annotations import mutated_bytes, mutated_json, painted_or_refused

from packer.annotations.annotation import AnnotatedPicture
from packer.annotations.geojson import knows, place, read
from packer.annotations.geotiff import ground_of
from packer.annotations.paint import mask_of, window
from packer.errors import BadPair

CASES = read_facts("geojson")
TIF = b64decode(CASES[0]["tif"])
DOCUMENT = json.loads(CASES[0]["geojson"])


def _feature(geometry: Any, **properties: Any) -> dict[str, Any]:
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def _read(*features: Any, **more: Any) -> AnnotatedPicture:
    return read(json.dumps({"type": "FeatureCollection", "features": features, **more}).encode())


def _placed(data: bytes) -> AnnotatedPicture:
    return place(read(data), TIF)


SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [4, 0, 7.5], [4, 4], [0, 0]]]}


def test_every_pixel_is_that_of_rasterio() -> None:
    count = 0
    for case in CASES:
        size = (case["size"][0], case["size"][1])
        picture = place(read(case["geojson"].encode()), b64decode(case["tif"]))
        for each, expected in zip(
            picture.annotations, unpacked(case["inside"], (-1, size[0], size[1]), "u1"), strict=True
        ):
            painted, mask = np.zeros(size, np.uint8), mask_of(each, size)
            window(painted, mask)[mask.inside] = 1
            np.testing.assert_array_equal(painted, expected)
            count += 1
    assert count >= 100


def test_the_category_is_a_property_or_the_name_of_the_collection() -> None:
    features = [_feature(SQUARE, Class="tree"), _feature(SQUARE, label=7), _feature(SQUARE, class_name="", name="a"),
                _feature(SQUARE, height=3)]  # fmt: skip
    assert [each.category for each in _read(*features).annotations] == ["tree", "7", "a", "object"]
    assert _read(_feature(SQUARE), name="roofs").annotations[0].category == "roofs"


def test_lines_and_points_are_counted_as_lost() -> None:
    mixed = {"type": "GeometryCollection", "geometries": [SQUARE, {"type": "Point", "coordinates": [1, 1]}]}
    line = {"type": "LineString", "coordinates": [[1, 1], [2, 2]]}
    picture = _read(_feature(mixed), _feature(line), _feature(None))
    assert len(picture.annotations) == 1
    assert picture.lost == {
        "of the geometry 'Point'": 1,
        "of the geometry 'LineString'": 1,
        "of the geometry 'null'": 1,
    }


@pytest.mark.parametrize(("kind", "member"), [("MultiPolygon", "coordinates"), ("GeometryCollection", "geometries")])
def test_an_empty_geometry_is_counted_as_lost(kind: str, member: str) -> None:
    picture = _read(_feature({"type": kind, member: []}), _feature(SQUARE))
    assert (len(picture.annotations), picture.lost) == (1, {"with an empty geometry": 1})


@pytest.mark.parametrize("name", [None, "urn:ogc:def:crs:OGC:1.3:CRS84", "urn:ogc:def:crs:EPSG::4326"])
def test_degrees_over_metres_are_refused(name: str | None) -> None:
    crs = {"crs": {"type": "name", "properties": {"name": name}}} if name else {}
    with pytest.raises(BadPair, match=r"EPSG:4326, and the GeoTIFF has EPSG:32633; .* -t_srs EPSG:32633"):
        place(_read(_feature(SQUARE), **crs), TIF)


@pytest.mark.parametrize("name", ["EPSG:32632", "urn:ogc:def:crs:EPSG::32632", "urn:ogc:def:crs:EPSG:6.9:32632"])
def test_every_form_of_a_code_is_read(name: str) -> None:
    with pytest.raises(BadPair, match=r"EPSG:32632, and the GeoTIFF has EPSG:32633"):
        place(_read(_feature(SQUARE), crs={"type": "name", "properties": {"name": name}}), TIF)


def test_both_orders_of_bytes_are_read() -> None:
    """The fewest tags that place a picture, in a TIFF of either order and in a BigTIFF."""
    for order, big in (("<", False), (">", False), ("<", True), (">", True)):
        ground = ground_of(_tiff(order, big))
        assert ground.affine == (100.0, 2.0, 0.0, 200.0, 0.0, -3.0)
        assert (ground.epsg, ground.is_projected) == (None, False)


def _tiff(order: str, big: bool) -> bytes:
    """Return a TIFF that has a scale and a tie point, and nothing else."""
    mark = b"II" if order == "<" else b"MM"
    if big:
        head, form = struct.pack(f"{order}2sHHHQQ", mark, 43, 8, 0, 16, 2), f"{order}HHQQ"
    else:
        head, form = struct.pack(f"{order}2sHIH", mark, 42, 8, 2), f"{order}HHII"
    end = len(head) + 2 * struct.calcsize(form)
    tags = struct.pack(form, 33550, 12, 3, end) + struct.pack(form, 33922, 12, 6, end + 24)
    return head + tags + struct.pack(f"{order}9d", 2, 3, 0, 0, 0, 0, 100, 200, 0)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is not a TIFF"),
        (b"\x89PNG\r\n\x1a\n", "is not a TIFF"),
        (b"II*\0\xff\xff\xff\xff", "damaged"),
        (b"II*\0\x08\0\0\0\0\0", "is not a GeoTIFF"),
        (_tiff("<", False)[:-1], "damaged"),
    ],
)
def test_a_picture_without_ground_is_refused_by_name(data: bytes, words: str) -> None:
    with pytest.raises(BadPair, match=words):
        place(_read(_feature(SQUARE)), data)


@pytest.mark.parametrize(
    ("geometry", "words"),
    [
        (3, "without a type"),
        ({"type": "Polygon", "coordinates": 3}, "list of rings"),
        ({"type": "Polygon", "coordinates": [[[1]]]}, "not two numbers"),
        ({"type": "Polygon", "coordinates": [[[1, float("nan")]]]}, "not finite"),
        ({"type": "Polygon", "coordinates": [[[1, 10**400]]]}, "not two numbers"),
        ({"type": "Polygon", "coordinates": [[[1e30, 1e30]]]}, "pixels away"),
    ],
)
def test_a_geometry_that_is_not_valid_is_refused_by_name(geometry: Any, words: str) -> None:
    with pytest.raises(BadPair, match=words):
        place(_read(_feature(geometry)), TIF)


def test_its_files_are_known() -> None:
    assert knows(json.dumps(DOCUMENT).encode())
    for other in (b"", b"{}", b'{"type": "FeatureCollection"}', b'{"type": "Feature", "features": []}'):
        assert not knows(other)


def test_mutated_files_are_painted_or_refused_by_name() -> None:
    random = Random(2)
    small = {**DOCUMENT, "features": DOCUMENT["features"][:3]}
    refused = sum(painted_or_refused(_placed, mutated_json(small, random)) for _ in range(300))
    assert 60 < refused < 300
    placed = read(json.dumps(small).encode())
    refused = sum(painted_or_refused(lambda data: place(placed, data), mutated_bytes(TIF, random)) for _ in range(300))
    assert 60 < refused <= 300
